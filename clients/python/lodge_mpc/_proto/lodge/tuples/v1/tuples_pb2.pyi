import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from lodge_mpc._proto.lodge.job.v1 import job_pb2 as _job_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BatchState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BATCH_STATE_UNSPECIFIED: _ClassVar[BatchState]
    BATCH_STATE_LOCKED: _ClassVar[BatchState]
    BATCH_STATE_AVAILABLE: _ClassVar[BatchState]
    BATCH_STATE_CONSUMED: _ClassVar[BatchState]
    BATCH_STATE_REVOKED: _ClassVar[BatchState]

class ReservationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    RESERVATION_STATE_UNSPECIFIED: _ClassVar[ReservationState]
    RESERVATION_STATE_RESERVED: _ClassVar[ReservationState]
    RESERVATION_STATE_CONSUMED: _ClassVar[ReservationState]
    RESERVATION_STATE_WITHDRAWN: _ClassVar[ReservationState]
    RESERVATION_STATE_RELEASED: _ClassVar[ReservationState]
    RESERVATION_STATE_ERASED: _ClassVar[ReservationState]

class MacKeyState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MAC_KEY_STATE_UNSPECIFIED: _ClassVar[MacKeyState]
    MAC_KEY_STATE_LOCKED: _ClassVar[MacKeyState]
    MAC_KEY_STATE_ACTIVE: _ClassVar[MacKeyState]
    MAC_KEY_STATE_BURNT: _ClassVar[MacKeyState]
    MAC_KEY_STATE_RETIRED: _ClassVar[MacKeyState]

class Purpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PURPOSE_UNSPECIFIED: _ClassVar[Purpose]
    PURPOSE_ONLINE: _ClassVar[Purpose]
    PURPOSE_VERIFY: _ClassVar[Purpose]

class Answer(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ANSWER_UNSPECIFIED: _ClassVar[Answer]
    ANSWER_UNKNOWN: _ClassVar[Answer]
    ANSWER_SAME: _ClassVar[Answer]
    ANSWER_OTHER: _ClassVar[Answer]
    ANSWER_ENDED: _ClassVar[Answer]
BATCH_STATE_UNSPECIFIED: BatchState
BATCH_STATE_LOCKED: BatchState
BATCH_STATE_AVAILABLE: BatchState
BATCH_STATE_CONSUMED: BatchState
BATCH_STATE_REVOKED: BatchState
RESERVATION_STATE_UNSPECIFIED: ReservationState
RESERVATION_STATE_RESERVED: ReservationState
RESERVATION_STATE_CONSUMED: ReservationState
RESERVATION_STATE_WITHDRAWN: ReservationState
RESERVATION_STATE_RELEASED: ReservationState
RESERVATION_STATE_ERASED: ReservationState
MAC_KEY_STATE_UNSPECIFIED: MacKeyState
MAC_KEY_STATE_LOCKED: MacKeyState
MAC_KEY_STATE_ACTIVE: MacKeyState
MAC_KEY_STATE_BURNT: MacKeyState
MAC_KEY_STATE_RETIRED: MacKeyState
PURPOSE_UNSPECIFIED: Purpose
PURPOSE_ONLINE: Purpose
PURPOSE_VERIFY: Purpose
ANSWER_UNSPECIFIED: Answer
ANSWER_UNKNOWN: Answer
ANSWER_SAME: Answer
ANSWER_OTHER: Answer
ANSWER_ENDED: Answer

class Class(_message.Message):
    __slots__ = ("tenant", "kind", "params", "field", "shape", "input_party", "no_sacrifice", "quorum", "form")
    TENANT_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    INPUT_PARTY_FIELD_NUMBER: _ClassVar[int]
    NO_SACRIFICE_FIELD_NUMBER: _ClassVar[int]
    QUORUM_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    tenant: str
    kind: _job_pb2.Kind
    params: str
    field: str
    shape: _job_pb2.Shape
    input_party: int
    no_sacrifice: bool
    quorum: _containers.RepeatedScalarFieldContainer[int]
    form: _job_pb2.MaskForm
    def __init__(self, tenant: _Optional[str] = ..., kind: _Optional[_Union[_job_pb2.Kind, str]] = ..., params: _Optional[str] = ..., field: _Optional[str] = ..., shape: _Optional[_Union[_job_pb2.Shape, _Mapping]] = ..., input_party: _Optional[int] = ..., no_sacrifice: bool = ..., quorum: _Optional[_Iterable[int]] = ..., form: _Optional[_Union[_job_pb2.MaskForm, str]] = ...) -> None: ...

class Batch(_message.Message):
    __slots__ = ("id", "state", "epoch", "mac_key_id", "dim", "count", "digest", "created", "tuple_bytes", "free", "erased", "lost", "reason", "keygen_security", "stranded")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MAC_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    CLASS_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    TUPLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FREE_FIELD_NUMBER: _ClassVar[int]
    ERASED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    KEYGEN_SECURITY_FIELD_NUMBER: _ClassVar[int]
    STRANDED_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: BatchState
    epoch: int
    mac_key_id: str
    dim: int
    count: int
    digest: bytes
    created: _timestamp_pb2.Timestamp
    tuple_bytes: int
    free: _containers.RepeatedCompositeFieldContainer[Span]
    erased: int
    lost: int
    reason: str
    keygen_security: str
    stranded: bool
    def __init__(self, id: _Optional[str] = ..., state: _Optional[_Union[BatchState, str]] = ..., epoch: _Optional[int] = ..., mac_key_id: _Optional[str] = ..., dim: _Optional[int] = ..., count: _Optional[int] = ..., digest: _Optional[bytes] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., tuple_bytes: _Optional[int] = ..., free: _Optional[_Iterable[_Union[Span, _Mapping]]] = ..., erased: _Optional[int] = ..., lost: _Optional[int] = ..., reason: _Optional[str] = ..., keygen_security: _Optional[str] = ..., stranded: bool = ..., **kwargs) -> None: ...

class Span(_message.Message):
    __slots__ = ("first", "count")
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    first: int
    count: int
    def __init__(self, first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Range(_message.Message):
    __slots__ = ("batch_id", "first", "count")
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    batch_id: str
    first: int
    count: int
    def __init__(self, batch_id: _Optional[str] = ..., first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class Reservation(_message.Message):
    __slots__ = ("id", "epoch", "mac_key_id", "ranges", "count", "owner", "clients", "lease", "digest", "state", "client", "delivered")
    ID_FIELD_NUMBER: _ClassVar[int]
    CLASS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    MAC_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    id: str
    epoch: int
    mac_key_id: str
    ranges: _containers.RepeatedCompositeFieldContainer[Range]
    count: int
    owner: str
    clients: _containers.RepeatedScalarFieldContainer[str]
    lease: _timestamp_pb2.Timestamp
    digest: bytes
    state: ReservationState
    client: str
    delivered: _timestamp_pb2.Timestamp
    def __init__(self, id: _Optional[str] = ..., epoch: _Optional[int] = ..., mac_key_id: _Optional[str] = ..., ranges: _Optional[_Iterable[_Union[Range, _Mapping]]] = ..., count: _Optional[int] = ..., owner: _Optional[str] = ..., clients: _Optional[_Iterable[str]] = ..., lease: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., digest: _Optional[bytes] = ..., state: _Optional[_Union[ReservationState, str]] = ..., client: _Optional[str] = ..., delivered: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., **kwargs) -> None: ...

class FetchRequest(_message.Message):
    __slots__ = ("reservation_id",)
    RESERVATION_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_FIELD_NUMBER: _ClassVar[int]
    reservation_id: str
    def __init__(self, reservation_id: _Optional[str] = ..., **kwargs) -> None: ...

class FetchResponse(_message.Message):
    __slots__ = ("reservation", "tuple_bytes", "chunk", "sha256")
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    TUPLE_BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    SHA256_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    tuple_bytes: int
    chunk: bytes
    sha256: bytes
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ..., tuple_bytes: _Optional[int] = ..., chunk: _Optional[bytes] = ..., sha256: _Optional[bytes] = ...) -> None: ...

class GetReservationRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetReservationResponse(_message.Message):
    __slots__ = ("reservation",)
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    reservation: Reservation
    def __init__(self, reservation: _Optional[_Union[Reservation, _Mapping]] = ...) -> None: ...

class ListReservationsRequest(_message.Message):
    __slots__ = ("states", "after", "limit")
    STATES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    states: _containers.RepeatedScalarFieldContainer[ReservationState]
    after: str
    limit: int
    def __init__(self, states: _Optional[_Iterable[_Union[ReservationState, str]]] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListReservationsResponse(_message.Message):
    __slots__ = ("reservations", "next")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    next: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ListBatchesRequest(_message.Message):
    __slots__ = ("epoch", "states", "after", "limit")
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    STATES_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    states: _containers.RepeatedScalarFieldContainer[BatchState]
    after: str
    limit: int
    def __init__(self, epoch: _Optional[int] = ..., states: _Optional[_Iterable[_Union[BatchState, str]]] = ..., after: _Optional[str] = ..., limit: _Optional[int] = ...) -> None: ...

class ListBatchesResponse(_message.Message):
    __slots__ = ("batches", "next")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    batches: _containers.RepeatedCompositeFieldContainer[Batch]
    next: str
    def __init__(self, batches: _Optional[_Iterable[_Union[Batch, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class MacKey(_message.Message):
    __slots__ = ("id", "state", "epoch", "field", "tenant", "created", "reason", "failed_checks")
    ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FAILED_CHECKS_FIELD_NUMBER: _ClassVar[int]
    id: str
    state: MacKeyState
    epoch: int
    field: str
    tenant: str
    created: _timestamp_pb2.Timestamp
    reason: str
    failed_checks: int
    def __init__(self, id: _Optional[str] = ..., state: _Optional[_Union[MacKeyState, str]] = ..., epoch: _Optional[int] = ..., field: _Optional[str] = ..., tenant: _Optional[str] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., failed_checks: _Optional[int] = ...) -> None: ...

class ListMacKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListMacKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[MacKey]
    def __init__(self, keys: _Optional[_Iterable[_Union[MacKey, _Mapping]]] = ...) -> None: ...

class DrawMacKeyRequest(_message.Message):
    __slots__ = ("mac_key_id", "purpose")
    MAC_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    mac_key_id: str
    purpose: Purpose
    def __init__(self, mac_key_id: _Optional[str] = ..., purpose: _Optional[_Union[Purpose, str]] = ...) -> None: ...

class DrawMacKeyResponse(_message.Message):
    __slots__ = ("key", "params", "share")
    KEY_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    key: MacKey
    params: str
    share: bytes
    def __init__(self, key: _Optional[_Union[MacKey, _Mapping]] = ..., params: _Optional[str] = ..., share: _Optional[bytes] = ...) -> None: ...

class ReportFailedCheckRequest(_message.Message):
    __slots__ = ("mac_key_id", "reason")
    MAC_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    mac_key_id: str
    reason: str
    def __init__(self, mac_key_id: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class ReportFailedCheckResponse(_message.Message):
    __slots__ = ("key", "batches")
    KEY_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    key: MacKey
    batches: int
    def __init__(self, key: _Optional[_Union[MacKey, _Mapping]] = ..., batches: _Optional[int] = ...) -> None: ...

class RevokeRequest(_message.Message):
    __slots__ = ("batch_ids", "mac_key_id", "reason", "dry_run")
    BATCH_IDS_FIELD_NUMBER: _ClassVar[int]
    MAC_KEY_ID_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    DRY_RUN_FIELD_NUMBER: _ClassVar[int]
    batch_ids: _containers.RepeatedScalarFieldContainer[str]
    mac_key_id: str
    reason: str
    dry_run: bool
    def __init__(self, batch_ids: _Optional[_Iterable[str]] = ..., mac_key_id: _Optional[str] = ..., reason: _Optional[str] = ..., dry_run: bool = ...) -> None: ...

class RevokeResponse(_message.Message):
    __slots__ = ("batches", "tuples")
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    TUPLES_FIELD_NUMBER: _ClassVar[int]
    batches: int
    tuples: int
    def __init__(self, batches: _Optional[int] = ..., tuples: _Optional[int] = ...) -> None: ...

class ProposeRequest(_message.Message):
    __slots__ = ("reservations",)
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[Reservation]
    def __init__(self, reservations: _Optional[_Iterable[_Union[Reservation, _Mapping]]] = ...) -> None: ...

class Outcome(_message.Message):
    __slots__ = ("id", "code", "what", "state", "digest")
    ID_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    id: str
    code: str
    what: str
    state: ReservationState
    digest: bytes
    def __init__(self, id: _Optional[str] = ..., code: _Optional[str] = ..., what: _Optional[str] = ..., state: _Optional[_Union[ReservationState, str]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class ProposeResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ...) -> None: ...

class WithdrawRequest(_message.Message):
    __slots__ = ("ids",)
    IDS_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, ids: _Optional[_Iterable[str]] = ...) -> None: ...

class WithdrawResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("ids", "discard")
    IDS_FIELD_NUMBER: _ClassVar[int]
    DISCARD_FIELD_NUMBER: _ClassVar[int]
    ids: _containers.RepeatedScalarFieldContainer[str]
    discard: bool
    def __init__(self, ids: _Optional[_Iterable[str]] = ..., discard: bool = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("outcomes",)
    OUTCOMES_FIELD_NUMBER: _ClassVar[int]
    outcomes: _containers.RepeatedCompositeFieldContainer[Outcome]
    def __init__(self, outcomes: _Optional[_Iterable[_Union[Outcome, _Mapping]]] = ...) -> None: ...

class StoreVersion(_message.Message):
    __slots__ = ("store_id", "incarnation", "started", "first", "generation", "signature")
    STORE_ID_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    SIGNATURE_FIELD_NUMBER: _ClassVar[int]
    store_id: bytes
    incarnation: bytes
    started: _timestamp_pb2.Timestamp
    first: int
    generation: int
    signature: bytes
    def __init__(self, store_id: _Optional[bytes] = ..., incarnation: _Optional[bytes] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., first: _Optional[int] = ..., generation: _Optional[int] = ..., signature: _Optional[bytes] = ...) -> None: ...

class AcknowledgeRequest(_message.Message):
    __slots__ = ("store",)
    STORE_FIELD_NUMBER: _ClassVar[int]
    store: StoreVersion
    def __init__(self, store: _Optional[_Union[StoreVersion, _Mapping]] = ...) -> None: ...

class AcknowledgeResponse(_message.Message):
    __slots__ = ("accepted", "reason", "seen")
    ACCEPTED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    accepted: bool
    reason: str
    seen: StoreVersion
    def __init__(self, accepted: bool = ..., reason: _Optional[str] = ..., seen: _Optional[_Union[StoreVersion, _Mapping]] = ...) -> None: ...

class ConfirmRequest(_message.Message):
    __slots__ = ("store", "items", "remember")
    class Item(_message.Message):
        __slots__ = ("id", "digest")
        ID_FIELD_NUMBER: _ClassVar[int]
        DIGEST_FIELD_NUMBER: _ClassVar[int]
        id: str
        digest: bytes
        def __init__(self, id: _Optional[str] = ..., digest: _Optional[bytes] = ...) -> None: ...
    STORE_FIELD_NUMBER: _ClassVar[int]
    ITEMS_FIELD_NUMBER: _ClassVar[int]
    REMEMBER_FIELD_NUMBER: _ClassVar[int]
    store: StoreVersion
    items: _containers.RepeatedCompositeFieldContainer[ConfirmRequest.Item]
    remember: bool
    def __init__(self, store: _Optional[_Union[StoreVersion, _Mapping]] = ..., items: _Optional[_Iterable[_Union[ConfirmRequest.Item, _Mapping]]] = ..., remember: bool = ...) -> None: ...

class ConfirmResponse(_message.Message):
    __slots__ = ("acknowledged", "answers")
    ACKNOWLEDGED_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    acknowledged: bool
    answers: _containers.RepeatedScalarFieldContainer[Answer]
    def __init__(self, acknowledged: bool = ..., answers: _Optional[_Iterable[_Union[Answer, str]]] = ...) -> None: ...
