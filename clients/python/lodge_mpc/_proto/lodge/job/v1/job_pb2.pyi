import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Protocol(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTOCOL_UNSPECIFIED: _ClassVar[Protocol]
    PROTOCOL_KEYGEN: _ClassVar[Protocol]
    PROTOCOL_POPK: _ClassVar[Protocol]
    PROTOCOL_TRIPLES: _ClassVar[Protocol]
    PROTOCOL_THRESHOLD: _ClassVar[Protocol]

class Kind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    KIND_UNSPECIFIED: _ClassVar[Kind]
    KIND_KEYS: _ClassVar[Kind]
    KIND_SCALAR: _ClassVar[Kind]
    KIND_MATRIX: _ClassVar[Kind]
    KIND_PROOF: _ClassVar[Kind]
    KIND_SQUARE: _ClassVar[Kind]
    KIND_RANDOM: _ClassVar[Kind]
    KIND_BIT: _ClassVar[Kind]
    KIND_INVERSE: _ClassVar[Kind]
    KIND_INPUT: _ClassVar[Kind]
    KIND_MASKS: _ClassVar[Kind]
    KIND_RESHARE: _ClassVar[Kind]
    KIND_CONVOLUTION: _ClassVar[Kind]

class Purpose(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PURPOSE_UNSPECIFIED: _ClassVar[Purpose]
    PURPOSE_TRIPLES: _ClassVar[Purpose]
    PURPOSE_DECRYPTION: _ClassVar[Purpose]
    PURPOSE_THRESHOLD: _ClassVar[Purpose]

class MaskForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MASK_FORM_UNSPECIFIED: _ClassVar[MaskForm]
    MASK_FORM_EXACT: _ClassVar[MaskForm]
    MASK_FORM_PAPER: _ClassVar[MaskForm]

class JobState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    JOB_STATE_UNSPECIFIED: _ClassVar[JobState]
    JOB_STATE_PENDING: _ClassVar[JobState]
    JOB_STATE_PREPARING: _ClassVar[JobState]
    JOB_STATE_GENERATING: _ClassVar[JobState]
    JOB_STATE_VERIFYING: _ClassVar[JobState]
    JOB_STATE_STORING: _ClassVar[JobState]
    JOB_STATE_ACTIVATING: _ClassVar[JobState]
    JOB_STATE_COMPLETED: _ClassVar[JobState]
    JOB_STATE_FAILED: _ClassVar[JobState]
    JOB_STATE_CANCELLED: _ClassVar[JobState]
    JOB_STATE_TIMED_OUT: _ClassVar[JobState]
PROTOCOL_UNSPECIFIED: Protocol
PROTOCOL_KEYGEN: Protocol
PROTOCOL_POPK: Protocol
PROTOCOL_TRIPLES: Protocol
PROTOCOL_THRESHOLD: Protocol
KIND_UNSPECIFIED: Kind
KIND_KEYS: Kind
KIND_SCALAR: Kind
KIND_MATRIX: Kind
KIND_PROOF: Kind
KIND_SQUARE: Kind
KIND_RANDOM: Kind
KIND_BIT: Kind
KIND_INVERSE: Kind
KIND_INPUT: Kind
KIND_MASKS: Kind
KIND_RESHARE: Kind
KIND_CONVOLUTION: Kind
PURPOSE_UNSPECIFIED: Purpose
PURPOSE_TRIPLES: Purpose
PURPOSE_DECRYPTION: Purpose
PURPOSE_THRESHOLD: Purpose
MASK_FORM_UNSPECIFIED: MaskForm
MASK_FORM_EXACT: MaskForm
MASK_FORM_PAPER: MaskForm
JOB_STATE_UNSPECIFIED: JobState
JOB_STATE_PENDING: JobState
JOB_STATE_PREPARING: JobState
JOB_STATE_GENERATING: JobState
JOB_STATE_VERIFYING: JobState
JOB_STATE_STORING: JobState
JOB_STATE_ACTIVATING: JobState
JOB_STATE_COMPLETED: JobState
JOB_STATE_FAILED: JobState
JOB_STATE_CANCELLED: JobState
JOB_STATE_TIMED_OUT: JobState

class Shape(_message.Message):
    __slots__ = ("rows", "inner", "columns", "convolution")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    INNER_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    CONVOLUTION_FIELD_NUMBER: _ClassVar[int]
    rows: int
    inner: int
    columns: int
    convolution: Convolution
    def __init__(self, rows: _Optional[int] = ..., inner: _Optional[int] = ..., columns: _Optional[int] = ..., convolution: _Optional[_Union[Convolution, _Mapping]] = ...) -> None: ...

class Convolution(_message.Message):
    __slots__ = ("channels", "height", "width", "outputs", "kernel_height", "kernel_width", "stride_height", "stride_width", "padding_height", "padding_width")
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    HEIGHT_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    KERNEL_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    KERNEL_WIDTH_FIELD_NUMBER: _ClassVar[int]
    STRIDE_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    STRIDE_WIDTH_FIELD_NUMBER: _ClassVar[int]
    PADDING_HEIGHT_FIELD_NUMBER: _ClassVar[int]
    PADDING_WIDTH_FIELD_NUMBER: _ClassVar[int]
    channels: int
    height: int
    width: int
    outputs: int
    kernel_height: int
    kernel_width: int
    stride_height: int
    stride_width: int
    padding_height: int
    padding_width: int
    def __init__(self, channels: _Optional[int] = ..., height: _Optional[int] = ..., width: _Optional[int] = ..., outputs: _Optional[int] = ..., kernel_height: _Optional[int] = ..., kernel_width: _Optional[int] = ..., stride_height: _Optional[int] = ..., stride_width: _Optional[int] = ..., padding_height: _Optional[int] = ..., padding_width: _Optional[int] = ...) -> None: ...

class SessionRef(_message.Message):
    __slots__ = ("job_id", "ordinal")
    JOB_ID_FIELD_NUMBER: _ClassVar[int]
    ORDINAL_FIELD_NUMBER: _ClassVar[int]
    job_id: str
    ordinal: int
    def __init__(self, job_id: _Optional[str] = ..., ordinal: _Optional[int] = ...) -> None: ...

class SessionSpec(_message.Message):
    __slots__ = ("ref", "protocol", "protocol_version", "params", "params_hash", "roster_hash", "field", "kind", "dim", "shape", "count", "epoch", "purpose", "tenant", "deadline", "input_party", "no_sacrifice", "threshold", "group", "form", "from_epoch", "from_digest", "from_threshold", "from_holders", "galois")
    REF_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    PARAMS_HASH_FIELD_NUMBER: _ClassVar[int]
    ROSTER_HASH_FIELD_NUMBER: _ClassVar[int]
    FIELD_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    PURPOSE_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    DEADLINE_FIELD_NUMBER: _ClassVar[int]
    INPUT_PARTY_FIELD_NUMBER: _ClassVar[int]
    NO_SACRIFICE_FIELD_NUMBER: _ClassVar[int]
    THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    FORM_FIELD_NUMBER: _ClassVar[int]
    FROM_EPOCH_FIELD_NUMBER: _ClassVar[int]
    FROM_DIGEST_FIELD_NUMBER: _ClassVar[int]
    FROM_THRESHOLD_FIELD_NUMBER: _ClassVar[int]
    FROM_HOLDERS_FIELD_NUMBER: _ClassVar[int]
    GALOIS_FIELD_NUMBER: _ClassVar[int]
    ref: SessionRef
    protocol: Protocol
    protocol_version: int
    params: str
    params_hash: bytes
    roster_hash: bytes
    field: str
    kind: Kind
    dim: int
    shape: Shape
    count: int
    epoch: int
    purpose: Purpose
    tenant: str
    deadline: _timestamp_pb2.Timestamp
    input_party: int
    no_sacrifice: bool
    threshold: int
    group: _containers.RepeatedScalarFieldContainer[int]
    form: MaskForm
    from_epoch: int
    from_digest: bytes
    from_threshold: int
    from_holders: _containers.RepeatedScalarFieldContainer[int]
    galois: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, ref: _Optional[_Union[SessionRef, _Mapping]] = ..., protocol: _Optional[_Union[Protocol, str]] = ..., protocol_version: _Optional[int] = ..., params: _Optional[str] = ..., params_hash: _Optional[bytes] = ..., roster_hash: _Optional[bytes] = ..., field: _Optional[str] = ..., kind: _Optional[_Union[Kind, str]] = ..., dim: _Optional[int] = ..., shape: _Optional[_Union[Shape, _Mapping]] = ..., count: _Optional[int] = ..., epoch: _Optional[int] = ..., purpose: _Optional[_Union[Purpose, str]] = ..., tenant: _Optional[str] = ..., deadline: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., input_party: _Optional[int] = ..., no_sacrifice: bool = ..., threshold: _Optional[int] = ..., group: _Optional[_Iterable[int]] = ..., form: _Optional[_Union[MaskForm, str]] = ..., from_epoch: _Optional[int] = ..., from_digest: _Optional[bytes] = ..., from_threshold: _Optional[int] = ..., from_holders: _Optional[_Iterable[int]] = ..., galois: _Optional[_Iterable[int]] = ...) -> None: ...

class Blame(_message.Message):
    __slots__ = ("party", "check", "reason")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    party: int
    check: str
    reason: str
    def __init__(self, party: _Optional[int] = ..., check: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class Failure(_message.Message):
    __slots__ = ("outcome", "round", "round_index", "check", "reason", "blame", "suspects", "reporter")
    OUTCOME_FIELD_NUMBER: _ClassVar[int]
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ROUND_INDEX_FIELD_NUMBER: _ClassVar[int]
    CHECK_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    BLAME_FIELD_NUMBER: _ClassVar[int]
    SUSPECTS_FIELD_NUMBER: _ClassVar[int]
    REPORTER_FIELD_NUMBER: _ClassVar[int]
    outcome: str
    round: str
    round_index: int
    check: str
    reason: str
    blame: Blame
    suspects: _containers.RepeatedScalarFieldContainer[int]
    reporter: int
    def __init__(self, outcome: _Optional[str] = ..., round: _Optional[str] = ..., round_index: _Optional[int] = ..., check: _Optional[str] = ..., reason: _Optional[str] = ..., blame: _Optional[_Union[Blame, _Mapping]] = ..., suspects: _Optional[_Iterable[int]] = ..., reporter: _Optional[int] = ...) -> None: ...

class Progress(_message.Message):
    __slots__ = ("round", "round_index", "waiting_for", "since", "sent_bytes", "received_bytes", "round_received_bytes", "round_limit_bytes", "work_done", "work_total")
    ROUND_FIELD_NUMBER: _ClassVar[int]
    ROUND_INDEX_FIELD_NUMBER: _ClassVar[int]
    WAITING_FOR_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    SENT_BYTES_FIELD_NUMBER: _ClassVar[int]
    RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROUND_RECEIVED_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROUND_LIMIT_BYTES_FIELD_NUMBER: _ClassVar[int]
    WORK_DONE_FIELD_NUMBER: _ClassVar[int]
    WORK_TOTAL_FIELD_NUMBER: _ClassVar[int]
    round: str
    round_index: int
    waiting_for: _containers.RepeatedScalarFieldContainer[int]
    since: _timestamp_pb2.Timestamp
    sent_bytes: int
    received_bytes: int
    round_received_bytes: int
    round_limit_bytes: int
    work_done: int
    work_total: int
    def __init__(self, round: _Optional[str] = ..., round_index: _Optional[int] = ..., waiting_for: _Optional[_Iterable[int]] = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., sent_bytes: _Optional[int] = ..., received_bytes: _Optional[int] = ..., round_received_bytes: _Optional[int] = ..., round_limit_bytes: _Optional[int] = ..., work_done: _Optional[int] = ..., work_total: _Optional[int] = ...) -> None: ...

class SessionStatus(_message.Message):
    __slots__ = ("ref", "state", "progress", "failure", "digest", "epoch", "batch_id", "count", "started", "ended", "rounds", "peak_rss_bytes", "keygen_security", "statistical_security_bits")
    REF_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PROGRESS_FIELD_NUMBER: _ClassVar[int]
    FAILURE_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    BATCH_ID_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    PEAK_RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    KEYGEN_SECURITY_FIELD_NUMBER: _ClassVar[int]
    STATISTICAL_SECURITY_BITS_FIELD_NUMBER: _ClassVar[int]
    ref: SessionRef
    state: JobState
    progress: Progress
    failure: Failure
    digest: bytes
    epoch: int
    batch_id: str
    count: int
    started: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    rounds: int
    peak_rss_bytes: int
    keygen_security: str
    statistical_security_bits: int
    def __init__(self, ref: _Optional[_Union[SessionRef, _Mapping]] = ..., state: _Optional[_Union[JobState, str]] = ..., progress: _Optional[_Union[Progress, _Mapping]] = ..., failure: _Optional[_Union[Failure, _Mapping]] = ..., digest: _Optional[bytes] = ..., epoch: _Optional[int] = ..., batch_id: _Optional[str] = ..., count: _Optional[int] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., rounds: _Optional[int] = ..., peak_rss_bytes: _Optional[int] = ..., keygen_security: _Optional[str] = ..., statistical_security_bits: _Optional[int] = ...) -> None: ...
