"""Residues modulo primes below 2^56 in numpy: products, transforms, and packing.

Between operations residues are centred: int64, of at most about q/2 in magnitude.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from ..threshold.arithmetic import pack as pack_bits
from ..threshold.arithmetic import unpack as unpack_bits
from ..threshold.sets import packed_size

Words = npt.NDArray[np.uint64]
Signed = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LIMIT = 1 << 56  #: of the primes for which the bounds below hold


def centred(x: Signed, q: int) -> Signed:
    """Residues of at most (1/2 + 2^-21) q in magnitude, of any x up to 2^30 q.

    The quotient is at most 2^30 and has the errors of four roundings (of x, q, 1/q and the product), so its error is
    below 2^-21 before it is rounded to an integer.
    """
    out: Signed = x - np.rint(x * (1.0 / q)).astype(np.int64) * q
    return out


def residues(x: Signed, q: int) -> Words:
    """Return centred residues as residues from 0 to q - 1."""
    x = np.where(x < 0, x + q, x)
    return np.where(x >= q, x - q, x).astype(np.uint64)


def from_residues(x: Words, q: int) -> Signed:
    """Inverse of residues."""
    v = x.astype(np.int64)
    return np.where(v > q // 2, v - q, v)


def times(a: Signed, b: Signed, quotients: Floats, q: int) -> Signed:
    """Products modulo q < 2^56, centred, for |a| <= 5 q, and b centred; quotients are b / q as floats.

    The exact quotient a b / q is at most (5/2 + 2^-18) q in magnitude. As floats have 53 bits, and a, b, q, 1/q and two
    products are rounded, ours is off by at most 6 * 2^-53 (1 + 2^-50) of that, which is below 120.1, and by 1/2 more as
    it is rounded to an integer. So the exact difference is below 121 q < 2^63 in magnitude, and what int64 holds, which
    is right modulo 2^64, is the difference itself.
    """
    return centred(a * b - np.rint(a * quotients).astype(np.int64) * q, q)


def _quotients(b: Signed, q: int) -> Floats:
    return np.asarray(b * (1.0 / q), np.float64)


def product(a: Signed, b: Signed, q: int) -> Signed:
    """Return products of centred residues, centred."""
    return times(a, b, _quotients(b, q), q)


def scalar(a: Signed, b: int, q: int) -> Signed:
    """Return centred residues times a number."""
    b %= q
    b -= q if b > q // 2 else 0
    return product(a, np.array([b], np.int64), q)


def _reversed(n: int) -> Signed:
    """Return the numbers below n with their bits reversed."""
    bits = n.bit_length() - 1
    return np.array([int(f"{i:0{bits}b}"[::-1], 2) if bits else 0 for i in range(n)], np.int64)


class Transform:
    """The number theoretic transform of Z_q[X]/(X^n+1): place k has the value at psi^(2 rev(k) + 1).

    Values are rows of a table of height x width, n = height width: the first layers of butterflies go between rows, and
    the others, in the table transposed, as well. So numpy's inner loops are always long.
    """

    def __init__(self, n: int, q: int, psi: int) -> None:
        if not q < LIMIT or pow(psi, n, q) != q - 1:
            raise ValueError(f"{psi} does not define a transform of degree {n} modulo {q}")
        self.n, self.q = n, q
        self._width = 1 << ((n.bit_length() - 1) // 2)
        self._height = n // self._width
        self._forward, self._inverse = self._layers(psi), self._layers(pow(psi, -1, q))
        self._scale = pow(n, -1, q)

    @staticmethod
    @functools.cache
    def of(n: int, q: int, psi: int) -> Transform:
        """Return the transform, which is prepared once."""
        return Transform(n, q, psi)

    def _layers(self, root: int) -> list[tuple[Signed, Floats]]:
        """Return the factors of each layer, in its shape, and their quotients."""
        powers, power = [1] * self.n, 1
        for i in range(self.n):
            powers[i], power = power, power * root % self.q
        ordered = from_residues(np.array(powers, np.uint64), self.q)[_reversed(self.n)]
        out, block = list[tuple[Signed, Floats]](), 1
        while block < self.n:
            some = ordered[block : 2 * block]
            if block < self._height:
                some = some.reshape(block, 1, 1)
            else:
                some = np.ascontiguousarray(some.reshape(self._height, -1).T).reshape(-1, 1, self._height)
            out.append((some, _quotients(some, self.q)))
            block *= 2
        return out

    def forward(self, values: Signed) -> Signed:
        """Cooley-Tukey butterflies on centred residues in the last dimension; results are centred."""
        q, shape = self.q, values.shape
        x = values.reshape(-1, self.n)
        for i, (roots, quotients) in enumerate(self._forward):
            if 1 << i == self._height:
                x = self._turned(x, self._height, self._width)
            if i and i % 6 == 0:  # six layers let q/2 grow to 7/2 q
                x = centred(x, q)
            x = x.reshape(len(x), roots.shape[0], 2, -1, self._inner(i))
            low, high = x[:, :, 0], times(x[:, :, 1], roots, quotients, q)
            x = np.stack([low + high, low - high], axis=2).reshape(len(x), -1)
        x = self._back(x)
        return centred(x, q).reshape(shape)

    def inverse(self, values: Signed) -> Signed:
        """Gentleman-Sande butterflies, as forward."""
        q, shape = self.q, values.shape
        x = self._there(values.reshape(-1, self.n))
        for i in reversed(range(len(self._inverse))):
            roots, quotients = self._inverse[i]
            x = x.reshape(len(x), roots.shape[0], 2, -1, self._inner(i))
            low, high = x[:, :, 0], x[:, :, 1]
            total = low + high
            if i % 2 == 0:  # two layers let q/2 grow to 2 q, and no difference is above 2 q
                total = centred(total, q)
            x = np.stack([total, times(low - high, roots, quotients, q)], axis=2).reshape(len(x), -1)
            if 1 << i == self._height:
                x = self._turned(x, self._width, self._height)
        return scalar(centred(x, q), self._scale, q).reshape(shape)

    def _inner(self, layer: int) -> int:
        return self._width if 1 << layer < self._height else self._height

    def _back(self, x: Signed) -> Signed:
        """Returns the values in order, after the last layer."""
        return self._turned(x, self._width, self._height) if self._width > 1 else x

    def _there(self, x: Signed) -> Signed:
        return self._turned(x, self._height, self._width) if self._width > 1 else x

    @staticmethod
    def _turned(x: Signed, height: int, width: int) -> Signed:
        return np.ascontiguousarray(x.reshape(-1, height, width).transpose(0, 2, 1)).reshape(len(x), -1)


def pack(values: Words, q: int) -> bytes:
    """Pack residues modulo q, each in the number of bits of q - 1, lowest first."""
    width = (q - 1).bit_length()
    if width % 8:
        return pack_bits(values, width)
    return values.astype("<u8").view(np.uint8).reshape(-1, 8)[:, : width // 8].tobytes()


def unpack(data: bytes, count: int, q: int) -> Words:
    """Inverse of pack; raises ValueError for invalid data."""
    width = (q - 1).bit_length()
    if width % 8 or len(data) != size(count, q):
        out = unpack_bits(data, count, width)
    else:
        octets = np.zeros((count, 8), np.uint8)
        octets[:, : width // 8] = np.frombuffer(data, np.uint8).reshape(count, -1)
        out = octets.view("<u8").reshape(-1).astype(np.uint64)
    if (out >= np.uint64(q)).any():
        raise ValueError(f"a residue is not below {q}")
    return out


def size(count: int, q: int) -> int:
    """Return the size of the given number of packed residues."""
    return packed_size(count, (q - 1).bit_length())
