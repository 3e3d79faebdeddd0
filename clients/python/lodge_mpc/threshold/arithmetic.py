"""Residues: packing, transforms, and expansion of public seeds.

The time of operations on Python's integers depends on their values. Nothing here is constant time.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from .sets import ParameterSet, packed_size

Residues = npt.NDArray[np.uint64]


def pack(values: Residues, width: int) -> bytes:
    """Pack numbers of width bits, least significant bit first."""
    octets = values.astype("<u8").view(np.uint8).reshape(-1, 8)
    bits = np.unpackbits(octets, axis=1, bitorder="little")[:, :width]
    return np.packbits(bits.reshape(-1), bitorder="little").tobytes()


def unpack(data: bytes, count: int, width: int) -> Residues:
    """Inverse of pack, for data of exactly the right size whose padding is zero."""
    if len(data) != packed_size(count, width):
        raise ValueError(f"{len(data)} bytes, want {packed_size(count, width)}")
    bits = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")
    if bits[count * width :].any():
        raise ValueError("padding is not zero")
    octets = np.zeros((count, 64), np.uint8)
    octets[:, :width] = bits[: count * width].reshape(count, width)
    return np.packbits(octets, axis=1, bitorder="little").view("<u8").reshape(-1).astype(np.uint64)


def residues(data: bytes, count: int, s: ParameterSet) -> Residues:
    """Unpacks residues, each of which must be below q."""
    out = unpack(data, count, s.width)
    if (out >= np.uint64(s.q)).any():
        raise ValueError(f"a residue is not below {s.q}")
    return out


class Transform:
    """The number theoretic transform of Z_q[X]/(X^n+1): slot k holds the value at psi^(2 rev(k) + 1)."""

    def __init__(self, s: ParameterSet) -> None:
        self.q, self.n = s.q, s.n
        self._roots = self._powers(s, s.psi)
        self._inverses = self._powers(s, pow(s.psi, -1, s.q))
        self._scale = pow(s.n, -1, s.q)

    @staticmethod
    @functools.cache
    def of(s: ParameterSet) -> Transform:
        """Return the transform of a set, which is prepared once."""
        return Transform(s)

    @staticmethod
    def _powers(s: ParameterSet, root: int) -> list[int]:
        out, power = [0] * s.n, 1
        for i in range(s.n):
            out[int(f"{i:0{s.log_n}b}"[::-1], 2)] = power
            power = power * root % s.q
        return out

    def forward(self, values: Sequence[int]) -> list[int]:
        """Cooley-Tukey butterflies."""
        x, q, half, block = list(values), self.q, self.n // 2, 1
        while half:
            for i in range(block):
                root, at = self._roots[block + i], 2 * i * half
                low, high = x[at : at + half], [v * root % q for v in x[at + half : at + 2 * half]]
                x[at : at + half] = [(u + v) % q for u, v in zip(low, high, strict=True)]
                x[at + half : at + 2 * half] = [(u - v) % q for u, v in zip(low, high, strict=True)]
            half, block = half // 2, 2 * block
        return x

    def inverse(self, values: Sequence[int]) -> list[int]:
        """Gentleman-Sande butterflies."""
        x, q, half, block = list(values), self.q, 1, self.n // 2
        while block:
            for i in range(block):
                root, at = self._inverses[block + i], 2 * i * half
                low, high = x[at : at + half], x[at + half : at + 2 * half]
                x[at : at + half] = [(u + v) % q for u, v in zip(low, high, strict=True)]
                x[at + half : at + 2 * half] = [(u - v) * root % q for u, v in zip(low, high, strict=True)]
            half, block = 2 * half, block // 2
        return [v * self._scale % q for v in x]


def expand(q: int, count: int, seed: bytes, label: str, index: int, *, prime: int = 0) -> Residues:
    """Return uniform residues modulo q, derived from a public seed.

    They are drawn, by rejection of values that are not below q, from the stream of AES-256 in counter mode whose key
    is SHAKE256 of the fields below, each preceded by its length.
    """
    key, mask = _stream_key(seed, label, index, prime), np.uint64((1 << (q - 1).bit_length()) - 1)
    taken, first = np.empty(0, np.uint64), 0
    while len(taken) < count:
        blocks = (count - len(taken)) // 2 + 64
        words = np.frombuffer(_keystream(key, first, blocks), "<u8") & mask
        taken, first = np.concatenate([taken, words[words < q]]), first + blocks
    return taken[:count]


def expand_words(count: int, seed: bytes, label: str, index: int) -> Residues:
    """Return the unmodified words of the same stream."""
    stream = _keystream(_stream_key(seed, label, index, 0), 0, (count + 1) // 2)
    return np.frombuffer(stream, "<u8")[:count].astype(np.uint64)


def _stream_key(seed: bytes, label: str, index: int, prime: int) -> bytes:
    h = hashlib.shake_256()
    numbers = (struct.pack("<Q", index), struct.pack("<Q", prime))  # the second is the number of q among the primes
    for part in (b"lodge common reference string", seed, label.encode(), *numbers):
        h.update(struct.pack("<Q", len(part)) + part)
    return h.digest(32)


# AES-256, only for public keys: its table lookups depend on the key, which a cache reveals.


@functools.cache
def _tables() -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
    """The S-box, and multiplication by x in GF(2^8)."""
    double = [(v << 1) ^ (0x11B if v & 0x80 else 0) for v in range(256)]
    power, powers = 1, []  # of the generator x + 1
    for _ in range(255):
        powers.append(power)
        power ^= double[power]
    box = [0x63]
    for v in range(1, 256):
        w = powers[-powers.index(v) % 255]  # the inverse
        box.append(0x63 ^ w ^ _left(w, 1) ^ _left(w, 2) ^ _left(w, 3) ^ _left(w, 4))
    return np.array(box, np.uint8), np.array(double, np.uint8)


def _left(v: int, by: int) -> int:
    return (v << by | v >> (8 - by)) & 0xFF


def _schedule(key: bytes) -> list[npt.NDArray[np.uint8]]:
    """The 15 round keys."""
    box, double = _tables()
    words, constant = [np.frombuffer(key[i : i + 4], np.uint8) for i in range(0, 32, 4)], 1
    for i in range(8, 60):
        w = words[-1]
        if i % 8 == 0:
            w = box[np.roll(w, -1)] ^ np.array([constant, 0, 0, 0], np.uint8)
            constant = int(double[constant])
        elif i % 8 == 4:
            w = box[w]
        words.append(words[-8] ^ w)
    return [np.concatenate(words[4 * r : 4 * r + 4]) for r in range(15)]


def _keystream(key: bytes, first: int, blocks: int) -> bytes:
    """Return blocks of the key stream: encryptions of the numbers from first on, of 16 bytes, most significant
    first.
    """
    box, double = _tables()
    keys, rows = _schedule(key), np.array([(5 * i) % 16 for i in range(16)])
    state = np.zeros((blocks, 16), np.uint8)
    state[:, 8:] = np.arange(first, first + blocks, dtype=">u8").view(np.uint8).reshape(-1, 8)
    state ^= keys[0]
    for r in range(1, 15):
        state = box[state][:, rows]
        if r < 14:
            columns = state.reshape(-1, 4, 4)
            total = np.bitwise_xor.reduce(columns, axis=2, keepdims=True)
            state = (columns ^ total ^ double[columns ^ np.roll(columns, -1, axis=2)]).reshape(-1, 16)
        state = state ^ keys[r]
    return state.tobytes()
