from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ProductMethod(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRODUCT_METHOD_UNSPECIFIED: _ClassVar[ProductMethod]
    PRODUCT_METHOD_FIRST: _ClassVar[ProductMethod]
    PRODUCT_METHOD_SECOND: _ClassVar[ProductMethod]

class Packing(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PACKING_UNSPECIFIED: _ClassVar[Packing]
    PACKING_FORWARD: _ClassVar[Packing]
    PACKING_DOUBLE: _ClassVar[Packing]
    PACKING_TILED: _ClassVar[Packing]
PRODUCT_METHOD_UNSPECIFIED: ProductMethod
PRODUCT_METHOD_FIRST: ProductMethod
PRODUCT_METHOD_SECOND: ProductMethod
PACKING_UNSPECIFIED: Packing
PACKING_FORWARD: Packing
PACKING_DOUBLE: Packing
PACKING_TILED: Packing

class MultiplyHeader(_message.Message):
    __slots__ = ("set", "set_hash", "rows", "inner", "cols", "max_left", "max_right", "method", "first")
    SET_FIELD_NUMBER: _ClassVar[int]
    SET_HASH_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    INNER_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    MAX_LEFT_FIELD_NUMBER: _ClassVar[int]
    MAX_RIGHT_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    set: str
    set_hash: bytes
    rows: int
    inner: int
    cols: int
    max_left: int
    max_right: int
    method: ProductMethod
    first: int
    def __init__(self, set: _Optional[str] = ..., set_hash: _Optional[bytes] = ..., rows: _Optional[int] = ..., inner: _Optional[int] = ..., cols: _Optional[int] = ..., max_left: _Optional[int] = ..., max_right: _Optional[int] = ..., method: _Optional[_Union[ProductMethod, str]] = ..., first: _Optional[int] = ...) -> None: ...

class MultiplyRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: MultiplyHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[MultiplyHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class MultiplyResponse(_message.Message):
    __slots__ = ("terms", "chunk")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    terms: Terms
    chunk: bytes
    def __init__(self, terms: _Optional[_Union[Terms, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class Terms(_message.Message):
    __slots__ = ("security", "answers", "answer_bytes", "log_distance")
    SECURITY_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    ANSWER_BYTES_FIELD_NUMBER: _ClassVar[int]
    LOG_DISTANCE_FIELD_NUMBER: _ClassVar[int]
    security: str
    answers: int
    answer_bytes: int
    log_distance: float
    def __init__(self, security: _Optional[str] = ..., answers: _Optional[int] = ..., answer_bytes: _Optional[int] = ..., log_distance: _Optional[float] = ...) -> None: ...

class VectorShape(_message.Message):
    __slots__ = ("rows", "cols", "packing", "slots")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    PACKING_FIELD_NUMBER: _ClassVar[int]
    SLOTS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    cols: int
    packing: Packing
    slots: int
    def __init__(self, rows: _Optional[int] = ..., cols: _Optional[int] = ..., packing: _Optional[_Union[Packing, str]] = ..., slots: _Optional[int] = ...) -> None: ...

class BatchShape(_message.Message):
    __slots__ = ("rows", "cols", "count", "outputs")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    COLS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_FIELD_NUMBER: _ClassVar[int]
    rows: int
    cols: int
    count: int
    outputs: int
    def __init__(self, rows: _Optional[int] = ..., cols: _Optional[int] = ..., count: _Optional[int] = ..., outputs: _Optional[int] = ...) -> None: ...

class RunHeader(_message.Message):
    __slots__ = ("run", "set", "set_hash", "vector", "batch")
    RUN_FIELD_NUMBER: _ClassVar[int]
    SET_FIELD_NUMBER: _ClassVar[int]
    SET_HASH_FIELD_NUMBER: _ClassVar[int]
    VECTOR_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    WITH_FIELD_NUMBER: _ClassVar[int]
    run: bytes
    set: str
    set_hash: bytes
    vector: VectorShape
    batch: BatchShape
    def __init__(self, run: _Optional[bytes] = ..., set: _Optional[str] = ..., set_hash: _Optional[bytes] = ..., vector: _Optional[_Union[VectorShape, _Mapping]] = ..., batch: _Optional[_Union[BatchShape, _Mapping]] = ..., **kwargs) -> None: ...

class AskRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: RunHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[RunHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class AskResponse(_message.Message):
    __slots__ = ("terms", "chunk", "complete")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    terms: Terms
    chunk: bytes
    complete: bool
    def __init__(self, terms: _Optional[_Union[Terms, _Mapping]] = ..., chunk: _Optional[bytes] = ..., complete: bool = ...) -> None: ...

class AnswerRequest(_message.Message):
    __slots__ = ("header", "chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: RunHeader
    chunk: bytes
    def __init__(self, header: _Optional[_Union[RunHeader, _Mapping]] = ..., chunk: _Optional[bytes] = ...) -> None: ...

class AnswerResponse(_message.Message):
    __slots__ = ("terms", "chunk", "complete")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    CHUNK_FIELD_NUMBER: _ClassVar[int]
    COMPLETE_FIELD_NUMBER: _ClassVar[int]
    terms: Terms
    chunk: bytes
    complete: bool
    def __init__(self, terms: _Optional[_Union[Terms, _Mapping]] = ..., chunk: _Optional[bytes] = ..., complete: bool = ...) -> None: ...
