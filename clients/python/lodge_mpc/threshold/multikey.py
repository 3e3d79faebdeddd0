"""Ciphertexts of bits under several parties' own keys, as in engine/multikey, and their decryption by quorums."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ..errors import BadAnswersError, ConfigError
from .answers import Masked
from .arithmetic import expand_words
from .sets import MAX_EXACT, Kind, max_noise

SEED_SIZE = 32
MAX_BATCH = 1 << 20  # bits of a batch
_HEAD = 32 + 32 + SEED_SIZE + 4  # of a batch: hash of the set, name of the keys, seed, number of bits
_CHUNK = 3 << 20  # maximal size of a chunk of the rotation key, except one with a single coordinate
_MODULUS = 1 << 32
_LOG_P = 2  # an eighth is added before decryption, so that bits are 0 and 1 of 4
_DEVIATIONS = 13.2  # noise up to this many deviations never fails; more has probability below 2^-128
_LEGACY_DEVIATIONS = 9.2  # the same for sets that shipped earlier: 2^-64

Gadget = tuple[int, int]  # log2 of the base, and digits


@dataclass(frozen=True)
class MultikeySet:
    """One choice of dimensions, distributions and gadgets. Different values make ciphertexts incompatible."""

    name: str
    parties: int  #: largest number of parties in one ciphertext
    log_n: int
    dim: int  #: words of a ciphertext for each party
    block: int
    lwe: float
    ring: float
    rotation: Gadget
    lev: Gadget
    uni: Gadget
    switch: Gadget
    drop: int
    deviation: float  #: standard deviation of the noise of the noisiest result, with all parties
    insecure: bool = False  #: too few bits of security, or for tests only
    centred: bool = False  #: evaluation subtracts the mean of rounding errors
    successor: str = ""  #: of a legacy set, the set that makes new keys

    def hash(self) -> bytes:
        """SHA-256 of all fields on which keys and ciphertexts depend."""
        h = hashlib.sha256()
        numbers = struct.pack(">4Q2d10Q", self.parties, self.log_n, self.dim, self.block, self.lwe, self.ring,
                              *self.rotation, *self.lev, *self.uni, *self.switch, self.drop, self.insecure)  # fmt: skip
        words = [numbers[i : i + 8] for i in range(0, len(numbers), 8)]
        if self.centred:
            words.append(b"centred rounding")
        for part in (b"lodge multikey set 1", self.name.encode(), *words):
            h.update(struct.pack(">Q", len(part)) + part)
        return h.digest()

    def ciphertext_size(self, keys: int) -> int:
        """Size of a ciphertext under the given number of keys."""
        return 1 + 4 + keys * (32 + 4 * self.dim)

    def batch_size(self, count: int) -> int:
        """Size of a batch of the given number of bits."""
        return _HEAD + 4 * count

    def chunk_sizes(self) -> tuple[int, ...]:
        """Sizes of the chunks of public keys: the first with the small parts, followed by those of the rotation
        key.
        """
        n = 1 << self.log_n
        element = (n * (64 - self.drop) + 7) // 8
        first, each = 3 * self.uni[1], 2 * self.rotation[1]  # ring elements: before it, and of each coordinate
        per = max(1, _CHUNK // (each * element))
        small = 4 * (n - self.dim) * self.switch[1] + first * element
        return small, *(min(per, self.dim - at) * each * element for at in range(0, self.dim, per))

    def kind(self, parties: int) -> Kind:
        """Parameters with which the given number of parties decrypt."""
        deviations = _DEVIATIONS if self.centred else _LEGACY_DEVIATIONS
        if 2 <= parties <= max(2, self.parties):
            for log_phi in range(1, MAX_EXACT + 1):
                if deviations * self.deviation <= max_noise(_MODULUS, 1 << _LOG_P, log_phi, parties):
                    return Kind(log_phi + _LOG_P, log_phi)
        raise ConfigError(f"{parties} parties cannot decrypt under {self.name}", "see `lodge params show`")


def _shipped(parties: int, dim: int, lwe: str, gadgets: tuple[Gadget, Gadget, Gadget], dev: float) -> MultikeySet:
    rotation, lev, switch = gadgets
    name = f"M11-{parties}-128"
    return MultikeySet(
        name, parties, 11, dim, 2, float.fromhex(lwe), 2.0**-50, rotation, lev, (12, 2), switch, 8, dev, centred=True
    )


def _legacy(parties: int, dim: int, lwe: str, gadgets: tuple[Gadget, Gadget, Gadget], dev: float) -> MultikeySet:
    current = _shipped(parties, dim, lwe, gadgets, dev)
    return replace(current, name=f"M11-{parties}", centred=False, successor=current.name)


def _paper(name: str, parties: int, gadgets: tuple[Gadget, Gadget, Gadget], dev: float) -> MultikeySet:
    name = f"insecure-M11-{name}"
    return MultikeySet(name, parties, 11, 560, 2, 3.05e-5, 4.63e-18, *gadgets, (2, 8), 0, dev, insecure=True)


_TEST = 7.403199702050327e6
_SMALL = MultikeySet(
    "insecure-M8-32", 32, 8, 32, 2, 2.0**-20, 2.0**-50, (12, 3), (8, 2), (12, 2), (2, 8), 8, _TEST, True
)
_SETS = {
    s.name: s
    for s in (
        _shipped(2, 716, "0x1.6a09e667f3bccp-16", ((7, 6), (12, 1), (2, 7)), 26982029.752395604),
        _shipped(4, 716, "0x1.6a09e667f3bccp-16", ((9, 4), (7, 2), (2, 7)), 24701430.83360377),
        _shipped(8, 776, "0x1p-17", ((9, 4), (7, 2), (2, 8)), 26087807.084646273),
        _shipped(16, 776, "0x1p-17", ((7, 6), (8, 2), (2, 8)), 25674489.814159),
        _shipped(32, 820, "0x1.bdb8cdadbe124p-19", ((8, 5), (6, 3), (2, 8)), 23599481.18223876),
        _legacy(2, 684, "0x1.6a09e667f3bccp-16", ((8, 5), (11, 1), (3, 5)), 3.95865481317089e7),
        _legacy(4, 724, "0x1.6a09e667f3bccp-17", ((11, 3), (6, 2), (3, 5)), 4.046865868208241e7),
        _legacy(8, 684, "0x1.6a09e667f3bccp-16", ((9, 4), (7, 2), (2, 7)), 3.925658252773209e7),
        _legacy(16, 736, "0x1.306fe0a31b715p-17", ((8, 5), (8, 2), (2, 7)), 3.8468384934632555e7),
        _legacy(32, 744, "0x1p-17", ((6, 7), (8, 2), (2, 7)), 3.582041377192216e7),
        _paper("I", 2, ((12, 3), (6, 2), (10, 3)), 2.910477363430609e7),
        _paper("II", 4, ((8, 5), (8, 2), (6, 7)), 3.563410425875907e7),
        _paper("III", 8, ((9, 4), (6, 3), (4, 8)), 5.02715915877116e7),
        _paper("IV", 16, ((8, 5), (6, 3), (4, 9)), 7.06052128058918e7),
        _paper("V", 32, ((7, 6), (7, 3), (2, 16)), 1.0087657179364105e8),
        _SMALL,
        replace(_SMALL, name="insecure-M8-legacy", successor="insecure-M8-32-128"),
        replace(_SMALL, name="insecure-M8-32-128", centred=True),
    )
}


def lookup_multikey(name: str) -> MultikeySet | None:
    """Return the set with the given name; None if there is none."""
    return _SETS.get(name)


def lookup_multikey_hash(hash_: bytes) -> MultikeySet | None:
    """Return the set with the given hash; None if there is none."""
    return next((s for s in _SETS.values() if s.hash() == hash_), None)


@dataclass(frozen=True, repr=False)
class MultikeyCiphertext:
    """A bit under the keys of some parties, or a public bit without keys."""

    params: MultikeySet
    data: bytes  #: the encoding

    def __repr__(self) -> str:
        return f"<multi-key ciphertext of {self.params.name} under {len(self.keys)} keys>"

    def __len__(self) -> int:
        return 1  # bit, as groups of inputs count them

    @property
    def keys(self) -> tuple[bytes, ...]:
        """Names of the keys, in ascending order."""
        return tuple(self.data[1 + 32 * i :][:32] for i in range(self.data[0]))

    @property
    def bit(self) -> int | None:
        """The bit if it is public, and None otherwise."""
        return None if self.data[0] else int(self.data[4] < 0x80)

    def encode(self) -> bytes:
        return self.data

    @classmethod
    def decode(cls, s: MultikeySet, data: bytes) -> MultikeyCiphertext:
        """Read exactly one ciphertext.

        Raises:
            ConfigError: the data is not of the set.
        """
        if not data or data[0] > s.parties or len(data) != s.ciphertext_size(data[0]):
            raise ConfigError(f"{len(data)} bytes are not a ciphertext of {s.name}")
        c = cls(s, bytes(data))
        if any(a >= b for a, b in zip(c.keys, c.keys[1:], strict=False)):
            raise ConfigError("the keys of a ciphertext are not in ascending order")
        return c


@dataclass(frozen=True, repr=False)
class Batch:
    """Bits under one party's keys, as encrypted by that party: four bytes each, and a seed for the rest."""

    params: MultikeySet
    key: bytes  #: name of the keys
    seed: bytes
    b: npt.NDArray[np.uint32]

    def __repr__(self) -> str:
        return f"<batch of {len(self)} bits of {self.params.name} under the keys {self.key[:4].hex()}>"

    def __len__(self) -> int:
        return len(self.b)

    @property
    def keys(self) -> tuple[bytes, ...]:
        return (self.key,)

    def ciphertext(self, i: int) -> MultikeyCiphertext:
        """Return the ciphertext of bit i."""
        words = expand_words(self.params.dim // 2, self.seed, "multikey encryption", i)
        b = struct.pack("<I", int(self.b[i]))
        return MultikeyCiphertext(self.params, b"\x01" + self.key + b + words.astype("<u8").tobytes())

    def ciphertexts(self) -> list[MultikeyCiphertext]:
        """Return the ciphertexts of all bits."""
        return [self.ciphertext(i) for i in range(len(self))]

    def encode(self) -> bytes:
        head = self.params.hash() + self.key + self.seed + struct.pack("<I", len(self))
        return head + self.b.astype("<u4").tobytes()

    @classmethod
    def decode(cls, s: MultikeySet, data: bytes) -> Batch:
        """Read exactly one batch.

        Raises:
            ConfigError: the data is not of the set.
        """
        if len(data) < _HEAD or data[:32] != s.hash():
            raise ConfigError(f"{len(data)} bytes are not a batch of {s.name}")
        (count,) = struct.unpack_from("<I", data, _HEAD - 4)
        if count > MAX_BATCH or len(data) != s.batch_size(count):
            raise ConfigError(f"a batch of {count} bits in {len(data)} bytes")
        return cls(s, data[32:64], data[64 : _HEAD - 4], np.frombuffer(data, "<u4", count, _HEAD).astype(np.uint32))


@dataclass(frozen=True)
class MaskedBits:
    """Reads answers of a quorum; they depend on the number of its parties."""

    masked: Masked

    @property
    def most(self) -> int:
        return self.masked.most

    def check(self, data: bytes) -> None:
        self.masked.check(data)

    def messages(self, parts: Sequence[bytes]) -> list[int]:
        """Return the bits.

        Raises:
            BadAnswersError: a result is not a bit, as for ciphertexts with more noise than results of gates have.
        """
        bits = self.masked.messages(parts)
        if any(b > 1 for b in bits):
            raise BadAnswersError("the result is not a bit: the ciphertext has too much noise", "compute it again")
        return bits


def checked(
    s: MultikeySet, ciphertexts: Sequence[object], owners: Mapping[bytes, int]
) -> tuple[list[MultikeyCiphertext], list[tuple[bytes, int]]]:
    """Ciphertexts of one request, which are under the same keys, and the owners of these keys."""
    out = [c for c in ciphertexts if isinstance(c, MultikeyCiphertext) and c.params == s]
    if not out or len(out) < len(ciphertexts) or len({c.keys for c in out}) > 1:
        raise ConfigError(f"these are not multi-key ciphertexts of {s.name} under the same keys", "split the request")
    if not out[0].keys:
        raise ConfigError("these ciphertexts are public bits", "read their bit")
    if any(k not in owners for k in out[0].keys):
        raise ConfigError("some keys have no owner given", "use MultikeyClient.decrypt, which finds owners")
    return out, [(k, owners[k]) for k in out[0].keys]
