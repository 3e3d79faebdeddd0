"""Arithmetic modulo a prime on numpy arrays of Python's ints (dtype object)."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[Any]  #: elements of the field, from 0 to p - 1, or integers that stand for them

_EXACT = 53  # bits that a float64 represents exactly


class Field:
    """The integers modulo a prime p."""

    def __init__(self, p: int) -> None:
        self.p = p
        self.size = math.ceil(p.bit_length() / 8)  #: bytes of an encoded element

    def elements(self, values: npt.ArrayLike) -> Values:
        """Return integers of either sign as elements."""
        return np.asarray(np.asarray(values, dtype=object) % self.p, dtype=object)

    def signed(self, elements: Values) -> Values:
        """Return elements as the integers from -(p - 1) / 2 to (p - 1) / 2."""
        return np.asarray(elements - (elements > self.p // 2).astype(object) * self.p, dtype=object)

    def encode(self, elements: Values) -> bytes:
        """Return the elements as consecutive little-endian integers."""
        size = self.size
        return b"".join([int(v).to_bytes(size, "little") for v in elements.ravel()])

    def decode(self, data: bytes | memoryview, shape: tuple[int, ...]) -> Values:
        """Return the elements of an encoding.

        Raises:
            ValueError: an element is not below the prime, or the length is wrong.
        """
        size, count = self.size, math.prod(shape)
        if len(data) != count * size:
            raise ValueError(f"{len(data)} bytes for {count} elements of {size} bytes")
        out = np.empty(count, dtype=object)
        out[:] = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
        if count and max(out) >= self.p:
            raise ValueError("an element is not below the prime")
        return out.reshape(shape)

    def expand(self, seed: bytes, count: int) -> Values:
        """Return count elements that a hash derives from a seed. Each is within 2^-64 of uniform."""
        size = self.size + 8
        data = hashlib.shake_256(seed).digest(count * size)
        out = np.empty(count, dtype=object)
        out[:] = [int.from_bytes(data[i : i + size], "little") % self.p for i in range(0, len(data), size)]
        return out

    def matmul(self, a: Values, b: Values) -> Values:
        """Return the product of two matrices, which may be stacked as for numpy.matmul.

        The matrices are split into limbs of so few bits that the products of limbs are exact in float64. numpy computes
        those with a fast library.
        """
        inner = a.shape[-1]
        bits = (_EXACT - max(inner - 1, 1).bit_length()) // 2
        left, right = self._limbs(a, bits), self._limbs(b, bits)
        out: Values | int = 0
        for s in range(len(left) + len(right) - 1):
            pairs = range(max(0, s - len(right) + 1), min(s + 1, len(left)))
            # At most 2^5 terms of 53 bits, so the sum fits in 64 bits.
            total = sum((left[i] @ right[s - i]).astype(np.int64) for i in pairs)
            out = out + (np.asarray(total).astype(object) << (bits * s))
        return np.asarray(out % self.p, dtype=object)

    def _limbs(self, a: Values, bits: int) -> list[npt.NDArray[np.float64]]:
        """Return the limbs of bits bits of all elements, least significant first."""
        words = -(-self.size // 8)
        data = b"".join([int(v).to_bytes(8 * words, "little") for v in a.ravel()])
        w = np.frombuffer(data, dtype="<u8").reshape(*a.shape, words)
        mask, out = np.uint64((1 << bits) - 1), []
        for start in range(0, self.p.bit_length(), bits):
            word, shift = divmod(start, 64)
            limb = w[..., word] >> np.uint64(shift)
            if shift + bits > 64 and word + 1 < words:
                limb = limb | (w[..., word + 1] << np.uint64(64 - shift))
            out.append((limb & mask).astype(np.float64))
        return out

    def convolve(self, images: Values, kernels: Values, stride: tuple[int, int], padding: tuple[int, int]) -> Values:
        """Return the convolution of an image (channels, height, width) with kernels (outputs, channels, height, width),
        as neural networks define it: kernels are not flipped.
        """
        outputs, _, height, width = kernels.shape
        padded = np.pad(images, ((0, 0), (padding[0],) * 2, (padding[1],) * 2), constant_values=0)
        windows = np.lib.stride_tricks.sliding_window_view(padded, (height, width), axis=(1, 2))
        windows = windows[:, :: stride[0], :: stride[1]]  # channels, rows, columns, height, width
        _, rows, columns, _, _ = windows.shape
        flat = windows.transpose(0, 3, 4, 1, 2).reshape(-1, rows * columns)
        return self.matmul(kernels.reshape(outputs, -1), flat).reshape(outputs, rows, columns)
