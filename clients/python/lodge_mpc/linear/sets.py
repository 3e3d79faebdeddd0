"""Parameter sets of two-party linear algebra, as in engine/linear/set.go and noise.go."""

from __future__ import annotations

import functools
import hashlib
import math
import struct
from dataclasses import dataclass

from ..errors import ConfigError
from .residues import Transform, size

DEFAULT_VECTOR = "V13-32-proved"  #: of products on shares, whose inputs the owner of the key proves
UNPROVED = "V13-32"  #: of products on shares with inputs that nobody proves; parties refuse it by default
DEFAULT_PRODUCT = "P13-40"  #: of products of encrypted matrices

SEED = 32  #: bytes of a public seed
INPUTS_HEADER = 32 + 32 + SEED  #: bytes before ciphertexts: hash of the set, digest of the key, seed
MAX_ENTRIES = 1 << 24  #: rows, and columns, that a matrix may have
LOG_DISTANCE = -40.0  #: log2 of the statistical distance that all answers of a product may have together

PROOF_BITS = 10  #: of a coefficient of a response, the sign included
_SOUNDNESS = 130


@dataclass(frozen=True)
class Proof:
    """Sizes of the proofs that inputs are well formed."""

    secret_width: float
    mask_width: float
    bound: int


@dataclass(frozen=True)
class LinearSet:
    """One choice of ring, moduli and errors."""

    name: str
    log_n: int  #: ring Z[X]/(X^n+1), n = 2^log_n
    q: tuple[int, ...]  #: the first is that which answers are switched to
    t: int  #: values are modulo t, a prime
    error_width: float = 8.0  #: width w of errors, of density exp(-pi x^2/w^2)
    proof: Proof | None = None  #: of inputs, if keys prove them
    insecure: bool = False  #: for tests only

    @property
    def n(self) -> int:
        return 1 << self.log_n

    @property
    def log_q(self) -> float:
        return sum(math.log2(q) for q in self.q)

    @property
    def variance(self) -> float:
        """Variance of errors."""
        return self.error_width**2 / (2 * math.pi)

    def hash(self) -> bytes:
        """SHA-256 of all fields on which keys and ciphertexts depend."""
        h = hashlib.sha256()
        words = [struct.pack(">Q", v) for v in (self.log_n, len(self.q), self.t)]
        words += [struct.pack(">d", self.error_width), struct.pack(">Q", self.insecure)]
        words += [struct.pack(">Q", q) for q in self.q]
        if self.proof is not None:
            words += [struct.pack(">d", w) for w in (self.proof.secret_width, self.proof.mask_width)]
            words.append(struct.pack(">Q", self.proof.bound))
        for part in (b"lodge linear set 1", self.name.encode(), *words):
            h.update(struct.pack(">Q", len(part)) + part)
        return h.digest()

    def transform(self, i: int) -> Transform:
        """The transform of prime i."""
        q = self.q[i]
        return Transform.of(self.n, q, pow(_ROOTS[q], (q - 1) // (2 * self.n), q))

    def slots(self, count: int) -> Transform:
        """The transform for the given number of slots modulo t, with a power of the smallest non-square."""
        g = 2
        while pow(g, (self.t - 1) // 2, self.t) == 1:
            g += 1
        return Transform.of(count, self.t, pow(g, (self.t - 1) // (2 * count), self.t))

    @property
    def ciphertext_size(self) -> int:
        """Size of a fresh ciphertext."""
        return sum(size(self.n, q) for q in self.q)

    def key_size(self, products: bool) -> int:
        """Size of a public key, with or without the samples for products of ciphertexts."""
        return 2 * SEED + (1 + len(self.q) * products) * self.ciphertext_size

    def inputs_size(self, count: int) -> int:
        """Size of the given number of ciphertexts, with their header, and their proof if the set has one."""
        out = INPUTS_HEADER + count * self.ciphertext_size
        if self.proof is not None:
            short, long = (self.repetitions * ((self.n * bits + 7) // 8) for bits in (PROOF_BITS, self.input_bits))
            out += 32 + 2 * short + count * long
        return out

    @property
    def repetitions(self) -> int:
        """Repetitions of a proof: each has 2 n challenges."""
        return (_SOUNDNESS + self.log_n) // (self.log_n + 1)

    @property
    def input_bits(self) -> int:
        """Bits of a coefficient of a response for an input."""
        return PROOF_BITS + self.t.bit_length()

    def answer_size(self, targets: int) -> int:
        """Size of an answer of which the given number of coefficients are read."""
        return 32 + size(targets, self.q[0]) + size(self.n, self.q[0])

    def distance(self, noise: float, answers: int) -> float:
        """Return log2 of the statistical distance of all answers from a distribution that depends only on the result.

        Raises:
            ConfigError: the noise leaves no space for a flood that hides it.
        """
        room = (self.q[0] - 1 - self.t) // (2 * self.t) - self.rounding
        flood = room * math.prod(self.q[1:]) - int(noise)
        out = math.inf
        if flood > 0:
            out = math.log2(noise) - math.log2(flood) - 1 + self.log_n + math.log2(answers)
        if out > LOG_DISTANCE:
            raise ConfigError(
                f"{answers} answers with noises of {math.log2(noise):.0f} bits leave no flood in {self.name}",
                "multiply blocks, or use another set",
            )
        return out

    # Bounds on noise. For sets with proofs they also hold for owners that do not follow the protocol.

    @property
    def secret_variance(self) -> float:
        """Variance of a coefficient of the secret."""
        return 2 / 3 if self.proof is None else self.proof.secret_width**2 / (2 * math.pi)

    @property
    def rounding(self) -> int:
        """Noise added by a switch of the modulus, except with probability 2^-128."""
        return math.ceil(0.5 + 13.5 * math.sqrt(self.n * self.secret_variance / 12)) + 2

    @property
    def _tail(self) -> float:
        return self.error_width * math.sqrt(129 * math.log(2) / math.pi)

    def _proved(self, rounded: float) -> float:
        """Bounds on twice a secret, or twice the phase of an input, guaranteed by a proof."""
        assert self.proof is not None
        return _up(2 / math.sin(math.pi / (2 * self.n)) * (self.proof.bound + rounded))

    @property
    def _zero(self) -> float:
        if self.proof is not None:
            return _up((math.sqrt(self.n) + self._tail) * self._proved(0))
        return self._tail * math.sqrt(2 * self.n)

    def product_noise(self, terms: int, support: int) -> float:
        """Noise of sums of ciphertexts times polynomials, with messages of the given number of coefficients."""
        if self.proof is not None:
            return _up(terms * math.sqrt(self.n) * self.t / 2 * self._proved(self.n / 2) + 1 + self._zero)
        errors = self._tail * math.sqrt(terms * self.n) * self.t / 2
        return _up(errors + terms * support * self.t / 4 + 1 + self._zero)

    def scalar_noise(self, terms: int) -> float:
        """The same for numbers instead of polynomials."""
        if self.proof is not None:
            return _up(terms * self.t / 2 * self._proved(self.n / 2) + 1 + self._zero)
        return _up(self._tail * math.sqrt(terms) * self.t / 2 + terms * self.t / 4 + 1 + self._zero)

    def square_noise(self, terms: int, moved: int) -> float:
        """Noise of sums of products of a ciphertext and a sum of moved ones, after relinearisation."""
        t, n, long, wider = self.t, self.n, self._tail * math.sqrt(terms * self.n), math.sqrt(moved)
        digits = self._tail * math.sqrt(len(self.q) * n) * max(self.q) / 2
        squares = t / 2 * long * (1 + wider) + t * self._tail * wider * long
        return _up(terms * n * t / 4 + 1 + squares + digits + self._zero)


def _up(x: float) -> float:
    return math.ceil(x * (1 + 2.0**-30))


# The primes, with the smallest primitive root above 2 of each: transforms use a power of the root.
_Q56, _Q50, _Q48 = 72057594037370881, (1125899904679937, 1125899903991809), 281474976546817
_Q44 = (17592183914497, 17592183390209, 17592183324673)
_ROOTS = dict(zip((_Q56, *_Q50, _Q48, *_Q44), (19, 3, 3, 5, 5, 3, 5), strict=True))
_T40, _T32, _T17 = 1099510054913, (1 << 32) - (1 << 20) + 1, (1 << 16) + 1


def _registry() -> list[LinearSet]:
    out = []
    for log_n, prefix, proof in (
        (13, "", Proof(16.0, 51.0, 19400)),
        (6, "insecure-", Proof(16.0, 68.0, 2220)),
    ):
        for name, q, t in (
            ("V{}-32", (_Q48, *_Q50), _T32),
            ("V{}-32-proved", (_Q48, *_Q44), _T32),
            ("P{}-17", (_Q44[0], *_Q50), _T17),
            ("P{}-40", (_Q56, *_Q44), _T40),
        ):
            own = proof if name.endswith("-proved") else None
            out.append(LinearSet(prefix + name.format(log_n), log_n, q, t, 8.0, own, bool(prefix)))
    return out


@functools.cache
def _sets() -> dict[str, LinearSet]:
    return {s.name: s for s in _registry()}


def sets() -> list[LinearSet]:
    """Return the secure sets."""
    return [s for s in _sets().values() if not s.insecure]


def lookup(name: str) -> LinearSet:
    """Return the set with the given name."""
    found = _sets().get(name)
    if found is None:
        known = ", ".join(s.name for s in sets())
        raise ConfigError(f"unknown set {name!r} of linear algebra", f"name one of {known}, or use a newer client")
    return found
