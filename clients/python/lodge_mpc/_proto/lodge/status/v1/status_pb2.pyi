import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ParamsPin(_message.Message):
    __slots__ = ("name", "hash")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    name: str
    hash: bytes
    def __init__(self, name: _Optional[str] = ..., hash: _Optional[bytes] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("name", "party", "version", "protocol_version", "roster_hash", "params", "ready", "started", "active_sessions", "rss_bytes", "peak_rss_bytes")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_VERSION_FIELD_NUMBER: _ClassVar[int]
    ROSTER_HASH_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_SESSIONS_FIELD_NUMBER: _ClassVar[int]
    RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    PEAK_RSS_BYTES_FIELD_NUMBER: _ClassVar[int]
    name: str
    party: int
    version: str
    protocol_version: int
    roster_hash: bytes
    params: _containers.RepeatedCompositeFieldContainer[ParamsPin]
    ready: bool
    started: _timestamp_pb2.Timestamp
    active_sessions: int
    rss_bytes: int
    peak_rss_bytes: int
    def __init__(self, name: _Optional[str] = ..., party: _Optional[int] = ..., version: _Optional[str] = ..., protocol_version: _Optional[int] = ..., roster_hash: _Optional[bytes] = ..., params: _Optional[_Iterable[_Union[ParamsPin, _Mapping]]] = ..., ready: bool = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., active_sessions: _Optional[int] = ..., rss_bytes: _Optional[int] = ..., peak_rss_bytes: _Optional[int] = ...) -> None: ...

class ErrorDetail(_message.Message):
    __slots__ = ("code", "what", "next")
    CODE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    code: str
    what: str
    next: str
    def __init__(self, code: _Optional[str] = ..., what: _Optional[str] = ..., next: _Optional[str] = ...) -> None: ...
