"""Numbers with a binary point: encodings, and the truncation that follows a product."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..reservation import Class
from .field import Field, Values
from .supply import Tuples
from .values import Computation, Share, Shared, Step

STATISTICAL = 40  # bits of statistical security of a truncation


class FixedPoint:
    """Numbers with ``fraction`` bits behind the binary point.

    A number x is encoded as the integer x 2^fraction. The product of two encodings has 2 fraction bits behind the
    binary point until it is rounded. It must be less than 2^(bits - 1) in absolute value: a larger product gives a
    wrong result, which nothing detects.
    """

    def __init__(self, field: Field, fraction: int, bits: int) -> None:
        self._field, self.fraction, self.bits = field, fraction, bits

    def supported(self) -> bool:
        return self._field.p.bit_length() > self.bits + STATISTICAL + 1

    def encoded(self, values: npt.ArrayLike, scale: int | None = None) -> tuple[Values, int]:
        """Return public numbers as elements, with their scale: 0 for integers."""
        field, a = self._field, np.asarray(values)
        if a.dtype.kind == "f":
            if not np.isfinite(a).all():
                raise ConfigError("infinite and undefined numbers cannot be shared")
            scale = self.fraction if scale is None else scale
            scaled = [round(v * (1 << scale)) for v in a.astype(object).ravel()]
            out = np.empty(len(scaled), dtype=object)
            out[:] = scaled
            return field.elements(out.reshape(a.shape)), scale
        if a.dtype.kind not in "iubO":
            raise ConfigError(f"arrays of {a.dtype} cannot be shared", "convert them to integers or floats")
        scale = scale or 0
        return field.elements(a.astype(object) * (1 << scale)), scale

    def decoded(self, elements: Values, scale: int) -> Values:
        values = self._field.signed(elements)
        return values if scale == 0 else np.asarray(values / (1 << scale), dtype=np.float64)

    def rounded(self, x: Shared, scale: int) -> Shared:
        """Return x with fewer bits behind the binary point."""
        if x.scale <= scale or scale == 0:
            return x
        if not self.supported():
            raise ConfigError(
                f"the field is too small to round products of {self.bits} bits", "use p128 or a larger field"
            )
        return Shared(x.session, x.shape, scale, Truncation(x, x.scale - scale, self.bits))


class Truncation(Step):
    """Divides by 2^m, after Catrina and Saxena. The result is the quotient rounded down or up; it is rounded up with
    probability remainder / 2^m.

    With r = r1 2^m + r0 from random bits, the parties open x + 2^(k-1) + r. The opened value
    hides x up to a statistical distance of 2^-40, because r has 40 bits more than x. Then
    (x + r0 - (opened mod 2^m)) / 2^m is the result.
    """

    def __init__(self, x: Shared, m: int, bits: int) -> None:
        self.args, self._m, self._bits = (x,), m, bits
        self._each = bits + STATISTICAL
        self.tuples, self.count = Class("bit", "", "", ""), math.prod(x.shape) * self._each

    def masked(self, session: Computation, args: list[Share], tuples: Tuples) -> list[Share]:
        (x,), p = args, session.field.p
        weights = np.array([1 << i for i in range(self._each)], dtype=object)
        r = self._bits_of(tuples, x).map(lambda v: (v * weights).sum(axis=-1))
        offset = 1 << (self._bits - 1)
        value = x.value + r.value + (offset if session.own == 0 else 0)
        return [Share(value % p, (x.mac + r.mac + session.key * offset) % p)]

    def result(self, session: Computation, args: list[Share], tuples: Tuples, opened: list[Values]) -> Share:
        (x,), p = args, session.field.p
        weights = np.array([1 << i for i in range(self._m)], dtype=object)
        low = self._bits_of(tuples, x).map(lambda v: (v[..., : self._m] * weights).sum(axis=-1))
        # The opened value contains 2^(k-1), a multiple of 2^m.
        rest, inverse = opened[0] % (1 << self._m), pow(1 << self._m, -1, p)
        value = x.value + low.value - (rest if session.own == 0 else 0)
        return Share(value * inverse % p, (x.mac + low.mac - session.key * rest) * inverse % p)

    def _bits_of(self, tuples: Tuples, x: Share) -> Share:
        shape = (*x.value.shape, self._each)
        return Share(tuples["a"].reshape(shape), tuples["mac_a"].reshape(shape))
