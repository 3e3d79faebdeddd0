"""Fixed-point numbers as residues, and residues as shares of two parties."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..errors import ConfigError
from ..threshold.ciphertexts import Random
from .plans import check_sums
from .residues import Floats, Signed, Words
from .sets import LinearSet

_MAX_FRACTION = 62


class RangeError(ConfigError):
    """An entry is out of its given range. The error does not reveal the entry.

    Attributes:
        index: position of the first such entry, along each dimension.
        low, high: the range.
    """

    def __init__(self, what: str, index: tuple[int, ...], low: float, high: float) -> None:
        place = ", ".join(map(str, index))
        super().__init__(f"{what} [{place}] is not in [{low}, {high}]", "scale it, or allow more bits")
        self.index, self.low, self.high = index, low, high


def check_range(bad: npt.NDArray[np.bool_], what: str, low: float, high: float) -> None:
    """Raises a RangeError if an entry is marked as bad."""
    if bad.any():
        at = np.unravel_index(int(np.argmax(bad)), bad.shape)
        raise RangeError(what, tuple(int(i) for i in at), low, high)


def words(values: npt.ArrayLike, t: int, what: str) -> Words:
    """Return residues modulo t from an array of integers of any type.

    Raises:
        RangeError: an entry is not a residue.
    """
    a = integers(values, what)
    check_range((a < 0) | (a > t - 1), what, 0, t - 1)
    return a.astype(np.uint64)


def integers(values: npt.ArrayLike, what: str) -> npt.NDArray[np.integer]:
    a = np.asarray(values)
    if not np.issubdtype(a.dtype, np.integer):
        raise ConfigError(f"{what} of type {a.dtype}", "give integers; Fixed encodes numbers with a fraction")
    return a


@dataclass(frozen=True)
class Fixed:
    """Encodes bounded numbers as residues modulo t: x is encoded as round(x 2^fraction), at most most in magnitude.

    Negative integers are encoded as t minus their magnitude. A product has the sum of both fractions: see product.
    """

    t: int
    fraction: int  #: bits behind the point
    most: int  #: largest magnitude of an integer, which is scaled already

    @classmethod
    def of(cls, params: LinearSet, bits: int, fraction: int = 0) -> Fixed:
        """Return an encoding of numbers of at most bits bits, including the sign and the fraction."""
        if not 1 <= bits <= 63 or not 0 <= fraction <= _MAX_FRACTION or 1 << (bits - 1) > params.t // 2:
            raise ConfigError(
                f"numbers of {bits} bits, {fraction} after the point, modulo {params.t}",
                f"use at most {params.t.bit_length() - 1} bits",
            )
        return cls(params.t, fraction, (1 << (bits - 1)) - 1)

    def product(self, other: Fixed, terms: int) -> Fixed:
        """Return the encoding of sums of the given number of products of two numbers.

        Raises:
            ConfigError: a sum may leave the range (-t/2, t/2) and would decode to a different number.
        """
        if self.t != other.t or terms < 1 or self.fraction + other.fraction > _MAX_FRACTION:
            raise ConfigError(f"{terms} products of {self} and {other}", "use one set, and fewer bits after the point")
        check_sums(self.t, terms, self.most, other.most)
        return Fixed(self.t, self.fraction + other.fraction, terms * self.most * other.most)

    def encode(self, values: npt.ArrayLike) -> Words:
        """Return the residues of numbers, rounded to nearest, halves away from zero.

        Raises:
            RangeError: a number is too large, infinite or NaN.
        """
        a = np.asarray(values)
        if np.issubdtype(a.dtype, np.integer) and self.fraction == 0:
            return self.encode_integers(a)
        with np.errstate(over="ignore", invalid="ignore"):
            x = np.ldexp(np.asarray(a, np.float64), self.fraction)
            whole = np.trunc(x)
            r = whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0)
            bad = ~(np.abs(r) <= self.most)  # below 2^53, so exact as a float
        most = math.ldexp(self.most, -self.fraction)
        check_range(bad, "number", -most, most)
        v = r.astype(np.int64)
        return self._residues(v)

    def encode_integers(self, values: npt.ArrayLike) -> Words:
        """Return the residues of integers that are already scaled."""
        a = integers(values, "integers")
        check_range((a < -self.most) | (a > self.most), "integer", -self.most, self.most)
        return self._residues(a.astype(np.int64))

    def decode(self, values: npt.ArrayLike) -> Floats:
        """Return the numbers of residues.

        Raises:
            RangeError: a residue belongs to no number in range.
        """
        return np.ldexp(self.decode_integers(values).astype(np.float64), -self.fraction)

    def decode_integers(self, values: npt.ArrayLike) -> Signed:
        """Return the scaled integers of residues."""
        a = words(values, self.t, "residue")
        v = a.astype(np.int64)
        v = np.where(v > self.t // 2, v - self.t, v)
        check_range(np.abs(v) > self.most, "the integer of residue", -self.most, self.most)
        return v

    def _residues(self, v: Signed) -> Words:
        return np.where(v < 0, v + self.t, v).astype(np.uint64)

    def split(self, values: npt.ArrayLike, *, random: Random = secrets.token_bytes) -> tuple[Words, Words]:
        """Split numbers into two shares, each of which alone is uniform."""
        return share(self.encode(values), self.t, random=random)

    def join(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Floats:
        """Return the numbers from two shares."""
        return self.decode(unshare(a, b, self.t))


def share(values: npt.ArrayLike, t: int, *, random: Random = secrets.token_bytes) -> tuple[Words, Words]:
    """Split residues modulo t into two shares that add up to them. Each share alone is uniform."""
    v = words(values, t, "residue")
    first = _uniform(v.size, t, random).reshape(v.shape)
    return first, (v + np.uint64(t) - first) % np.uint64(t)


def unshare(a: npt.ArrayLike, b: npt.ArrayLike, t: int) -> Words:
    """Return the residues from two shares."""
    x, y = words(a, t, "share"), words(b, t, "share")
    if x.shape != y.shape:
        raise ConfigError(f"shares of shapes {x.shape} and {y.shape}", "give both of one product")
    return (x + y) % np.uint64(t)


def _uniform(count: int, t: int, random: Random) -> Words:
    """Return uniform residues, by rejection of values that are not below t."""
    mask = np.uint64((1 << (t - 1).bit_length()) - 1)
    taken = np.empty(0, np.uint64)
    while len(taken) < count:
        drawn = np.frombuffer(random(8 * (count - len(taken) + 8)), "<u8") & mask
        taken = np.concatenate([taken, drawn[drawn < t]])
    return taken[:count]
