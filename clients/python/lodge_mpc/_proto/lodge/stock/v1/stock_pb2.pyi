import datetime

from google.protobuf import duration_pb2 as _duration_pb2
from google.protobuf import timestamp_pb2 as _timestamp_pb2
from lodge_mpc._proto.lodge.tuples.v1 import tuples_pb2 as _tuples_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ReserveRequest(_message.Message):
    __slots__ = ("count", "epoch", "lease", "idempotency_key", "clients", "wait")
    CLASS_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LEASE_FIELD_NUMBER: _ClassVar[int]
    IDEMPOTENCY_KEY_FIELD_NUMBER: _ClassVar[int]
    CLIENTS_FIELD_NUMBER: _ClassVar[int]
    WAIT_FIELD_NUMBER: _ClassVar[int]
    count: int
    epoch: int
    lease: _duration_pb2.Duration
    idempotency_key: str
    clients: _containers.RepeatedScalarFieldContainer[str]
    wait: bool
    def __init__(self, count: _Optional[int] = ..., epoch: _Optional[int] = ..., lease: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., idempotency_key: _Optional[str] = ..., clients: _Optional[_Iterable[str]] = ..., wait: bool = ..., **kwargs) -> None: ...

class ReserveResponse(_message.Message):
    __slots__ = ("reservation",)
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    reservation: _tuples_pb2.Reservation
    def __init__(self, reservation: _Optional[_Union[_tuples_pb2.Reservation, _Mapping]] = ...) -> None: ...

class GetReservationRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class GetReservationResponse(_message.Message):
    __slots__ = ("reservation", "parties")
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    PARTIES_FIELD_NUMBER: _ClassVar[int]
    reservation: _tuples_pb2.Reservation
    parties: _containers.RepeatedCompositeFieldContainer[PartyReservation]
    def __init__(self, reservation: _Optional[_Union[_tuples_pb2.Reservation, _Mapping]] = ..., parties: _Optional[_Iterable[_Union[PartyReservation, _Mapping]]] = ...) -> None: ...

class PartyReservation(_message.Message):
    __slots__ = ("party", "name", "reachable", "state")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REACHABLE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    party: int
    name: str
    reachable: bool
    state: _tuples_pb2.ReservationState
    def __init__(self, party: _Optional[int] = ..., name: _Optional[str] = ..., reachable: bool = ..., state: _Optional[_Union[_tuples_pb2.ReservationState, str]] = ...) -> None: ...

class ListReservationsRequest(_message.Message):
    __slots__ = ("open", "limit", "before")
    OPEN_FIELD_NUMBER: _ClassVar[int]
    LIMIT_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    open: bool
    limit: int
    before: str
    def __init__(self, open: bool = ..., limit: _Optional[int] = ..., before: _Optional[str] = ...) -> None: ...

class ListReservationsResponse(_message.Message):
    __slots__ = ("reservations", "next")
    RESERVATIONS_FIELD_NUMBER: _ClassVar[int]
    NEXT_FIELD_NUMBER: _ClassVar[int]
    reservations: _containers.RepeatedCompositeFieldContainer[_tuples_pb2.Reservation]
    next: str
    def __init__(self, reservations: _Optional[_Iterable[_Union[_tuples_pb2.Reservation, _Mapping]]] = ..., next: _Optional[str] = ...) -> None: ...

class ReleaseRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class ReleaseResponse(_message.Message):
    __slots__ = ("reservation", "returned")
    RESERVATION_FIELD_NUMBER: _ClassVar[int]
    RETURNED_FIELD_NUMBER: _ClassVar[int]
    reservation: _tuples_pb2.Reservation
    returned: bool
    def __init__(self, reservation: _Optional[_Union[_tuples_pb2.Reservation, _Mapping]] = ..., returned: bool = ...) -> None: ...

class Stock(_message.Message):
    __slots__ = ("epoch", "available", "reserved", "consumed", "lost", "in_production", "made_per_second", "reserved_per_second", "time_to_empty", "time_to_full", "policy", "held_back")
    CLASS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    AVAILABLE_FIELD_NUMBER: _ClassVar[int]
    RESERVED_FIELD_NUMBER: _ClassVar[int]
    CONSUMED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    IN_PRODUCTION_FIELD_NUMBER: _ClassVar[int]
    MADE_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    RESERVED_PER_SECOND_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_EMPTY_FIELD_NUMBER: _ClassVar[int]
    TIME_TO_FULL_FIELD_NUMBER: _ClassVar[int]
    POLICY_FIELD_NUMBER: _ClassVar[int]
    HELD_BACK_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    available: int
    reserved: int
    consumed: int
    lost: int
    in_production: int
    made_per_second: float
    reserved_per_second: float
    time_to_empty: _duration_pb2.Duration
    time_to_full: _duration_pb2.Duration
    policy: Policy
    held_back: str
    def __init__(self, epoch: _Optional[int] = ..., available: _Optional[int] = ..., reserved: _Optional[int] = ..., consumed: _Optional[int] = ..., lost: _Optional[int] = ..., in_production: _Optional[int] = ..., made_per_second: _Optional[float] = ..., reserved_per_second: _Optional[float] = ..., time_to_empty: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., time_to_full: _Optional[_Union[datetime.timedelta, _duration_pb2.Duration, _Mapping]] = ..., policy: _Optional[_Union[Policy, _Mapping]] = ..., held_back: _Optional[str] = ..., **kwargs) -> None: ...

class Policy(_message.Message):
    __slots__ = ("epoch", "low", "high", "batch", "priority", "paused", "dim")
    CLASS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    LOW_FIELD_NUMBER: _ClassVar[int]
    HIGH_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    DIM_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    low: int
    high: int
    batch: int
    priority: int
    paused: bool
    dim: int
    def __init__(self, epoch: _Optional[int] = ..., low: _Optional[int] = ..., high: _Optional[int] = ..., batch: _Optional[int] = ..., priority: _Optional[int] = ..., paused: bool = ..., dim: _Optional[int] = ..., **kwargs) -> None: ...

class GetStockRequest(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class GetStockResponse(_message.Message):
    __slots__ = ("stock", "as_of", "away")
    STOCK_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    AWAY_FIELD_NUMBER: _ClassVar[int]
    stock: _containers.RepeatedCompositeFieldContainer[Stock]
    as_of: _timestamp_pb2.Timestamp
    away: _containers.RepeatedCompositeFieldContainer[AwayParty]
    def __init__(self, stock: _Optional[_Iterable[_Union[Stock, _Mapping]]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., away: _Optional[_Iterable[_Union[AwayParty, _Mapping]]] = ...) -> None: ...

class AwayParty(_message.Message):
    __slots__ = ("party", "name", "reason")
    PARTY_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    party: int
    name: str
    reason: str
    def __init__(self, party: _Optional[int] = ..., name: _Optional[str] = ..., reason: _Optional[str] = ...) -> None: ...

class WatchStockRequest(_message.Message):
    __slots__ = ("epoch",)
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ...) -> None: ...

class WatchStockResponse(_message.Message):
    __slots__ = ("stock", "as_of", "away")
    STOCK_FIELD_NUMBER: _ClassVar[int]
    AS_OF_FIELD_NUMBER: _ClassVar[int]
    AWAY_FIELD_NUMBER: _ClassVar[int]
    stock: _containers.RepeatedCompositeFieldContainer[Stock]
    as_of: _timestamp_pb2.Timestamp
    away: _containers.RepeatedCompositeFieldContainer[AwayParty]
    def __init__(self, stock: _Optional[_Iterable[_Union[Stock, _Mapping]]] = ..., as_of: _Optional[_Union[datetime.datetime, _timestamp_pb2.Timestamp, _Mapping]] = ..., away: _Optional[_Iterable[_Union[AwayParty, _Mapping]]] = ...) -> None: ...

class ListPoliciesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListPoliciesResponse(_message.Message):
    __slots__ = ("policies",)
    POLICIES_FIELD_NUMBER: _ClassVar[int]
    policies: _containers.RepeatedCompositeFieldContainer[Policy]
    def __init__(self, policies: _Optional[_Iterable[_Union[Policy, _Mapping]]] = ...) -> None: ...

class SetPolicyRequest(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: Policy
    def __init__(self, policy: _Optional[_Union[Policy, _Mapping]] = ...) -> None: ...

class SetPolicyResponse(_message.Message):
    __slots__ = ("policy",)
    POLICY_FIELD_NUMBER: _ClassVar[int]
    policy: Policy
    def __init__(self, policy: _Optional[_Union[Policy, _Mapping]] = ...) -> None: ...

class DeletePolicyRequest(_message.Message):
    __slots__ = ("epoch",)
    CLASS_FIELD_NUMBER: _ClassVar[int]
    EPOCH_FIELD_NUMBER: _ClassVar[int]
    epoch: int
    def __init__(self, epoch: _Optional[int] = ..., **kwargs) -> None: ...

class DeletePolicyResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
