"""BGV and BFV as in Lattigo's package schemes/bgv and in engine/bgv: sets, ciphertexts, encryption, and answers.

A ciphertext (c0, c1) of a message m, a polynomial modulo t times the scale, has the phase c0 + c1 s = m/t + e modulo
the product of the primes of its level. The only computation on ciphertexts here is addition; use Lattigo for others.
"""

from __future__ import annotations

import functools
import hashlib
import math
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index

import numpy as np

from ..errors import BadAnswersError, BadKeysError, ConfigError
from .answers import Masked
from .arithmetic import Residues, expand, pack, unpack
from .ciphertexts import Random, gaussian, ternary
from .sets import KeyLayout, Kind, packed_size

#: The position of values in a message: in its coefficients, or in the slots, which products multiply value by value.
BGV_ENCODINGS = ("coefficients", "slots")


@dataclass(frozen=True)
class BGVSet:
    """One choice of rings, moduli and limits, as in engine/bgv/set.go."""

    name: str
    log_n: int  #: ring Z[X]/(X^n+1), n = 2^log_n
    q: tuple[int, ...]  #: the primes of ciphertexts; those of level l are the first l + 1
    p: tuple[int, ...]  #: special primes
    t: int  #: values are modulo t, a prime
    log_noise: int  #: noises are below 2^log_noise when a ciphertext is decrypted
    flood_level: int = -1  #: at which whole ciphertexts are decrypted under a flood of noise; -1: they are not
    log_decryptions: int = 0  #: of how many under one key
    variance: float = 10.24  #: of errors
    insecure: bool = False  #: for tests only

    @property
    def n(self) -> int:
        return 1 << self.log_n

    @property
    def max_level(self) -> int:
        """The level of fresh ciphertexts."""
        return len(self.q) - 1

    def ciphertext_size(self, level: int) -> int:
        """Size of an encoded ciphertext."""
        return 5 + 2 * rows_size(self, self.q[: level + 1])

    def layout(self, galois: Sequence[int]) -> KeyLayout:
        """The division of public keys with these automorphisms: a chunk has one sample modulo all primes."""
        digits = -(-len(self.q) // len(self.p))
        sizes = (rows_size(self, self.q + self.p),) * (1 + digits * (1 + len(galois)))
        end = struct.pack(f"<B{len(galois)}I", len(galois), *galois)
        return KeyLayout(self.name, self.hash(), b"lodge bgv keys 1", sizes, end)

    def kind(self, threshold: int) -> Kind:
        """Parameters with which threshold + 1 parties decrypt under masks."""
        return Kind.of_odd(self.q[0], self.t, threshold, math.ldexp(1.0, self.log_noise))

    def hash(self) -> bytes:
        """SHA-256 of all fields on which keys and ciphertexts depend."""
        h = hashlib.sha256()
        numbers = struct.pack(
            f">4Qd3qQ{len(self.q + self.p)}Q", self.log_n, len(self.q), len(self.p), self.t, self.variance,
            self.log_noise, self.flood_level, self.log_decryptions, self.insecure, *self.q, *self.p)  # fmt: skip
        words = [numbers[i : i + 8] for i in range(0, len(numbers), 8)]
        for part in (b"lodge bgv set 1", self.name.encode(), *words):
            h.update(struct.pack(">Q", len(part)) + part)
        return h.digest()

    def coefficients(self, slots: Sequence[int]) -> list[int]:
        """Return the coefficients of the message with these values in its slots, in Lattigo's encoding."""
        values = np.zeros(self.n, np.uint64)
        values[_places(self.log_n)[: len(slots)]] = slots
        return [int(v) for v in _Transform.of(self.log_n, self.t).inverse(values)]

    def slots(self, coefficients: Sequence[int]) -> list[int]:
        """Return the slots of a message given by all its coefficients, in Lattigo's encoding."""
        if len(coefficients) != self.n:
            raise ConfigError(f"{len(coefficients)} coefficients are not a message with slots", f"open all {self.n}")
        values = _Transform.of(self.log_n, self.t).forward(np.array(coefficients, np.uint64))
        return [int(v) for v in values[_places(self.log_n)]]

    def values(self, opened: Sequence[int], each: int, encoding: str) -> list[int]:
        """Return the values of opened coefficients, the same number for each ciphertext, in an encoding."""
        check_bgv_encoding(encoding)
        if encoding == "coefficients":
            return list(opened)
        return [v for at in range(0, len(opened), each) for v in self.slots(opened[at : at + each])]


# The primes, with the smallest primitive root above 2 of each: transforms use a power of the root, as in Lattigo.
_Q55 = (36028797017456641, 36028797016178689, 36028797014704129)
_Q53 = (9007199253921793, 9007199252840449, 9007199252807681, 9007199252545537, 9007199252119553, 9007199251660801)
_Q49, _Q36, _Q35 = 562949952798721, 68718428161, (34359410689, 34359214081)
_ROOTS = dict(zip((*_Q55, *_Q53, _Q49, _Q36, *_Q35), (7, 11, 7, 5, 7, 3, 5, 3, 17, 7, 7, 31, 21), strict=True))
_ROOTS |= {257: 3, 65537: 3, 2130706433: 3}
_BGV_SETS = {
    s.name: s
    for s in (
        BGVSet("B12-17", 12, (_Q36, _Q35[0]), (_Q35[1],), 65537, 17),
        BGVSet("B13-17", 13, (*_Q55[:2], _Q49), (_Q55[2],), 65537, 17, 1, 20),
        BGVSet("B14-31", 14, _Q53, _Q55[:2], 2130706433, 20, 2, 20),
        BGVSet("insecure-B5-8", 5, (_Q36, _Q35[0]), (_Q35[1],), 257, 12, insecure=True),
        BGVSet("insecure-B5-17", 5, (*_Q55[:2], _Q49), (_Q55[2],), 65537, 12, 1, 20, insecure=True),
        BGVSet("insecure-B6-31", 6, _Q53[:5], _Q55[:2], 2130706433, 14, 2, 20, insecure=True),
    )
}


def lookup_bgv(name: str) -> BGVSet | None:
    """Return the set with the given name; None if it is not a set of BGV, or this client is too old to know it."""
    return _BGV_SETS.get(name)


def check_bgv_encoding(encoding: str) -> None:
    if encoding not in BGV_ENCODINGS:
        raise ConfigError(f"{encoding!r} is not an encoding of BGV", f"write one of {', '.join(BGV_ENCODINGS)}")


@functools.cache
def _places(log_n: int) -> Residues:
    """Return the place of each slot in a transform: powers of 5 in the first row, and their negatives in the
    second.
    """
    n, power, first = 1 << log_n, 1, []
    for _ in range(n // 2):
        first.append(int(f"{power >> 1:0{log_n}b}"[::-1], 2))
        power = power * 5 % (2 * n)
    return np.array(first + [n - 1 - v for v in first], np.uint64)


# Residues modulo several primes are stored as rows of a table.


def _times(a: Residues, b: Residues, q: int) -> Residues:
    """Return products of residues modulo q < 2^55.

    The error of the quotient is at most 21, as floats have 53 bits, so the remainder, taken modulo 2^64, fits into 63
    bits and a sign.
    """
    quotient = (a.astype(np.float64) * b.astype(np.float64) / q).astype(np.uint64)
    return ((a * b - quotient * np.uint64(q)).view(np.int64) % q).astype(np.uint64)


class _Transform:
    """The number theoretic transform of Z_q[X]/(X^n+1): slot k holds the value at psi^(2 rev(k) + 1)."""

    def __init__(self, log_n: int, q: int) -> None:
        self.n, self.q = 1 << log_n, q
        root = pow(_ROOTS[q], (q - 1) // (2 * self.n), q)
        order = [int(f"{i:0{log_n}b}"[::-1], 2) for i in range(self.n)]
        self._roots, self._inverses = self._powers(root, order), self._powers(pow(root, -1, q), order)
        self._scale = np.array([pow(self.n, -1, q)], np.uint64)

    @staticmethod
    @functools.cache
    def of(log_n: int, q: int) -> _Transform:
        """Return the transform for a degree and a prime, which is prepared once."""
        return _Transform(log_n, q)

    def _powers(self, root: int, order: Sequence[int]) -> Residues:
        out, power = np.zeros(self.n, np.uint64), 1
        for place in order:
            out[place], power = power, power * root % self.q
        return out

    def forward(self, values: Residues) -> Residues:
        """Cooley-Tukey butterflies."""
        x, q, block = values, np.uint64(self.q), 1
        while block < self.n:
            pairs = x.reshape(block, 2, -1)
            low, high = pairs[:, 0], _times(pairs[:, 1], self._roots[block : 2 * block, None], self.q)
            x, block = np.stack([(low + high) % q, (low + q - high) % q], axis=1).reshape(-1), 2 * block
        return x

    def inverse(self, values: Residues) -> Residues:
        """Gentleman-Sande butterflies."""
        x, q, block = values, np.uint64(self.q), self.n // 2
        while block:
            pairs = x.reshape(block, 2, -1)
            low, high = pairs[:, 0], pairs[:, 1]
            rest = _times((low + q - high) % q, self._inverses[block : 2 * block, None], self.q)
            x, block = np.stack([(low + high) % q, rest], axis=1).reshape(-1), block // 2
        return _times(x, self._scale, self.q)


def rows_size(s: BGVSet, primes: Sequence[int]) -> int:
    """Size of a packed polynomial."""
    return sum(packed_size(s.n, (q - 1).bit_length()) for q in primes)


def _pack(rows: Residues, primes: Sequence[int]) -> bytes:
    return b"".join(pack(row, (q - 1).bit_length()) for row, q in zip(rows, primes, strict=True))


def _unpack(s: BGVSet, data: bytes, primes: Sequence[int]) -> Residues:
    """Inverse of _pack; raises ValueError for invalid data."""
    if len(data) != rows_size(s, primes):
        raise ValueError(f"{len(data)} bytes, want {rows_size(s, primes)}")
    rows, at = [], 0
    for q in primes:
        width = (q - 1).bit_length()
        end = at + packed_size(s.n, width)
        row = unpack(data[at:end], s.n, width)
        if (row >= np.uint64(q)).any():
            raise ValueError(f"a residue is not below {q}")
        rows.append(row)
        at = end
    return np.stack(rows)


def _numbers(rows: Residues, primes: Sequence[int]) -> list[int]:
    """Return the numbers below the product of the primes that have these residues."""
    product = math.prod(primes)
    weights = [product // q * pow(product // q, -1, q) for q in primes]
    columns = zip(*(row.tolist() for row in rows), strict=True)
    return [sum(w * v for w, v in zip(weights, column, strict=True)) % product for column in columns]


@dataclass(frozen=True, eq=False)
class BGVCiphertext:
    """A ciphertext of degree one, in coefficient form: a row of residues for each prime of its level."""

    params: BGVSet
    level: int
    scale: int  #: factor of the message, from 1 to t - 1
    c0: Residues
    c1: Residues

    def encode(self) -> bytes:
        """Return the canonical encoding, which parties and other clients use too."""
        primes = self.params.q[: self.level + 1]
        return struct.pack("<BI", self.level, self.scale) + _pack(self.c0, primes) + _pack(self.c1, primes)

    @classmethod
    def decode(cls, params: BGVSet, data: bytes) -> BGVCiphertext:
        """Read exactly one encoding."""
        if len(data) < 5 or data[0] > params.max_level or len(data) != params.ciphertext_size(data[0]):
            raise ConfigError(f"not a BGV ciphertext under {params.name}: {len(data)} bytes")
        level, scale = struct.unpack_from("<BI", data)
        if not 1 <= scale < params.t:
            raise ConfigError(f"not a BGV ciphertext under {params.name}: scale {scale}")
        primes = params.q[: level + 1]
        middle = 5 + rows_size(params, primes)
        try:
            c0, c1 = _unpack(params, data[5:middle], primes), _unpack(params, data[middle:], primes)
        except ValueError as error:
            raise ConfigError(f"not a BGV ciphertext under {params.name}: {error}") from error
        return cls(params, level, scale, c0, c1)

    def __add__(self, other: BGVCiphertext) -> BGVCiphertext:
        """Add values; the noise adds up too. Both ciphertexts must have the same level and scale, as fresh ones do."""
        mine, its = (self.params, self.level, self.scale), (other.params, other.level, other.scale)
        if mine != its:
            raise ConfigError("ciphertexts of different sets, levels or scales", "bring them to one level with Lattigo")
        primes = np.array(self.params.q[: self.level + 1], np.uint64)[:, None]
        return BGVCiphertext(*mine, (self.c0 + other.c0) % primes, (self.c1 + other.c1) % primes)

    @property
    def _factor(self) -> int:
        """Return the factor that removes the scale from a message."""
        return pow(self.scale, -1, self.params.t)

    def opened(self, mu: Sequence[int]) -> list[int]:
        """Return coefficients of the message from those opened under masks, at level 0."""
        s = self.params
        factor = -math.prod(s.q[: self.level + 1]) * self._factor % s.t
        return [v * factor % s.t for v in mu]

    def flooded(self, parts: Sequence[Residues]) -> list[int]:
        """Return the coefficients of the message from the parties' shares at the flooding level."""
        s = self.params
        primes, dropped = s.q[: s.flood_level + 1], math.prod(s.q[s.flood_level + 1 : self.level + 1])
        modulus, factor = math.prod(primes), dropped * self._factor % s.t
        c0 = _numbers(self.c0, s.q[: self.level + 1])
        row = np.array(primes, np.uint64)[:, None]
        total = functools.reduce(lambda x, y: (x + y) % row, parts)
        out = []
        for c, rest in zip(c0, _numbers(total, primes), strict=True):
            phase = s.t * ((2 * c + dropped) // (2 * dropped) + rest) % modulus
            out.append((phase - modulus if 2 * phase > modulus else phase) * factor % s.t)
        return out


class BGVPublicKey:
    """The public key of an epoch of BGV keys: a sample (b, a) with b = -a s + e modulo all primes, in evaluation form.

    **Not constant time**, like PublicKey: where others can measure encryptions closely, encrypt with Lattigo.
    """

    def __init__(self, params: BGVSet, seed: bytes, b: Residues) -> None:
        self.params = params
        primes = params.q + params.p
        a = [expand(q, params.n, seed, "lodge bgv sample", 0, prime=i) for i, q in enumerate(primes)]
        self._a, self._b = np.stack(a), b

    @classmethod
    def received(
        cls, params: BGVSet, *, layout: KeyLayout, digest: bytes, header: bytes, chunk_digests: Sequence[bytes],
        first: bytes,
    ) -> BGVPublicKey:  # fmt: skip
        """Return the public key of keys with a digest, from their header, the digests of their chunks, and chunk 0.

        Raises:
            BadKeysError: the data does not match the digest.
        """
        layout.check(digest, header, chunk_digests)
        if hashlib.sha256(first).digest() != chunk_digests[0]:
            raise BadKeysError("chunk 0 does not match its digest")
        try:
            b = _unpack(params, first, params.q + params.p)
        except ValueError as error:
            raise BadKeysError(str(error)) from error
        return cls(params, header[32:64], b)

    def encrypt(
        self, values: Sequence[int], encoding: str = "coefficients", *, random: Random = secrets.token_bytes
    ) -> list[BGVCiphertext]:
        """Encrypt values in ciphertexts of ``params.n`` values each; see BGV_ENCODINGS.

        As in Lattigo, u is uniform of -1, 0 and 1 in each coefficient, e0 and e1 are errors of the set's variance,
        and a ciphertext is (b u + e0, a u + e1) divided by the first special prime, with m/t added to the first part.

        Args:
            values: numbers from 0 to t - 1.
            encoding: one of BGV_ENCODINGS.
            random: returns random bytes. Anyone who knows or can repeat them can read the values.
        """
        check_bgv_encoding(encoding)
        s, out = self.params, []
        for at in range(0, max(len(values), 1), s.n):
            part = [index(v) for v in values[at : at + s.n]]
            if not all(0 <= v < s.t for v in part):
                raise ConfigError(f"values are from 0 to {s.t - 1}")
            message = s.coefficients(part) if encoding == "slots" else part
            u, errors = ternary(s.n, random), gaussian(s.variance, 2 * s.n, random)
            out.append(self._encrypted(message, u, errors[: s.n], errors[s.n :]))
        return out

    def _encrypted(
        self, message: Sequence[int], u: Sequence[int], e0: Sequence[int], e1: Sequence[int]
    ) -> BGVCiphertext:
        """Encrypt with given randomness."""
        s = self.params
        c0, c1 = self._divided(self._b, u, e0), self._divided(self._a, u, e1)
        m = np.array([*message, *[0] * (s.n - len(message))], np.uint64)
        for i, q in enumerate(s.q):
            c0[i] = (c0[i] + _times(m, np.array([pow(s.t, -1, q)], np.uint64), q)) % np.uint64(q)
        return BGVCiphertext(s, s.max_level, 1, c0, c1)

    def _divided(self, key: Residues, u: Sequence[int], e: Sequence[int]) -> Residues:
        """Return u times half of the key, plus e, divided by the first special prime and rounded."""
        s = self.params
        special, places = s.p[0], [*range(len(s.q)), len(s.q)]
        small, errors = np.array(u, np.int64), np.array(e, np.int64)
        rows = []
        for i, q in zip(places, (*s.q, special), strict=True):
            transform = _Transform.of(s.log_n, q)
            product = _times(key[i], transform.forward((small % q).astype(np.uint64)), q)
            rows.append((transform.inverse(product).astype(np.int64) + errors) % q)
        rest = np.where(rows[-1] > special // 2, rows[-1] - special, rows[-1])
        out = []
        for row, q in zip(rows[:-1], s.q, strict=True):
            inverse = np.array([pow(special, -1, q)], np.uint64)
            out.append(_times(((row - rest) % q).astype(np.uint64), inverse, q))
        return np.stack(out)


@dataclass(frozen=True)
class MaskedCoefficients:
    """Reads answers for the first coefficients of ciphertexts opened under masks."""

    ciphertexts: Sequence[BGVCiphertext]
    masked: Masked

    @property
    def most(self) -> int:
        return self.masked.most

    def check(self, data: bytes) -> None:
        self.masked.check(data)

    def messages(self, parts: Sequence[bytes]) -> list[int]:
        mu, each = self.masked.messages(parts), self.masked.count // len(self.ciphertexts)
        return [m for i, c in enumerate(self.ciphertexts) for m in c.opened(mu[i * each : (i + 1) * each])]


_RUN = 32  # size of a run's name, in each party's answer to a ciphertext


@dataclass(frozen=True)
class Flooded:
    """Reads answers for whole ciphertexts decrypted with flooding."""

    ciphertexts: Sequence[BGVCiphertext]

    @property
    def _primes(self) -> tuple[int, ...]:
        s = self.ciphertexts[0].params
        return s.q[: s.flood_level + 1]

    @property
    def _size(self) -> int:
        return _RUN + rows_size(self.ciphertexts[0].params, self._primes)

    @property
    def most(self) -> int:
        return len(self.ciphertexts) * self._size

    def _split(self, data: bytes) -> list[tuple[bytes, Residues]]:
        """Return the run and the party's share for each ciphertext."""
        if len(data) != self.most:
            raise BadAnswersError(f"an answer of {len(data)} bytes to {len(self.ciphertexts)} ciphertexts")
        s, size = self.ciphertexts[0].params, self._size
        each = [data[at : at + size] for at in range(0, len(data), size)]
        try:
            return [(a[:_RUN], _unpack(s, a[_RUN:], self._primes)) for a in each]
        except ValueError as error:
            raise BadAnswersError(f"an answer of {error}") from error

    def check(self, data: bytes) -> None:
        self._split(data)

    def messages(self, parts: Sequence[bytes]) -> list[int]:
        answers, out = [self._split(data) for data in parts], []
        for i, c in enumerate(self.ciphertexts):
            if len({a[i][0] for a in answers}) > 1:
                raise BadAnswersError(f"parties have answered for ciphertext {i} in different runs")
            out += c.flooded([a[i][1] for a in answers])
        return out
