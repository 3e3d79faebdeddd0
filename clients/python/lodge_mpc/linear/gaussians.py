"""Random integers of linear algebra: discrete Gaussians and uniform residues."""

from __future__ import annotations

import numpy as np

from ..threshold.ciphertexts import Random, gaussian_table
from .residues import Signed, Words


def gaussian(variance: float, count: int, random: Random) -> Signed:
    """Draw discrete Gaussians like threshold.ciphertexts.gaussian: a position in a table of 192 bits, and a sign.

    The upper 64 bits determine the position except with probability about 2^-58, when all bits are compared.
    """
    table = gaussian_table(variance)
    data = np.frombuffer(random(25 * count), np.uint8).reshape(count, 25)
    high = np.ascontiguousarray(data[:, 16:24]).view("<u8").reshape(-1)
    magnitudes = np.zeros(count, np.int64)
    close = np.zeros(count, bool)
    for limit in table:  # all of it, for every value
        upper = np.uint64(limit >> 128)
        magnitudes += high > upper
        close |= high == upper
    for i in np.flatnonzero(close):
        value = int.from_bytes(data[i, :24].tobytes(), "little")
        magnitudes[i] = sum(map(value.__ge__, table))
    return magnitudes * (1 - 2 * (data[:, 24] & 1).astype(np.int64))


def uniform(q: int, count: int, random: Random) -> Words:
    """Return uniform residues modulo q < 2^63: random numbers with the length of q; those not below q are drawn
    again.
    """
    out, left = np.zeros(count, np.uint64), np.arange(count)
    mask = np.uint64((1 << (q - 1).bit_length()) - 1)
    while len(left):
        drawn = np.frombuffer(random(8 * len(left)), "<u8") & mask
        kept = drawn < np.uint64(q)
        out[left[kept]] = drawn[kept]
        left = left[~kept]
    return out
