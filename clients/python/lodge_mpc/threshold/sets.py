"""Parameter sets of threshold keys, as in engine/lwe/set.go, and the parameters of decryption."""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import BadKeysError, ConfigError

CHUNK_WORDS = 1 << 19  # residues in a chunk of public keys, except the last one
SEED_SIZE = 32
HEADER_SIZE = 32 + SEED_SIZE  # of public keys: the hash of the set, and a seed; BGV keys have more


@dataclass(frozen=True)
class KeyLayout:
    """The division of public keys into chunks. The digest of the keys covers the header and the chunks' digests."""

    params: str
    params_hash: bytes
    tag: bytes  #: prefix of the hashed bytes
    chunk_sizes: tuple[int, ...]
    header_end: bytes = b""  #: of the header, after the hash of the set and the seed

    @property
    def chunks(self) -> int:
        return len(self.chunk_sizes)

    @property
    def header_size(self) -> int:
        return HEADER_SIZE + len(self.header_end)

    def check(self, digest: bytes, header: bytes, chunk_digests: Sequence[bytes]) -> None:
        """Raise an error unless a header and chunk digests match the digest of keys."""
        lengths = len(header) != self.header_size or any(len(d) != 32 for d in chunk_digests)
        if lengths or len(chunk_digests) != self.chunks:
            raise BadKeysError(f"a header of {len(header)} bytes and {len(chunk_digests)} chunks are invalid")
        if header[:32] != self.params_hash or header[HEADER_SIZE:] != self.header_end:
            raise BadKeysError(f"the keys are not of set {self.params}, or are for other automorphisms")
        if hashlib.sha256(self.tag + header + b"".join(chunk_digests)).digest() != digest:
            raise BadKeysError(f"they do not match digest {digest.hex()}")


@dataclass(frozen=True)
class ParameterSet:
    """One choice of rings, moduli and distributions. Different values make a client incompatible with the keys."""

    name: str
    log_n: int  #: ring Z[X]/(X^n+1), n = 2^log_n, which is also the dimension of LWE ciphertexts
    q: int  #: modulus, a prime that is 1 mod 2n
    p: int  #: messages are modulo p, a power of two
    dim: int  #: of the secret of key switching
    variance: float  #: of errors of the public key and of encryptions
    switch_variance: float
    rotation: tuple[int, int]  #: log2 of the base, and digits
    switch: tuple[int, int]
    psi: int  #: root of order 2n modulo q, whose power is in slot 0 of transforms
    insecure: bool = False  #: for tests only
    centred: bool = False  #: evaluation subtracts the mean of rounding errors
    successor: str = ""  #: of a legacy set, the set that makes new keys

    @property
    def n(self) -> int:
        return 1 << self.log_n

    @property
    def width(self) -> int:
        """Bits of a packed residue."""
        return (self.q - 1).bit_length()

    @property
    def lwe_size(self) -> int:
        """Size of an encoded LWE ciphertext."""
        return packed_size(self.n, self.width) + packed_size(1, self.width)

    @property
    def ring_size(self) -> int:
        """Size of an encoded ring ciphertext."""
        return 2 * packed_size(self.n, self.width)

    @property
    def key_words(self) -> int:
        """Number of residues in the public keys: the public key, the switching key and the rotation key."""
        return self.n * (1 + self.switch[1] + 2 * self.dim * self.rotation[1])

    @property
    def chunks(self) -> int:
        """Number of chunks of the public keys."""
        return -(-self.key_words // CHUNK_WORDS)

    def chunk_size(self, i: int) -> int:
        """Size of chunk i."""
        return packed_size(min(CHUNK_WORDS, self.key_words - i * CHUNK_WORDS), self.width)

    @property
    def layout(self) -> KeyLayout:
        sizes = tuple(self.chunk_size(i) for i in range(self.chunks))
        return KeyLayout(self.name, self.hash(), b"lodge lwe keys 1", sizes)

    def hash(self) -> bytes:
        """SHA-256 of all fields on which keys and ciphertexts depend."""
        h = hashlib.sha256()
        numbers = struct.pack(">4Q2d5Q", self.log_n, self.q, self.p, self.dim, self.variance, self.switch_variance,
                              *self.rotation, *self.switch, self.insecure)  # fmt: skip
        words = [numbers[i : i + 8] for i in range(0, len(numbers), 8)]
        if self.centred:
            words.append(b"centred rounding")
        for part in (b"lodge lwe set 1", self.name.encode(), *words):
            h.update(struct.pack(">Q", len(part)) + part)
        return h.digest()


_Q50, _Q53 = (1 << 50) - 16383, 9007199254614017
_Rest = tuple[float, float, tuple[int, int], tuple[int, int]]
_L50: _Rest = (12.96, 2.0**52, (23, 1), (6, 3))
_L53: _Rest = (12.96, 11.56 * 2.0**52, (6, 8), (1, 52))
_T50: _Rest = (12.96, 2.0**57, (23, 1), (4, 4))
_T53: _Rest = (12.96, 2.0**63, (6, 8), (4, 4))
_PSI50, _PSI53, _PSI_SMALL = 766175524286974, 6395427220433938, 721671020919133
_SETS = {
    s.name: s
    for s in (
        ParameterSet("T11-4", 11, _Q50, 16, 928, *_T50, psi=_PSI50, centred=True),
        ParameterSet("T11-53", 11, _Q53, 16, 928, *_T53, psi=_PSI53, centred=True),
        ParameterSet("L11-50", 11, _Q50, 16, 1024, *_L50, psi=_PSI50, successor="T11-4"),
        ParameterSet("L11-53", 11, _Q53, 16, 1024, *_L53, psi=_PSI53, successor="T11-53"),
        ParameterSet("insecure-L8-50", 8, _Q50, 16, 16, *_L50, psi=_PSI_SMALL, insecure=True),
        ParameterSet("insecure-L8-53", 8, _Q53, 16, 16, *_L53, psi=1127293743770373, insecure=True),
        ParameterSet(
            "insecure-L8-legacy", 8, _Q50, 16, 16, *_L50, psi=_PSI_SMALL, insecure=True, successor="insecure-T8-50"
        ),
        ParameterSet("insecure-T8-50", 8, _Q50, 16, 16, *_L50, psi=_PSI_SMALL, insecure=True, centred=True),
    )
}


def lookup(name: str) -> ParameterSet:
    """Return the set with the given name."""
    found = _SETS.get(name)
    if found is None:
        raise ConfigError(f"parameter set {name!r} is unknown; this client may be too old")
    return found


def packed_size(count: int, width: int) -> int:
    """Size of the given number of packed numbers of width bits."""
    return (count * width + 7) // 8


MASKS = ("exact", "paper")  #: forms of masks
MAX_EXACT = 16  # bits of noise that exact masks compare


@dataclass(frozen=True)
class Kind:
    """Parameters of decryption by a quorum: its parties' words add up to 2^log_phi times the message, modulo eta."""

    log_eta: int  #: bits of a word
    log_phi: int
    odd: int = 0  #: modulus of messages if it is odd, otherwise 0

    @property
    def eta(self) -> int:
        return self.odd << self.log_phi if self.odd else 1 << self.log_eta

    @classmethod
    def of_odd(cls, q: int, t: int, threshold: int, bound: float) -> Kind:
        """Return the kind with the smallest phi for which noise up to a bound never fails, for messages modulo an
        odd t.
        """
        for log_phi in range(1, MAX_EXACT + 1):
            kind = cls(log_phi + t.bit_length(), log_phi, t)
            phi, eta = math.ldexp(1.0, log_phi), float(kind.eta)
            room = ((phi - threshold - 1) * q / (2 * eta)) * (1 - math.ldexp(1.0, -40)) - 1
            if kind.log_eta <= (q - 1).bit_length() and bound <= room:
                return kind
        raise ConfigError(f"{threshold + 1} parties are too many for masks of these keys")

    @classmethod
    def of(cls, s: ParameterSet, threshold: int, masks: str) -> Kind:
        """Return the kind for threshold + 1 parties.

        With exact masks it has the smallest phi for which noise of q/4p, half of the amount that makes a ciphertext
        ambiguous, never fails.
        """
        if masks not in MASKS:
            raise ConfigError(f"{masks!r} is not a form of masks", f"write one of {', '.join(MASKS)}")
        log_p = s.p.bit_length() - 1
        if masks == "paper":
            return cls(s.width, s.width - log_p)
        for log_phi in range(1, min(MAX_EXACT, s.width - log_p) + 1):
            if s.q / (4 * s.p) <= max_noise(s.q, s.p, log_phi, threshold + 1):
                return cls(log_phi + log_p, log_phi)
        raise ConfigError(f"{threshold + 1} parties are too many for exact masks under {s.name}")


def max_noise(q: int, p: int, log_phi: int, parties: int) -> float:
    """Return the largest noise that never fails, computed as the parties do, and reduced by a fraction of 2^-40 as a
    margin for rounding.
    """
    phi = math.ldexp(1.0, log_phi)
    return ((phi - parties) * q / (2 * phi * p)) * (1 - math.ldexp(1.0, -40)) - p
