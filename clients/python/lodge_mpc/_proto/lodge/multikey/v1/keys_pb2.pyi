import datetime

from google.protobuf import timestamp_pb2 as _timestamp_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class MultikeyKeys(_message.Message):
    __slots__ = ("version", "state", "owner", "params", "params_hash", "crs", "key", "key_bytes", "created", "retired", "reason", "record", "revocation", "pinned")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    OWNER_FIELD_NUMBER: _ClassVar[int]
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    PARAMS_HASH_FIELD_NUMBER: _ClassVar[int]
    CRS_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    KEY_BYTES_FIELD_NUMBER: _ClassVar[int]
    CREATED_FIELD_NUMBER: _ClassVar[int]
    RETIRED_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    version: int
    state: str
    owner: int
    params: str
    params_hash: bytes
    crs: bytes
    key: bytes
    key_bytes: int
    created: _timestamp_pb2.Timestamp
    retired: _timestamp_pb2.Timestamp
    reason: str
    record: bytes
    revocation: bytes
    pinned: bool
    def __init__(self, version: _Optional[int] = ..., state: _Optional[str] = ..., owner: _Optional[int] = ..., params: _Optional[str] = ..., params_hash: _Optional[bytes] = ..., crs: _Optional[bytes] = ..., key: _Optional[bytes] = ..., key_bytes: _Optional[int] = ..., created: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., retired: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., reason: _Optional[str] = ..., record: _Optional[bytes] = ..., revocation: _Optional[bytes] = ..., pinned: bool = ...) -> None: ...

class MakeKeysRequest(_message.Message):
    __slots__ = ("request_id",)
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    request_id: bytes
    def __init__(self, request_id: _Optional[bytes] = ...) -> None: ...

class MakeKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: MultikeyKeys
    def __init__(self, keys: _Optional[_Union[MultikeyKeys, _Mapping]] = ...) -> None: ...

class ListKeysRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: _containers.RepeatedCompositeFieldContainer[MultikeyKeys]
    def __init__(self, keys: _Optional[_Iterable[_Union[MultikeyKeys, _Mapping]]] = ...) -> None: ...

class DestroyKeysRequest(_message.Message):
    __slots__ = ("version", "reason")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    version: int
    reason: str
    def __init__(self, version: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class DestroyKeysResponse(_message.Message):
    __slots__ = ("keys",)
    KEYS_FIELD_NUMBER: _ClassVar[int]
    keys: MultikeyKeys
    def __init__(self, keys: _Optional[_Union[MultikeyKeys, _Mapping]] = ...) -> None: ...

class EncryptRequest(_message.Message):
    __slots__ = ("version", "count", "bits")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    version: int
    count: int
    bits: bytes
    def __init__(self, version: _Optional[int] = ..., count: _Optional[int] = ..., bits: _Optional[bytes] = ...) -> None: ...

class EncryptResponse(_message.Message):
    __slots__ = ("keys", "batch")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    keys: MultikeyKeys
    batch: bytes
    def __init__(self, keys: _Optional[_Union[MultikeyKeys, _Mapping]] = ..., batch: _Optional[bytes] = ...) -> None: ...
