"""Reservations and stock, as Python has them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timezone

from ._proto.lodge.job.v1 import job_pb2
from ._proto.lodge.stock.v1 import stock_pb2
from ._proto.lodge.tuples.v1 import tuples_pb2

#: Kinds of tuples.
KINDS = ("scalar", "matrix", "square", "random", "bit", "inverse", "input")

_TO_WIRE = {kind: getattr(job_pb2, f"KIND_{kind.upper()}") for kind in KINDS}
_FROM_WIRE = {value: kind for kind, value in _TO_WIRE.items()}


@dataclass(frozen=True)
class Class:
    """What tuples are; all tuples of a class are as good as each other."""

    kind: str
    field: str
    params: str
    tenant: str
    shape: tuple[int, int, int] | None = None  #: (rows, inner, columns) of matrices
    input_party: int | None = None  #: of input masks: the party that knows the values

    def wire(self) -> tuples_pb2.Class:
        out = tuples_pb2.Class(tenant=self.tenant, kind=_TO_WIRE[self.kind], params=self.params, field=self.field)
        if self.shape is not None:
            rows, inner, columns = self.shape
            out.shape.CopyFrom(job_pb2.Shape(rows=rows, inner=inner, columns=columns))
        out.input_party = self.input_party or 0
        return out

    @classmethod
    def of(cls, c: tuples_pb2.Class) -> Class:
        kind = _FROM_WIRE.get(c.kind, "")
        shape = (c.shape.rows, c.shape.inner, c.shape.columns) if c.HasField("shape") else None
        return cls(kind, c.field, c.params, c.tenant, shape, c.input_party if kind == "input" else None)


@dataclass(frozen=True)
class Reservation:
    """Tuples that every party holds under one id, for one client at each."""

    id: str
    tuples: Class
    count: int
    epoch: int  #: of the keys
    mac_key_id: str
    lease: datetime  #: UTC; nothing is given out after it
    owner: str  #: the client that reserved
    clients: tuple[str, ...]  #: who may fetch: anyone of the tenant if empty, one for all parties, or one for each

    @classmethod
    def of(cls, r: tuples_pb2.Reservation) -> Reservation:
        lease = r.lease.ToDatetime(timezone.utc)
        return cls(
            r.id, Class.of(getattr(r, "class")), r.count, r.epoch, r.mac_key_id, lease, r.owner, tuple(r.clients)
        )


@dataclass(frozen=True)
class StockLevel:
    """What there is of one class in one epoch; counts are of tuples."""

    tuples: Class
    epoch: int
    available: int  #: can be reserved, at all parties
    reserved: int
    consumed: int
    lost: int  #: erased without having been delivered
    in_production: int

    @classmethod
    def of(cls, s: stock_pb2.Stock) -> StockLevel:
        return cls(Class.of(getattr(s, "class")), s.epoch, s.available, s.reserved, s.consumed, s.lost, s.in_production)
