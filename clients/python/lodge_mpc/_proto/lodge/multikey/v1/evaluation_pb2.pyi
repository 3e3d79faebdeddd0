import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class InputForm(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    INPUT_FORM_UNSPECIFIED: _ClassVar[InputForm]
    INPUT_FORM_BATCH: _ClassVar[InputForm]
    INPUT_FORM_CIPHERTEXTS: _ClassVar[InputForm]

class EvaluationState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    EVALUATION_STATE_UNSPECIFIED: _ClassVar[EvaluationState]
    EVALUATION_STATE_WAITING: _ClassVar[EvaluationState]
    EVALUATION_STATE_RUNNING: _ClassVar[EvaluationState]
    EVALUATION_STATE_DONE: _ClassVar[EvaluationState]
    EVALUATION_STATE_FAILED: _ClassVar[EvaluationState]
    EVALUATION_STATE_CANCELLED: _ClassVar[EvaluationState]
INPUT_FORM_UNSPECIFIED: InputForm
INPUT_FORM_BATCH: InputForm
INPUT_FORM_CIPHERTEXTS: InputForm
EVALUATION_STATE_UNSPECIFIED: EvaluationState
EVALUATION_STATE_WAITING: EvaluationState
EVALUATION_STATE_RUNNING: EvaluationState
EVALUATION_STATE_DONE: EvaluationState
EVALUATION_STATE_FAILED: EvaluationState
EVALUATION_STATE_CANCELLED: EvaluationState

class InputGroup(_message.Message):
    __slots__ = ("form", "count", "keys")
    FORM_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    form: InputForm
    count: int
    keys: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, form: _Optional[_Union[InputForm, str]] = ..., count: _Optional[int] = ..., keys: _Optional[_Iterable[bytes]] = ...) -> None: ...

class EvaluationHeader(_message.Message):
    __slots__ = ("request_id", "params_hash", "crs_digest", "netlist_bytes", "inputs")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    PARAMS_HASH_FIELD_NUMBER: _ClassVar[int]
    CRS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    NETLIST_BYTES_FIELD_NUMBER: _ClassVar[int]
    INPUTS_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    params_hash: bytes
    crs_digest: bytes
    netlist_bytes: int
    inputs: _containers.RepeatedCompositeFieldContainer[InputGroup]
    def __init__(self, request_id: _Optional[bytes] = ..., params_hash: _Optional[bytes] = ..., crs_digest: _Optional[bytes] = ..., netlist_bytes: _Optional[int] = ..., inputs: _Optional[_Iterable[_Union[InputGroup, _Mapping]]] = ...) -> None: ...

class EstimateRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: EvaluationHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[EvaluationHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class EstimateResponse(_message.Message):
    __slots__ = ("cost",)
    COST_FIELD_NUMBER: _ClassVar[int]
    cost: EvaluationCost
    def __init__(self, cost: _Optional[_Union[EvaluationCost, _Mapping]] = ...) -> None: ...

class EvaluationCost(_message.Message):
    __slots__ = ("gates", "levels", "bootstraps", "rotations", "bootstraps_of_parties", "memory_bytes", "result_bytes", "rotation_seconds", "seconds")
    GATES_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    BOOTSTRAPS_FIELD_NUMBER: _ClassVar[int]
    ROTATIONS_FIELD_NUMBER: _ClassVar[int]
    BOOTSTRAPS_OF_PARTIES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    RESULT_BYTES_FIELD_NUMBER: _ClassVar[int]
    ROTATION_SECONDS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    gates: int
    levels: int
    bootstraps: int
    rotations: int
    bootstraps_of_parties: _containers.RepeatedScalarFieldContainer[int]
    memory_bytes: int
    result_bytes: int
    rotation_seconds: float
    seconds: float
    def __init__(self, gates: _Optional[int] = ..., levels: _Optional[int] = ..., bootstraps: _Optional[int] = ..., rotations: _Optional[int] = ..., bootstraps_of_parties: _Optional[_Iterable[int]] = ..., memory_bytes: _Optional[int] = ..., result_bytes: _Optional[int] = ..., rotation_seconds: _Optional[float] = ..., seconds: _Optional[float] = ...) -> None: ...

class SubmitRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: EvaluationHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[EvaluationHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class SubmitResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: EvaluationJob
    def __init__(self, job: _Optional[_Union[EvaluationJob, _Mapping]] = ...) -> None: ...

class EvaluationJob(_message.Message):
    __slots__ = ("request_id", "state", "cost", "done", "created", "started", "ended", "netlist_digest", "result_digest", "results", "kept_until", "code", "what", "next")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    COST_FIELD_NUMBER: _ClassVar[int]
    DONE_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    NETLIST_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESULT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    KEPT_UNTIL_FIELD_NUMBER: _ClassVar[int]
    CODE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    state: EvaluationState
    cost: EvaluationCost
    done: int
    created: _timestamp_pb2.Timestamp
    started: _timestamp_pb2.Timestamp
    ended: _timestamp_pb2.Timestamp
    netlist_digest: bytes
    result_digest: bytes
    results: _containers.RepeatedCompositeFieldContainer[InputGroup]
    kept_until: _timestamp_pb2.Timestamp
    code: str
    what: str
    next: str
    def __init__(self, request_id: _Optional[bytes] = ..., state: _Optional[_Union[EvaluationState, str]] = ..., cost: _Optional[_Union[EvaluationCost, _Mapping]] = ..., done: _Optional[int] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ended: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., netlist_digest: _Optional[bytes] = ..., result_digest: _Optional[bytes] = ..., results: _Optional[_Iterable[_Union[InputGroup, _Mapping]]] = ..., kept_until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., code: _Optional[str] = ..., what: _Optional[str] = ..., next: _Optional[str] = ...) -> None: ...

class GetJobRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    def __init__(self, request_id: _Optional[bytes] = ...) -> None: ...

class GetJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: EvaluationJob
    def __init__(self, job: _Optional[_Union[EvaluationJob, _Mapping]] = ...) -> None: ...

class WatchJobRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    def __init__(self, request_id: _Optional[bytes] = ...) -> None: ...

class WatchJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: EvaluationJob
    def __init__(self, job: _Optional[_Union[EvaluationJob, _Mapping]] = ...) -> None: ...

class ListJobsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListJobsResponse(_message.Message):
    __slots__ = ("jobs",)
    JOBS_FIELD_NUMBER: _ClassVar[int]
    jobs: _containers.RepeatedCompositeFieldContainer[EvaluationJob]
    def __init__(self, jobs: _Optional[_Iterable[_Union[EvaluationJob, _Mapping]]] = ...) -> None: ...

class CancelJobRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    def __init__(self, request_id: _Optional[bytes] = ...) -> None: ...

class CancelJobResponse(_message.Message):
    __slots__ = ("job",)
    JOB_FIELD_NUMBER: _ClassVar[int]
    job: EvaluationJob
    def __init__(self, job: _Optional[_Union[EvaluationJob, _Mapping]] = ...) -> None: ...

class GetResultRequest(_message.Message):
    __slots__ = ("result_digest", "offset")
    RESULT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    result_digest: bytes
    offset: int
    def __init__(self, result_digest: _Optional[bytes] = ..., offset: _Optional[int] = ...) -> None: ...

class GetResultResponse(_message.Message):
    __slots__ = ("results", "bytes", "chunk")
    RESULTS_FIELD_NUMBER: _ClassVar[int]
    BYTES_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    results: _containers.RepeatedCompositeFieldContainer[InputGroup]
    bytes: int
    chunk: bytes
    def __init__(self, results: _Optional[_Iterable[_Union[InputGroup, _Mapping]]] = ..., bytes: _Optional[int] = ..., chunk: _Optional[bytes] = ...) -> None: ...
