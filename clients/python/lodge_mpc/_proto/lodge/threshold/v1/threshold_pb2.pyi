import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from lodge_mpc._proto.lodge.job.v1 import job_pb2 as _job_pb2
from lodge_mpc._proto.lodge.job.v1 import session_pb2 as _session_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class CiphertextForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CIPHERTEXT_FORM_UNSPECIFIED: _ClassVar[CiphertextForm]
    CIPHERTEXT_FORM_LWE: _ClassVar[CiphertextForm]
    CIPHERTEXT_FORM_RING: _ClassVar[CiphertextForm]
    CIPHERTEXT_FORM_BGV: _ClassVar[CiphertextForm]
    CIPHERTEXT_FORM_MULTIKEY: _ClassVar[CiphertextForm]
CIPHERTEXT_FORM_UNSPECIFIED: CiphertextForm
CIPHERTEXT_FORM_LWE: CiphertextForm
CIPHERTEXT_FORM_RING: CiphertextForm
CIPHERTEXT_FORM_BGV: CiphertextForm
CIPHERTEXT_FORM_MULTIKEY: CiphertextForm

class EstimateRequest(_message.Message):
    __slots__ = ("spec",)
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: _job_pb2.SessionSpec
    def __init__(self, spec: _Optional[_Union[_job_pb2.SessionSpec, _Mapping]] = ...) -> None: ...

class EstimateResponse(_message.Message):
    __slots__ = ("masks", "mask_bytes", "memory_bytes")
    MASKS_FIELD_NUMBER: _ClassVar[int]
    MASK_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    masks: int
    mask_bytes: int
    memory_bytes: int
    def __init__(self, masks: _Optional[int] = ..., mask_bytes: _Optional[int] = ..., memory_bytes: _Optional[int] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[ThresholdKey]
    def __init__(self, keys: _Optional[_Iterable[_Union[ThresholdKey, _Mapping]]] = ...) -> None: ...

class ThresholdKey(_message.Message):
    __slots__ = ("epoch", "state", "params", "params_hash", "digest", "threshold", "holders", "number", "created", "keygen_security", "decrypted", "masks", "chunks", "key_bytes", "galois", "flooded", "flooding_limit", "any_quorum")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    PARAMS_HASH_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    HOLDERS_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    KEYGEN_SECURITY_FIELD_NUMBER: _ClassVar[int]
    DECRYPTED_FIELD_NUMBER: _ClassVar[int]
    MASKS_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    GALOIS_FIELD_NUMBER: _ClassVar[int]
    FLOODED_FIELD_NUMBER: _ClassVar[int]
    FLOODING_LIMIT_FIELD_NUMBER: _ClassVar[int]
    ANY_QUORUM_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    state: str
    params: str
    params_hash: bytes
    digest: bytes
    threshold: int
    holders: _containers.RepeatedScalarFieldContainer[int]
    number: int
    created: _timestamp_pb2.Timestamp
    keygen_security: str
    decrypted: int
    masks: _containers.RepeatedCompositeFieldContainer[MaskStock]
    chunks: int
    key_bytes: int
    galois: _containers.RepeatedScalarFieldContainer[int]
    flooded: int
    flooding_limit: int
    any_quorum: bool
    def __init__(self, epoch: _Optional[int] = ..., state: _Optional[str] = ..., params: _Optional[str] = ..., params_hash: _Optional[bytes] = ..., digest: _Optional[bytes] = ..., threshold: _Optional[int] = ..., holders: _Optional[_Iterable[int]] = ..., number: _Optional[int] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., keygen_security: _Optional[str] = ..., decrypted: _Optional[int] = ..., masks: _Optional[_Iterable[_Union[MaskStock, _Mapping]]] = ..., chunks: _Optional[int] = ..., key_bytes: _Optional[int] = ..., galois: _Optional[_Iterable[int]] = ..., flooded: _Optional[int] = ..., flooding_limit: _Optional[int] = ..., any_quorum: bool = ...) -> None: ...

class MaskStock(_message.Message):
    __slots__ = ("quorum", "form", "free", "failure_probability", "noise_bound")
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    FAILURE_PROBABILITY_FIELD_NUMBER: _ClassVar[int]
    NOISE_BOUND_FIELD_NUMBER: _ClassVar[int]
    quorum: _containers.RepeatedScalarFieldContainer[int]
    form: _job_pb2.MaskForm
    free: int
    failure_probability: float
    noise_bound: float
    def __init__(self, quorum: _Optional[_Iterable[int]] = ..., form: _Optional[_Union[_job_pb2.MaskForm, str]] = ..., free: _Optional[int] = ..., failure_probability: _Optional[float] = ..., noise_bound: _Optional[float] = ...) -> None: ...

class GetKeysRequest(_message.Message):
    __slots__ = ("epoch", "first", "count")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    first: int
    count: int
    def __init__(self, epoch: _Optional[int] = ..., first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class GetKeysResponse(_message.Message):
    __slots__ = ("header", "digest", "chunk_digests", "index", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CHUNK_DIGESTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: bytes
    digest: bytes
    chunk_digests: _containers.RepeatedScalarFieldContainer[bytes]
    index: int
    chunk: bytes
    def __init__(self, header: _Optional[bytes] = ..., digest: _Optional[bytes] = ..., chunk_digests: _Optional[_Iterable[bytes]] = ..., index: _Optional[int] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class DecryptHeader(_message.Message):
    __slots__ = ("request_id", "epoch", "keys_digest", "quorum", "form", "count", "coefficients", "masks", "recipient", "provenance", "ciphertexts_digest", "level", "flooding", "multikey")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    KEYS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    COEFFICIENTS_FIELD_NUMBER: _ClassVar[int]
    MASKS_FIELD_NUMBER: _ClassVar[int]
    RECIPIENT_FIELD_NUMBER: _ClassVar[int]
    PROVENANCE_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXTS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    FLOODING_FIELD_NUMBER: _ClassVar[int]
    MULTIKEY_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    epoch: int
    keys_digest: bytes
    quorum: _containers.RepeatedScalarFieldContainer[int]
    form: CiphertextForm
    count: int
    coefficients: int
    masks: _job_pb2.MaskForm
    recipient: bytes
    provenance: Provenance
    ciphertexts_digest: bytes
    level: int
    flooding: bool
    multikey: _containers.RepeatedCompositeFieldContainer[KeyOwner]
    def __init__(self, request_id: _Optional[bytes] = ..., epoch: _Optional[int] = ..., keys_digest: _Optional[bytes] = ..., quorum: _Optional[_Iterable[int]] = ..., form: _Optional[_Union[CiphertextForm, str]] = ..., count: _Optional[int] = ..., coefficients: _Optional[int] = ..., masks: _Optional[_Union[_job_pb2.MaskForm, str]] = ..., recipient: _Optional[bytes] = ..., provenance: _Optional[_Union[Provenance, _Mapping]] = ..., ciphertexts_digest: _Optional[bytes] = ..., level: _Optional[int] = ..., flooding: bool = ..., multikey: _Optional[_Iterable[_Union[KeyOwner, _Mapping]]] = ...) -> None: ...

class KeyOwner(_message.Message):
    __slots__ = ("key", "owner")
    KEY_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    owner: int
    def __init__(self, key: _Optional[bytes] = ..., owner: _Optional[int] = ...) -> None: ...

class Provenance(_message.Message):
    __slots__ = ("attester", "circuit", "signature")
    ATTESTER_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    attester: str
    circuit: str
    signature: bytes
    def __init__(self, attester: _Optional[str] = ..., circuit: _Optional[str] = ..., signature: _Optional[bytes] = ...) -> None: ...

class DecryptRequest(_message.Message):
    __slots__ = ("header", "ciphertexts")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CIPHERTEXTS_FIELD_NUMBER: _ClassVar[int]
    header: DecryptHeader
    ciphertexts: bytes
    def __init__(self, header: _Optional[_Union[DecryptHeader, _Mapping]] = ..., ciphertexts: _Optional[bytes] = ...) -> None: ...

class DecryptResponse(_message.Message):
    __slots__ = ("party", "chunk")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    party: int
    chunk: bytes
    def __init__(self, party: _Optional[int] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class ApproveDecryptionRequest(_message.Message):
    __slots__ = ("request",)
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    request: bytes
    def __init__(self, request: _Optional[bytes] = ...) -> None: ...

class ApproveDecryptionResponse(_message.Message):
    __slots__ = ("approval",)
    APPROVAL_FIELD_NUMBER: _ClassVar[int]
    approval: Approval
    def __init__(self, approval: _Optional[_Union[Approval, _Mapping]] = ...) -> None: ...

class ListApprovalsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListApprovalsResponse(_message.Message):
    __slots__ = ("approvals",)
    APPROVALS_FIELD_NUMBER: _ClassVar[int]
    approvals: _containers.RepeatedCompositeFieldContainer[Approval]
    def __init__(self, approvals: _Optional[_Iterable[_Union[Approval, _Mapping]]] = ...) -> None: ...

class Approval(_message.Message):
    __slots__ = ("request", "client", "epoch", "messages", "circuit", "approved_by", "needed", "asked", "expires", "used")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MESSAGES_FIELD_NUMBER: _ClassVar[int]
    CIRCUIT_FIELD_NUMBER: _ClassVar[int]
    APPROVED_BY_FIELD_NUMBER: _ClassVar[int]
    NEEDED_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_FIELD_NUMBER: _ClassVar[int]
    USED_FIELD_NUMBER: _ClassVar[int]
    request: bytes
    client: str
    epoch: int
    messages: int
    circuit: str
    approved_by: _containers.RepeatedScalarFieldContainer[str]
    needed: int
    asked: _timestamp_pb2.Timestamp
    expires: _timestamp_pb2.Timestamp
    used: bool
    def __init__(self, request: _Optional[bytes] = ..., client: _Optional[str] = ..., epoch: _Optional[int] = ..., messages: _Optional[int] = ..., circuit: _Optional[str] = ..., approved_by: _Optional[_Iterable[str]] = ..., needed: _Optional[int] = ..., asked: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., expires: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., used: bool = ...) -> None: ...
