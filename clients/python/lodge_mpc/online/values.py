"""Shared values: expressions that a session evaluates when a result is opened."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..reservation import Class, Convolution
from .field import Field, Values
from .supply import Tuples

Shape = tuple[int, ...]


class Computation(Protocol):
    """What arrays use of the session that evaluates them.

    Attributes:
        own: this party's number.
        key: this party's share of the MAC key.
    """

    field: Field
    own: int
    key: int

    def numbered(self) -> int:
        """Return the next array's number."""
        ...

    def encoded(self, values: npt.ArrayLike, scale: int | None = None) -> tuple[Values, int]:
        """Return public numbers as elements, with the bits behind their binary point."""
        ...

    def rounded(self, x: Shared, scale: int) -> Shared:
        """Return x with fewer bits behind the binary point."""
        ...

    async def open(self, *arrays: Shared) -> list[Values]:
        """Return the values of arrays to all parties."""
        ...


@dataclass
class Share:
    """This party's additive shares of values and of their MACs."""

    value: Values
    mac: Values

    def __post_init__(self) -> None:
        # numpy's operators turn arrays without dimensions into numbers.
        self.value, self.mac = np.asarray(self.value, dtype=object), np.asarray(self.mac, dtype=object)

    def map(self, change: Callable[[Values], Values]) -> Share:
        return Share(change(self.value), change(self.mac))


class Shared:
    """An array that the parties share. Nobody knows its values until it is opened.

    ``+``, ``-``, ``*`` and ``@`` work with other shared arrays, and with public numbers and arrays, in the shapes of
    numpy. ``open`` computes and sends everything; products that do not depend on each other share one round of
    messages.

    Attributes:
        shape: as of numpy's arrays.
        scale: bits behind the binary point; 0 for integers.
    """

    __array_ufunc__ = None  # so that numpy's arrays leave operators to this class

    def __init__(self, session: Computation, shape: Shape, scale: int, step: Step) -> None:
        self.session, self.shape, self.scale, self.step = session, shape, scale, step
        self.share: Share | None = None  # once it is evaluated
        self.number = session.numbered()

    def arguments(self) -> list[Share]:
        """Return the shares of the arrays that this one is computed from."""
        return [a.share for a in self.step.args if a.share is not None]

    def finish(self, share: Share) -> None:
        """Store the shares, and drop the step and the arrays that they were computed from."""
        self.share, self.step = share, Local((), lambda: share)

    def __repr__(self) -> str:
        return f"<shared array of shape {self.shape}>"

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def T(self) -> Shared:  # noqa: N802
        """The transposed array."""
        return self._mapped(tuple(reversed(self.shape)), np.transpose)

    def reshape(self, *shape: int) -> Shared:
        return self._mapped(np.empty(self.shape, dtype=bool).reshape(shape).shape, lambda v: v.reshape(shape))

    def __getitem__(self, index: Any) -> Shared:
        shape = np.empty(self.shape, dtype=bool)[index].shape
        return self._mapped(shape, lambda v: np.asarray(v[index], dtype=object).reshape(shape))

    def sum(self, axis: int | None = None) -> Shared:
        """Return the sum of all elements, or of those along an axis. It costs no messages."""
        shape = np.empty(self.shape, dtype=bool).sum(axis=axis).shape
        p = self.session.field.p
        return self._mapped(shape, lambda v: np.asarray(v.sum(axis=axis) % p, dtype=object).reshape(shape))

    def __add__(self, other: Shared | npt.ArrayLike) -> Shared:
        if not isinstance(other, Shared):
            return self._plus(other)
        scale = max(self.scale, other.scale)
        a, b = self._scaled(scale), other._scaled(scale)
        shape, p = np.broadcast_shapes(a.shape, b.shape), self.session.field.p
        return Shared(
            self.session,
            shape,
            scale,
            Local((a, b), lambda x, y: Share((x.value + y.value) % p, (x.mac + y.mac) % p)),
        )

    def __neg__(self) -> Shared:
        p = self.session.field.p
        return self._mapped(self.shape, lambda v: -v % p)

    def __sub__(self, other: Shared | npt.ArrayLike) -> Shared:
        return self + (-other if isinstance(other, Shared) else -np.asarray(other))

    def __rsub__(self, other: npt.ArrayLike) -> Shared:
        return -self + other

    def __mul__(self, other: Shared | npt.ArrayLike) -> Shared:
        if not isinstance(other, Shared):
            return self._times(other, lambda v, c: v * c, np.broadcast_shapes)
        return self.session.rounded(self._unrounded(other), max(self.scale, other.scale))

    def __matmul__(self, other: Shared | npt.ArrayLike) -> Shared:
        matmul = self.session.field.matmul
        if not isinstance(other, Shared):
            return self._times(other, lambda v, c: matmul(*_matrices(v, c)).reshape(_inner(v.shape, c.shape)), _inner)
        shape = _inner(self.shape, other.shape)
        rows, columns = math.prod(self.shape[:-1]), math.prod(other.shape[1:])
        if rows == columns == 1:
            products = self.reshape(-1)._unrounded(other.reshape(-1))
            return self.session.rounded(products.sum().reshape(*shape), max(self.scale, other.scale))
        a, b = self.reshape(rows, self.shape[-1]), other.reshape(other.shape[0], columns)
        return a._product(MatrixProduct((a, b)), other, (rows, columns)).reshape(*shape)

    def __rmatmul__(self, other: npt.ArrayLike) -> Shared:
        # x @ A is the transpose of A.T @ x.T.
        return (self.T @ np.asarray(other).T).T

    __radd__ = __add__
    __rmul__ = __mul__

    def convolve(self, kernels: Shared, stride: tuple[int, int] = (1, 1), padding: tuple[int, int] = (0, 0)) -> Shared:
        """Return the convolution of this image (channels, height, width) with kernels (outputs, channels, height,
        width), as neural networks define it.
        """
        if len(self.shape) != 3 or len(kernels.shape) != 4 or self.shape[0] != kernels.shape[1]:
            raise ConfigError(f"an image of shape {self.shape} and kernels of shape {kernels.shape} do not fit")
        image, size = (self.shape[0], self.shape[1], self.shape[2]), (kernels.shape[2], kernels.shape[3])
        form = Convolution(image, kernels.shape[0], size, stride, padding)
        return self._product(ConvolutionProduct((self, kernels), form), kernels, form.result)

    async def open(self) -> Values:
        """Return the values to all parties: integers of either sign, or floats.

        All parties' programs must open the same arrays in the same order.

        Raises:
            CheckFailedError: some program sent a wrong share; no wrong value was returned.
            InconsistentError: some program sent different messages to different peers.
            PeerError: a peer stopped, or broke the protocol.
            LodgeError: the tuples that it needs are not in stock, or the party cannot deliver them.
        """
        (values,) = await self.session.open(self)
        return values

    def _mapped(self, shape: Shape, change: Callable[[Values], Values]) -> Shared:
        return Shared(self.session, shape, self.scale, Local((self,), lambda x: x.map(change)))

    def _scaled(self, scale: int) -> Shared:
        if scale == self.scale:
            return self
        p, factor = self.session.field.p, 1 << (scale - self.scale)
        out = self._mapped(self.shape, lambda v: v * factor % p)
        out.scale = scale
        return out

    def _plus(self, other: npt.ArrayLike) -> Shared:
        constant, scale = self.session.encoded(other)
        scale = max(scale, self.scale)
        constant, _ = self.session.encoded(other, scale)
        a, session = self._scaled(scale), self.session
        shape = np.broadcast_shapes(a.shape, constant.shape)

        def add(x: Share) -> Share:
            p = session.field.p
            value = x.value + (constant if session.own == 0 else 0 * constant)
            return Share(value % p, (x.mac + session.key * constant) % p)

        return Shared(session, shape, scale, Local((a,), add))

    def _times(
        self, other: npt.ArrayLike, op: Callable[[Values, Values], Values], shape: Callable[[Shape, Shape], Shape]
    ) -> Shared:
        constant, scale = self.session.encoded(other)
        p = self.session.field.p
        out = Shared(
            self.session,
            shape(self.shape, constant.shape),
            self.scale + scale,
            Local((self,), lambda x: x.map(lambda v: np.asarray(op(v, constant) % p, dtype=object))),
        )
        return self.session.rounded(out, max(self.scale, scale))

    def _unrounded(self, other: Shared) -> Shared:
        """Return the products of elements, with the bits behind the binary point of both factors."""
        shape = np.broadcast_shapes(self.shape, other.shape)
        a, b = self._mapped(shape, _spread(shape)), other._mapped(shape, _spread(shape))
        return Shared(self.session, shape, self.scale + other.scale, Product((a, b)))

    def _product(self, step: Step, other: Shared, shape: Shape) -> Shared:
        out = Shared(self.session, shape, self.scale + other.scale, step)
        return self.session.rounded(out, max(self.scale, other.scale))


class Step:
    """How a shared array follows from others."""

    args: tuple[Shared, ...]
    tuples: Class | None = None  # the class that it takes from stock
    count = 0

    def masked(self, session: Computation, args: list[Share], tuples: Tuples) -> list[Share]:
        """Return the shares to open; none for a local step. The session calls it once for each step, because a tuple
        masks only one value.
        """
        return []

    def result(self, session: Computation, args: list[Share], tuples: Tuples, opened: list[Values]) -> Share:
        """Return the shares of the result, from the opened values."""
        raise NotImplementedError


@dataclass
class Local(Step):
    """A step without messages."""

    args: tuple[Shared, ...]
    compute: Callable[..., Share]

    def result(self, session: Computation, args: list[Share], tuples: Tuples, opened: list[Values]) -> Share:
        return self.compute(*args)


class Bilinear(Step):
    """A product x y from a triple a, b, c = a b: with d = x - a and e = y - b opened, x y = c + d b + a e + d e."""

    names = ("a", "b", "c")

    def __init__(self, args: tuple[Shared, Shared]) -> None:
        self.args = args

    def multiply(self, session: Computation, a: Values, b: Values) -> Values:
        raise NotImplementedError

    def triple(self, tuples: Tuples, at: int) -> Share:
        name = self.names[at]
        return Share(tuples[name], tuples[f"mac_{name}"])

    def masked(self, session: Computation, args: list[Share], tuples: Tuples) -> list[Share]:
        p = session.field.p
        out = []
        for i, x in enumerate(args):
            t = self.triple(tuples, i)
            shape = x.value.shape
            out.append(Share((x.value - t.value.reshape(shape)) % p, (x.mac - t.mac.reshape(shape)) % p))
        return out

    def result(self, session: Computation, args: list[Share], tuples: Tuples, opened: list[Values]) -> Share:
        p, (d, e) = session.field.p, opened
        a, b, c = (self.triple(tuples, i) for i in range(3))
        a, b = a.map(lambda v: v.reshape(d.shape)), b.map(lambda v: v.reshape(e.shape))
        de, rest = self.products(session, d, e, a, b)
        value, mac = c.value.reshape(de.shape) + rest.value, c.mac.reshape(de.shape) + rest.mac
        if session.own == 0:
            value = value + de
        return Share(value % p, (mac + session.key * de) % p)

    def products(self, session: Computation, d: Values, e: Values, a: Share, b: Share) -> tuple[Values, Share]:
        """Return d e, and d b + a e for the shares of values and of MACs."""
        db, ae = b.map(lambda v: self.multiply(session, d, v)), a.map(lambda v: self.multiply(session, v, e))
        return self.multiply(session, d, e), Share(db.value + ae.value, db.mac + ae.mac)


class Product(Bilinear):
    """A product of elements."""

    def __init__(self, args: tuple[Shared, Shared]) -> None:
        super().__init__(args)
        self.tuples, self.count = Class("scalar", "", "", ""), math.prod(args[0].shape)

    def multiply(self, session: Computation, a: Values, b: Values) -> Values:
        return np.asarray(a * b, dtype=object)


class MatrixProduct(Bilinear):
    """A product of two matrices."""

    def __init__(self, args: tuple[Shared, Shared]) -> None:
        super().__init__(args)
        (rows, inner), (_, columns) = args[0].shape, args[1].shape
        self.tuples, self.count = Class("matrix", "", "", "", shape=(rows, inner, columns)), 1

    def multiply(self, session: Computation, a: Values, b: Values) -> Values:
        return session.field.matmul(a, b)

    def products(self, session: Computation, d: Values, e: Values, a: Share, b: Share) -> tuple[Values, Share]:
        """Products with one factor in common are one product of stacked matrices, which is faster."""
        field, rows, columns = session.field, len(d), e.shape[1]
        dx = field.matmul(d, np.concatenate([b.value, b.mac, e], axis=1))
        ae = field.matmul(np.concatenate([a.value, a.mac]), e)
        return dx[:, 2 * columns :], Share(dx[:, :columns] + ae[:rows], dx[:, columns : 2 * columns] + ae[rows:])


class ConvolutionProduct(Bilinear):
    """A convolution of an image with kernels."""

    names = ("x", "w", "y")

    def __init__(self, args: tuple[Shared, Shared], form: Convolution) -> None:
        super().__init__(args)
        self.form = form
        self.tuples, self.count = Class("convolution", "", "", "", convolution=form), 1

    def multiply(self, session: Computation, a: Values, b: Values) -> Values:
        return session.field.convolve(a, b, self.form.stride, self.form.padding)


class Input(Step):
    """An input x of one party, the owner. The owner sends x - r to all, where r is a mask that only the owner knows and
    all parties share. Then x = r + (x - r).
    """

    def __init__(self, shape: Shape, owner: int, values: Values | None) -> None:
        self.args, self.owner, self.values, self.shape = (), owner, values, shape
        self.tuples, self.count = Class("input", "", "", "", input_party=owner), math.prod(shape)

    def difference(self, session: Computation, tuples: Tuples) -> Values:
        """Return the differences that the owner sends."""
        assert self.values is not None
        return np.asarray((self.values - tuples["clear"].reshape(self.shape)) % session.field.p, dtype=object)

    def result(self, session: Computation, args: list[Share], tuples: Tuples, opened: list[Values]) -> Share:
        (difference,), p = opened, session.field.p
        value = tuples["a"].reshape(self.shape)
        if session.own == 0:
            value = value + difference
        return Share(value % p, (tuples["mac_a"].reshape(self.shape) + session.key * difference) % p)


def _spread(shape: Shape) -> Callable[[Values], Values]:
    return lambda v: np.broadcast_to(v, shape)


def _matrices(a: Values, b: Values) -> tuple[Values, Values]:
    """Return matrices for the product of two arrays of one or two dimensions."""
    return a.reshape(-1, a.shape[-1]), b.reshape(b.shape[0], -1)


def _inner(a: Shape, b: Shape) -> Shape:
    """Return the shape of a @ b."""
    if not (1 <= len(a) <= 2 and 1 <= len(b) <= 2 and a[-1] == b[0]):
        raise ConfigError(f"arrays of shapes {a} and {b} cannot be multiplied with @")
    return (*a[:-1], *b[1:])


def reachable(targets: Sequence[Shared]) -> list[Shared]:
    """Return the arrays without shares that the targets need, in the order in which the program made them."""
    found: dict[int, Shared] = {}
    unvisited = list(targets)
    while unvisited:
        x = unvisited.pop()
        if x.share is None and x.number not in found:
            found[x.number] = x
            unvisited += x.step.args
    return [found[k] for k in sorted(found)]
