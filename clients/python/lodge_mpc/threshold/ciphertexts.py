"""Encryption under threshold keys: ciphertexts, the public key, and the errors for encryption."""

from __future__ import annotations

import functools
import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from operator import index

import numpy as np

from ..errors import BadKeysError, ConfigError
from .arithmetic import Residues, Transform, expand, pack, residues
from .sets import ParameterSet, packed_size

#: The position of a message on the circle of residues. "plain": m in [0, p) at q m/p, which decryption opens; sums
#: wrap around. "padded": m in [0, p) at q m/2p, for lookups; twice such a ciphertext is a plain one. "boolean": 0 at
#: -q/8 and 1 at q/8, for gates.
ENCODINGS = ("plain", "padded", "boolean")

Random = Callable[[int], bytes]


def check_encoding(encoding: str) -> None:
    if encoding not in ENCODINGS:
        raise ConfigError(f"{encoding!r} is not an encoding", f"write one of {', '.join(ENCODINGS)}")


def encode(s: ParameterSet, message: int, encoding: str) -> int:
    """Return the residue of a message."""
    check_encoding(encoding)
    limit = 2 if encoding == "boolean" else s.p
    if not 0 <= message < limit:
        raise ConfigError(f"a message is from 0 to {limit - 1} in the {encoding} encoding")
    if encoding == "boolean":
        eighth = (s.q + 4) >> 3
        return eighth if message else s.q - eighth
    parts = s.p if encoding == "plain" else 2 * s.p
    return (2 * s.q * message + parts) // (2 * parts)


def decoded(s: ParameterSet, opened: Sequence[int], encoding: str) -> list[int]:
    """Return the values of opened messages, residues modulo p, in an encoding."""
    if encoding != "boolean":
        return list(opened)
    bits = {s.p // 8: 1, s.p - s.p // 8: 0}
    bad = next((i for i, m in enumerate(opened) if m not in bits), None)
    if bad is not None:
        raise ConfigError(f"message {bad} is {opened[bad]}, which is not a bit", "decrypt it with the plain encoding")
    return [bits[m] for m in opened]


@dataclass(frozen=True, eq=False)
class LWECiphertext:
    """A ciphertext of one message: its phase is b - <a, z>."""

    params: ParameterSet
    a: Residues
    b: int

    def encode(self) -> bytes:
        """Return the canonical encoding, which parties and other clients use too."""
        last = np.array([self.b], np.uint64)
        return pack(self.a, self.params.width) + pack(last, self.params.width)

    @classmethod
    def decode(cls, params: ParameterSet, data: bytes) -> LWECiphertext:
        """Read exactly one encoding."""
        cut = packed_size(params.n, params.width)
        try:
            a, b = residues(data[:cut], params.n, params), residues(data[cut:], 1, params)
        except ValueError as error:
            raise ConfigError(f"not an LWE ciphertext under {params.name}: {error}") from error
        return cls(params, a, int(b[0]))

    def doubled(self) -> LWECiphertext:
        """Return twice the ciphertext. For a padded one, this is a plain one."""
        return self + self

    def __add__(self, other: LWECiphertext) -> LWECiphertext:
        """Add messages of one encoding; the noise adds up too."""
        q = _same(self.params, other.params)
        return LWECiphertext(self.params, (self.a + other.a) % np.uint64(q), (self.b + other.b) % q)


@dataclass(frozen=True, eq=False)
class RingCiphertext:
    """A ciphertext of n messages, one per coefficient: its phase is b - a z, modulo X^n + 1."""

    params: ParameterSet
    a: Residues
    b: Residues

    def encode(self) -> bytes:
        """Return the canonical encoding, which parties and other clients use too."""
        return pack(self.a, self.params.width) + pack(self.b, self.params.width)

    @classmethod
    def decode(cls, params: ParameterSet, data: bytes) -> RingCiphertext:
        """Read exactly one encoding."""
        cut = packed_size(params.n, params.width)
        try:
            a, b = residues(data[:cut], params.n, params), residues(data[cut:], params.n, params)
        except ValueError as error:
            raise ConfigError(f"not a ring ciphertext under {params.name}: {error}") from error
        return cls(params, a, b)

    def doubled(self) -> RingCiphertext:
        """Return twice the ciphertext. For a padded one, this is a plain one."""
        return self + self

    def __add__(self, other: RingCiphertext) -> RingCiphertext:
        """Add messages of one encoding, coefficient by coefficient; the noise adds up too."""
        q = np.uint64(_same(self.params, other.params))
        return RingCiphertext(self.params, (self.a + other.a) % q, (self.b + other.b) % q)

    def extract(self, k: int) -> LWECiphertext:
        """Return a ciphertext of message k only, with the same noise, for gates and lookups."""
        n, q = self.params.n, np.uint64(self.params.q)
        if not 0 <= k < n:
            raise ConfigError(f"coefficient {k} of {n}")
        a = np.concatenate([self.a[k::-1], (q - self.a[:k:-1]) % q])
        return LWECiphertext(self.params, a, int(self.b[k]))


def _same(a: ParameterSet, b: ParameterSet) -> int:
    if a != b:
        raise ConfigError(f"ciphertexts under {a.name} and under {b.name}")
    return a.q


class PublicKey:
    """The public key of an epoch: a ring sample (a, b = a z + e), in evaluation form.

    **Not constant time.** Encryption uses Python's integers, whose time depends on their values, and Python leaves
    copies of messages and of encryption randomness in memory. An attacker who can measure the time of encryptions
    closely, for example from another process on the same machine, can learn about messages. If that matters, encrypt
    with the Go client or ``lodge keys encrypt``, whose times do not depend on messages and errors.
    """

    def __init__(self, params: ParameterSet, seed: bytes, b: Residues) -> None:
        self.params = params
        self._a = [int(v) for v in expand(params.q, params.n, seed, "lwe public key", 0)]
        self._b = [int(v) for v in b]

    @classmethod
    def received(
        cls, params: ParameterSet, digest: bytes, header: bytes, chunk_digests: Sequence[bytes], first: bytes
    ) -> PublicKey:
        """Return the public key of keys with a digest, from their header, the digests of their chunks, and chunk 0.

        Raises:
            BadKeysError: the data does not match the digest.
        """
        params.layout.check(digest, header, chunk_digests)
        if hashlib.sha256(first).digest() != chunk_digests[0]:
            raise BadKeysError("chunk 0 does not match its digest")
        words = packed_size(params.n, params.width)
        try:
            b = residues(first[:words], params.n, params)
        except ValueError as error:
            raise BadKeysError(str(error)) from error
        return cls(params, header[32:], b)

    def encrypt(
        self, messages: Sequence[int], encoding: str = "plain", *, random: Random = secrets.token_bytes
    ) -> list[RingCiphertext]:
        """Encrypt messages in ring ciphertexts of ``params.n`` messages each; see ENCODINGS.

        With u a difference of bits in each coefficient, and errors e1 and e2 from the discrete Gaussian of the set's
        variance, whose distribution function is inverted with 192 bits, a ciphertext is (a u + e1, b u + e2 + m).
        These are the distributions of the Go client's encryptions.

        Args:
            messages: numbers from 0 to p - 1, or 0 and 1 for "boolean".
            encoding: one of ENCODINGS.
            random: returns random bytes. Anyone who knows or can repeat them can read the messages.
        """
        s, out = self.params, []
        for at in range(0, max(len(messages), 1), s.n):
            phases = [encode(s, index(m), encoding) for m in messages[at : at + s.n]]
            u, errors = differences(s.n, random), gaussian(s.variance, 2 * s.n, random)
            out.append(self._encrypted(phases, u, errors[: s.n], errors[s.n :]))
        return out

    def _encrypted(
        self, phases: Sequence[int], u: Sequence[int], e1: Sequence[int], e2: Sequence[int]
    ) -> RingCiphertext:
        """Encrypt with given randomness."""
        s, transform = self.params, Transform.of(self.params)
        values = transform.forward([x % s.q for x in u])
        a = transform.inverse([x * y % s.q for x, y in zip(self._a, values, strict=True)])
        b = transform.inverse([x * y % s.q for x, y in zip(self._b, values, strict=True)])
        m = [*phases, *[0] * (s.n - len(phases))]
        return RingCiphertext(
            s,
            np.array([(x + e) % s.q for x, e in zip(a, e1, strict=True)], np.uint64),
            np.array([(x + e + y) % s.q for x, e, y in zip(b, e2, m, strict=True)], np.uint64),
        )


def differences(count: int, random: Random) -> list[int]:
    """Return differences of two uniform bits each: -1 and 1 with probability 1/4 each, and 0 otherwise."""
    bits = int.from_bytes(random((2 * count + 7) // 8), "little")
    return [(bits >> 2 * i & 1) - (bits >> (2 * i + 1) & 1) for i in range(count)]


_TABLE_BITS = 192


@functools.cache
def gaussian_table(variance: float) -> tuple[int, ...]:
    """floor(2^192 P(\\|z\\| <= k)) for k = 0, 1, ... and z with probabilities proportional to exp(-z^2/(2 variance)).

    The table ends where less than 2^-192 is left.
    """
    with localcontext() as context:
        context.prec = 90
        scale, weights = 2 * Decimal(variance), [Decimal(1)]
        while weights[-1] > Decimal(2) ** -(_TABLE_BITS + 8):
            weights.append(2 * (-(Decimal(len(weights)) ** 2) / scale).exp())
        total, sums = sum(weights), [sum(weights[: k + 1]) for k in range(len(weights))]
        table = [int((Decimal(2) ** _TABLE_BITS * x / total).to_integral_value("ROUND_FLOOR")) for x in sums[:-1]]
    return tuple(table)


def ternary(count: int, random: Random) -> list[int]:
    """Return uniform values of -1, 0 and 1: two bits each; one of the four values is drawn again."""
    out: list[int] = []
    while len(out) < count:
        drawn = random((count - len(out) + 3) // 4 + 1)
        out += [v - 1 for byte in drawn for v in (byte & 3, byte >> 2 & 3, byte >> 4 & 3, byte >> 6) if v < 3]
    return out[:count]


def gaussian(variance: float, count: int, random: Random) -> list[int]:
    """Return discrete Gaussians: each is a position in the table, which is scanned completely, and a sign.

    The distribution differs from the exact one by less than 2^-180.
    """
    table, size = gaussian_table(variance), _TABLE_BITS // 8 + 1
    data, out = random(size * count), []
    for i in range(0, len(data), size):
        value = int.from_bytes(data[i : i + size - 1], "little")
        magnitude = sum(map(value.__ge__, table))
        out.append(magnitude * (1 - 2 * (data[i + size - 1] & 1)))
    return out
