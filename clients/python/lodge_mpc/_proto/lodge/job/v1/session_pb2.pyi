from lodge_mpc._proto.lodge.job.v1 import job_pb2 as _job_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StartRequest(_message.Message):
    __slots__ = ("spec",)
    SPEC_FIELD_NUMBER: _ClassVar[int]
    spec: _job_pb2.SessionSpec
    def __init__(self, spec: _Optional[_Union[_job_pb2.SessionSpec, _Mapping]] = ...) -> None: ...

class StartResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _job_pb2.SessionStatus
    def __init__(self, status: _Optional[_Union[_job_pb2.SessionStatus, _Mapping]] = ...) -> None: ...

class GetStatusRequest(_message.Message):
    __slots__ = ("ref",)
    REF_FIELD_NUMBER: _ClassVar[int]
    ref: _job_pb2.SessionRef
    def __init__(self, ref: _Optional[_Union[_job_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _job_pb2.SessionStatus
    def __init__(self, status: _Optional[_Union[_job_pb2.SessionStatus, _Mapping]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("ref",)
    REF_FIELD_NUMBER: _ClassVar[int]
    ref: _job_pb2.SessionRef
    def __init__(self, ref: _Optional[_Union[_job_pb2.SessionRef, _Mapping]] = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _job_pb2.SessionStatus
    def __init__(self, status: _Optional[_Union[_job_pb2.SessionStatus, _Mapping]] = ...) -> None: ...

class CancelRequest(_message.Message):
    __slots__ = ("ref", "reason")
    REF_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    ref: _job_pb2.SessionRef
    reason: str
    def __init__(self, ref: _Optional[_Union[_job_pb2.SessionRef, _Mapping]] = ..., reason: _Optional[str] = ...) -> None: ...

class CancelResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _job_pb2.SessionStatus
    def __init__(self, status: _Optional[_Union[_job_pb2.SessionStatus, _Mapping]] = ...) -> None: ...

class ActivateRequest(_message.Message):
    __slots__ = ("ref", "digest")
    REF_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    ref: _job_pb2.SessionRef
    digest: bytes
    def __init__(self, ref: _Optional[_Union[_job_pb2.SessionRef, _Mapping]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class ActivateResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: _job_pb2.SessionStatus
    def __init__(self, status: _Optional[_Union[_job_pb2.SessionStatus, _Mapping]] = ...) -> None: ...
