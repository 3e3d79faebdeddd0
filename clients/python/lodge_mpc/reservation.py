"""Reservations and stock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import overload

from ._proto.lodge.job.v1 import job_pb2
from ._proto.lodge.stock.v1 import stock_pb2
from ._proto.lodge.tuples.v1 import tuples_pb2
from .errors import ConfigError
from .kinds import TABLE

#: The kinds of tuples.
KINDS = tuple(TABLE)

_TO_WIRE = {kind: getattr(job_pb2, f"KIND_{kind.upper()}") for kind in KINDS}
_FROM_WIRE = {value: kind for kind, value in _TO_WIRE.items()}


@dataclass(frozen=True)
class Convolution:
    """The shape of convolutions, as shapes of numpy arrays: images are ``(channels, height, width)``, kernels
    ``(outputs, channels, kernel height, kernel width)``, and results :attr:`result`.
    """

    image: tuple[int, int, int]  #: channels, height, width
    outputs: int
    kernel: tuple[int, int]  #: height, width
    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)  #: rows of zeros above and below, columns at both sides

    @property
    def kernels(self) -> tuple[int, int, int, int]:
        return (self.outputs, self.image[0], *self.kernel)

    @property
    def result(self) -> tuple[int, int, int]:
        sides = zip(self.image[1:], self.kernel, self.stride, self.padding, strict=True)
        height, width = ((size + 2 * padding - kernel) // stride + 1 for size, kernel, stride, padding in sides)
        return (self.outputs, height, width)

    @property
    def sides(self) -> dict[str, int]:
        """The lengths of all dimensions of images, kernels and results, by name."""
        if min(*self.image, self.outputs, *self.kernel, *self.stride) < 1:
            raise ConfigError("a convolution with a size of 0")
        image = zip(("channels", "height", "width"), self.image, strict=True)
        kernels = zip(("outputs", "kernel_height", "kernel_width"), (self.outputs, *self.kernel), strict=True)
        return dict(image) | dict(kernels) | dict(zip(("out_height", "out_width"), self.result[1:], strict=True))

    def wire(self) -> job_pb2.Convolution:
        (channels, height, width), (kernel_height, kernel_width) = self.image, self.kernel
        (stride_height, stride_width), (padding_height, padding_width) = self.stride, self.padding
        return job_pb2.Convolution(
            channels=channels,
            height=height,
            width=width,
            outputs=self.outputs,
            kernel_height=kernel_height,
            kernel_width=kernel_width,
            stride_height=stride_height,
            stride_width=stride_width,
            padding_height=padding_height,
            padding_width=padding_width,
        )

    @classmethod
    def of(cls, c: job_pb2.Convolution) -> Convolution:
        return cls(
            (c.channels, c.height, c.width),
            c.outputs,
            (c.kernel_height, c.kernel_width),
            (c.stride_height, c.stride_width),
            (c.padding_height, c.padding_width),
        )


@dataclass(frozen=True)
class Class:
    """A class of tuples. All tuples of a class are interchangeable."""

    kind: str
    field: str
    params: str
    tenant: str
    shape: tuple[int, int, int] | None = None  #: (rows, inner, columns) of matrices
    input_party: int | None = None  #: of input masks: the party that knows the values
    no_sacrifice: bool = False  #: products that were made without a sacrifice
    convolution: Convolution | None = None  #: the shape of convolutions

    def wire(self) -> tuples_pb2.Class:
        out = tuples_pb2.Class(tenant=self.tenant, kind=_TO_WIRE[self.kind], params=self.params, field=self.field)
        if self.shape is not None:
            rows, inner, columns = self.shape
            out.shape.CopyFrom(job_pb2.Shape(rows=rows, inner=inner, columns=columns))
        if self.convolution is not None:
            out.shape.convolution.CopyFrom(self.convolution.wire())
        out.input_party = self.input_party or 0
        out.no_sacrifice = self.no_sacrifice
        return out

    @classmethod
    def of(cls, c: tuples_pb2.Class) -> Class:
        kind = _FROM_WIRE.get(c.kind, "")
        convolved = Convolution.of(c.shape.convolution) if c.shape.HasField("convolution") else None
        matrices = c.HasField("shape") and convolved is None
        shape = (c.shape.rows, c.shape.inner, c.shape.columns) if matrices else None
        owner = c.input_party if kind and TABLE[kind].owned else None
        return cls(kind, c.field, c.params, c.tenant, shape, owner, c.no_sacrifice, convolved)


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
    fetched_by: str = field(default="", compare=False)  #: the client that has drawn it from the party that was asked

    @classmethod
    def of(cls, r: tuples_pb2.Reservation) -> Reservation:
        lease = r.lease.ToDatetime(timezone.utc)
        tuples, clients = Class.of(getattr(r, "class")), tuple(r.clients)
        return cls(r.id, tuples, r.count, r.epoch, r.mac_key_id, lease, r.owner, clients, r.client)


@dataclass(frozen=True)
class StockLevel:
    """The stock of one class in one epoch; counts are numbers of tuples, or None if unknown."""

    tuples: Class
    epoch: int  #: 0: the newest, of which nothing is known but the policy that keeps it
    available: int | None  #: can be reserved, at all parties
    reserved: int | None
    consumed: int | None
    lost: int | None  #: erased without having been delivered
    in_production: int

    @classmethod
    def of(cls, s: stock_pb2.Stock, known: bool) -> StockLevel:
        available, reserved, consumed, lost = (
            (s.available, s.reserved, s.consumed, s.lost) if known else (None, None, None, None)
        )
        return cls(Class.of(getattr(s, "class")), s.epoch, available, reserved, consumed, lost, s.in_production)


@dataclass(frozen=True)
class AwayParty:
    """A party that the coordinator could not reach."""

    party: int  #: its index
    name: str
    reason: str


@dataclass(frozen=True)
class Stock(Sequence[StockLevel]):
    """The stock of each class and epoch: a sequence of levels, with the time at which they were reported.

    While a party is unreachable, no tuples can be reserved, whatever the levels are.
    """

    levels: tuple[StockLevel, ...]
    #: UTC; the last time at which all parties reported. None if the coordinator has not heard from all of them since
    #: it started; then only in_production is known.
    as_of: datetime | None
    away: tuple[AwayParty, ...]  #: parties that could not be asked last

    @overload
    def __getitem__(self, index: int) -> StockLevel: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[StockLevel, ...]: ...
    def __getitem__(self, index: int | slice) -> StockLevel | tuple[StockLevel, ...]:
        return self.levels[index]

    def __len__(self) -> int:
        return len(self.levels)

    @classmethod
    def of(cls, r: stock_pb2.GetStockResponse) -> Stock:
        as_of = r.as_of.ToDatetime(timezone.utc) if r.HasField("as_of") else None
        levels = tuple(StockLevel.of(s, as_of is not None) for s in r.stock)
        return cls(levels, as_of, tuple(AwayParty(p.party, p.name, p.reason) for p in r.away))
