from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class AnnounceRequest(_message.Message):
    __slots__ = ("records",)
    RECORDS_FIELD_NUMBER: _ClassVar[int]
    records: _containers.RepeatedScalarFieldContainer[bytes]
    def __init__(self, records: _Optional[_Iterable[bytes]] = ...) -> None: ...

class AnnounceResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPublishedRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPublishedResponse(_message.Message):
    __slots__ = ("params", "params_hash", "crs_digest", "keys")
    PARAMS_FIELD_NUMBER: _ClassVar[int]
    PARAMS_HASH_FIELD_NUMBER: _ClassVar[int]
    CRS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    params: str
    params_hash: bytes
    crs_digest: bytes
    keys: _containers.RepeatedCompositeFieldContainer[PublishedKey]
    def __init__(self, params: _Optional[str] = ..., params_hash: _Optional[bytes] = ..., crs_digest: _Optional[bytes] = ..., keys: _Optional[_Iterable[_Union[PublishedKey, _Mapping]]] = ...) -> None: ...

class PublishedKey(_message.Message):
    __slots__ = ("owner", "name", "version", "key", "state", "present", "record", "revocation", "weak_owner")
    OWNER_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    PRESENT_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    REVOCATION_FIELD_NUMBER: _ClassVar[int]
    WEAK_OWNER_FIELD_NUMBER: _ClassVar[int]
    owner: int
    name: str
    version: int
    key: bytes
    state: str
    present: bool
    record: bytes
    revocation: bytes
    weak_owner: bool
    def __init__(self, owner: _Optional[int] = ..., name: _Optional[str] = ..., version: _Optional[int] = ..., key: _Optional[bytes] = ..., state: _Optional[str] = ..., present: bool = ..., record: _Optional[bytes] = ..., revocation: _Optional[bytes] = ..., weak_owner: bool = ...) -> None: ...

class GetPublishedRequest(_message.Message):
    __slots__ = ("key", "first", "count")
    KEY_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    key: bytes
    first: int
    count: int
    def __init__(self, key: _Optional[bytes] = ..., first: _Optional[int] = ..., count: _Optional[int] = ...) -> None: ...

class GetPublishedResponse(_message.Message):
    __slots__ = ("header", "chunk_digests", "index", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_DIGESTS_FIELD_NUMBER: _ClassVar[int]
    INDEX_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: bytes
    chunk_digests: _containers.RepeatedScalarFieldContainer[bytes]
    index: int
    chunk: bytes
    def __init__(self, header: _Optional[bytes] = ..., chunk_digests: _Optional[_Iterable[bytes]] = ..., index: _Optional[int] = ..., chunk: _Optional[bytes] = ...) -> None: ...
