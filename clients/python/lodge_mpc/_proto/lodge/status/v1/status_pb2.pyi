import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class LinkState(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LINK_STATE_UNSPECIFIED: _ClassVar[LinkState]
    LINK_STATE_CONNECTED: _ClassVar[LinkState]
    LINK_STATE_CONNECTING: _ClassVar[LinkState]
    LINK_STATE_FAILING: _ClassVar[LinkState]
    LINK_STATE_IDLE: _ClassVar[LinkState]
LINK_STATE_UNSPECIFIED: LinkState
LINK_STATE_CONNECTED: LinkState
LINK_STATE_CONNECTING: LinkState
LINK_STATE_FAILING: LinkState
LINK_STATE_IDLE: LinkState

class GetStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchStatusRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class WatchStatusResponse(_message.Message):
    __slots__ = ("status",)
    STATUS_FIELD_NUMBER: _ClassVar[int]
    status: GetStatusResponse
    def __init__(self, status: _Optional[_Union[GetStatusResponse, _Mapping]] = ...) -> None: ...

class ListAuditEntriesRequest(_message.Message):
    __slots__ = ("before", "limit", "contains", "events")
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    CONTAINS_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    before: int
    limit: int
    contains: str
    events: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, before: _Optional[int] = ..., limit: _Optional[int] = ..., contains: _Optional[str] = ..., events: _Optional[_Iterable[str]] = ...) -> None: ...

class ListAuditEntriesResponse(_message.Message):
    __slots__ = ("entries", "next")
    ENTRIES_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    entries: _containers.RepeatedCompositeFieldContainer[AuditEntry]
    next: int
    def __init__(self, entries: _Optional[_Iterable[_Union[AuditEntry, _Mapping]]] = ..., next: _Optional[int] = ...) -> None: ...

class AuditEntry(_message.Message):
    __slots__ = ("sequence", "time", "actor", "auth", "event", "tenant", "objects", "ranges", "count", "digest", "note", "hash", "previous")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    TIME_FIELD_NUMBER: _ClassVar[int]
    ACTOR_FIELD_NUMBER: _ClassVar[int]
    AUTH_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    TENANT_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    RANGES_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    NOTE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    PREVIOUS_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    time: _timestamp_pb2.Timestamp
    actor: str
    auth: str
    event: str
    tenant: str
    objects: _containers.RepeatedScalarFieldContainer[str]
    ranges: _containers.RepeatedCompositeFieldContainer[AuditRange]
    count: int
    digest: bytes
    note: str
    hash: bytes
    previous: bytes
    def __init__(self, sequence: _Optional[int] = ..., time: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., actor: _Optional[str] = ..., auth: _Optional[str] = ..., event: _Optional[str] = ..., tenant: _Optional[str] = ..., objects: _Optional[_Iterable[str]] = ..., ranges: _Optional[_Iterable[_Union[AuditRange, _Mapping]]] = ..., count: _Optional[int] = ..., digest: _Optional[bytes] = ..., note: _Optional[str] = ..., hash: _Optional[bytes] = ..., previous: _Optional[bytes] = ...) -> None: ...

class AuditRange(_message.Message):
    __slots__ = ("object", "first", "count")
    OBJECT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    object: str
    first: int
    count: int
    def __init__(self, object: _Optional[str] = ..., first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class ParamsPin(_message.Message):
    __slots__ = ("name", "hash")
    NAME_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    name: str
    hash: bytes
    def __init__(self, name: _Optional[str] = ..., hash: _Optional[bytes] = ...) -> None: ...

class GetStatusResponse(_message.Message):
    __slots__ = ("name", "party", "version", "protocol_version", "roster_hash", "params", "ready", "started", "active_sessions", "rss_bytes", "peak_rss_bytes", "now", "certificate_not_after", "links", "store", "audit", "max_memory_bytes", "conduct", "log_level", "linear", "volumes", "multikey_params")
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
    NOW_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    STORE_FIELD_NUMBER: _ClassVar[int]
    AUDIT_FIELD_NUMBER: _ClassVar[int]
    MAX_MEMORY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CONDUCT_FIELD_NUMBER: _ClassVar[int]
    LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    VOLUMES_FIELD_NUMBER: _ClassVar[int]
    MULTIKEY_PARAMS_FIELD_NUMBER: _ClassVar[int]
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
    now: _timestamp_pb2.Timestamp
    certificate_not_after: _timestamp_pb2.Timestamp
    links: _containers.RepeatedCompositeFieldContainer[Link]
    store: Store
    audit: AuditHead
    max_memory_bytes: int
    conduct: Conduct
    log_level: LogLevel
    linear: _containers.RepeatedCompositeFieldContainer[LinearDistance]
    volumes: _containers.RepeatedCompositeFieldContainer[Volume]
    multikey_params: str
    def __init__(self, name: _Optional[str] = ..., party: _Optional[int] = ..., version: _Optional[str] = ..., protocol_version: _Optional[int] = ..., roster_hash: _Optional[bytes] = ..., params: _Optional[_Iterable[_Union[ParamsPin, _Mapping]]] = ..., ready: bool = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., active_sessions: _Optional[int] = ..., rss_bytes: _Optional[int] = ..., peak_rss_bytes: _Optional[int] = ..., now: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., certificate_not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ..., store: _Optional[_Union[Store, _Mapping]] = ..., audit: _Optional[_Union[AuditHead, _Mapping]] = ..., max_memory_bytes: _Optional[int] = ..., conduct: _Optional[_Union[Conduct, _Mapping]] = ..., log_level: _Optional[_Union[LogLevel, _Mapping]] = ..., linear: _Optional[_Iterable[_Union[LinearDistance, _Mapping]]] = ..., volumes: _Optional[_Iterable[_Union[Volume, _Mapping]]] = ..., multikey_params: _Optional[str] = ...) -> None: ...

class LinearDistance(_message.Message):
    __slots__ = ("client", "log_spent", "log_budget", "products", "lost")
    CLIENT_FIELD_NUMBER: _ClassVar[int]
    WITH_FIELD_NUMBER: _ClassVar[int]
    LOG_SPENT_FIELD_NUMBER: _ClassVar[int]
    LOG_BUDGET_FIELD_NUMBER: _ClassVar[int]
    PRODUCTS_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    client: str
    log_spent: float
    log_budget: float
    products: int
    lost: bool
    def __init__(self, client: _Optional[str] = ..., log_spent: _Optional[float] = ..., log_budget: _Optional[float] = ..., products: _Optional[int] = ..., lost: bool = ..., **kwargs) -> None: ...

class LogLevel(_message.Message):
    __slots__ = ("level", "until")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    UNTIL_FIELD_NUMBER: _ClassVar[int]
    level: str
    until: _timestamp_pb2.Timestamp
    def __init__(self, level: _Optional[str] = ..., until: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ...) -> None: ...

class SetLogLevelRequest(_message.Message):
    __slots__ = ("level", "span")
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    SPAN_FIELD_NUMBER: _ClassVar[int]
    level: str
    span: _duration_pb2.Duration
    def __init__(self, level: _Optional[str] = ..., span: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ...) -> None: ...

class SetLogLevelResponse(_message.Message):
    __slots__ = ("log_level",)
    LOG_LEVEL_FIELD_NUMBER: _ClassVar[int]
    log_level: LogLevel
    def __init__(self, log_level: _Optional[_Union[LogLevel, _Mapping]] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("name", "party", "state", "reachable", "since", "round_trip", "version", "certificate_not_after", "ready", "started", "roster_hash")
    NAME_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    SINCE_FIELD_NUMBER: _ClassVar[int]
    ROUND_TRIP_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_NOT_AFTER_FIELD_NUMBER: _ClassVar[int]
    READY_FIELD_NUMBER: _ClassVar[int]
    STARTED_FIELD_NUMBER: _ClassVar[int]
    ROSTER_HASH_FIELD_NUMBER: _ClassVar[int]
    name: str
    party: int
    state: LinkState
    reachable: bool
    since: _timestamp_pb2.Timestamp
    round_trip: _duration_pb2.Duration
    version: str
    certificate_not_after: _timestamp_pb2.Timestamp
    ready: bool
    started: _timestamp_pb2.Timestamp
    roster_hash: bytes
    def __init__(self, name: _Optional[str] = ..., party: _Optional[int] = ..., state: _Optional[_Union[LinkState, str]] = ..., reachable: bool = ..., since: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., round_trip: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., version: _Optional[str] = ..., certificate_not_after: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., ready: bool = ..., started: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., roster_hash: _Optional[bytes] = ...) -> None: ...

class Volume(_message.Message):
    __slots__ = ("name", "free_bytes", "total_bytes", "min_free_bytes", "low")
    NAME_FIELD_NUMBER: _ClassVar[int]
    FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    MIN_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    name: str
    free_bytes: int
    total_bytes: int
    min_free_bytes: int
    low: bool
    def __init__(self, name: _Optional[str] = ..., free_bytes: _Optional[int] = ..., total_bytes: _Optional[int] = ..., min_free_bytes: _Optional[int] = ..., low: bool = ...) -> None: ...

class Store(_message.Message):
    __slots__ = ("id", "generation", "quarantine", "fault", "disk_free_bytes", "disk_total_bytes", "postgres")
    ID_FIELD_NUMBER: _ClassVar[int]
    GENERATION_FIELD_NUMBER: _ClassVar[int]
    QUARANTINE_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    DISK_FREE_BYTES_FIELD_NUMBER: _ClassVar[int]
    DISK_TOTAL_BYTES_FIELD_NUMBER: _ClassVar[int]
    POSTGRES_FIELD_NUMBER: _ClassVar[int]
    id: bytes
    generation: int
    quarantine: str
    fault: str
    disk_free_bytes: int
    disk_total_bytes: int
    postgres: bool
    def __init__(self, id: _Optional[bytes] = ..., generation: _Optional[int] = ..., quarantine: _Optional[str] = ..., fault: _Optional[str] = ..., disk_free_bytes: _Optional[int] = ..., disk_total_bytes: _Optional[int] = ..., postgres: bool = ...) -> None: ...

class Conduct(_message.Message):
    __slots__ = ("refusal", "excluded", "failures", "max_failures")
    REFUSAL_FIELD_NUMBER: _ClassVar[int]
    EXCLUDED_FIELD_NUMBER: _ClassVar[int]
    FAILURES_FIELD_NUMBER: _ClassVar[int]
    MAX_FAILURES_FIELD_NUMBER: _ClassVar[int]
    refusal: str
    excluded: _containers.RepeatedScalarFieldContainer[str]
    failures: int
    max_failures: int
    def __init__(self, refusal: _Optional[str] = ..., excluded: _Optional[_Iterable[str]] = ..., failures: _Optional[int] = ..., max_failures: _Optional[int] = ...) -> None: ...

class AuditHead(_message.Message):
    __slots__ = ("sequence", "hash", "fault")
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    HASH_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    sequence: int
    hash: bytes
    fault: str
    def __init__(self, sequence: _Optional[int] = ..., hash: _Optional[bytes] = ..., fault: _Optional[str] = ...) -> None: ...

class ErrorDetail(_message.Message):
    __slots__ = ("code", "what", "next")
    CODE_FIELD_NUMBER: _ClassVar[int]
    WHAT_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    code: str
    what: str
    next: str
    def __init__(self, code: _Optional[str] = ..., what: _Optional[str] = ..., next: _Optional[str] = ...) -> None: ...
