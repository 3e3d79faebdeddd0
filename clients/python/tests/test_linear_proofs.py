"""Proofs of inputs without a party: their equations, their laws, and the encodings."""

from __future__ import annotations

import contextlib
import hashlib
import math
import secrets
import unittest

import numpy as np

from lodge_mpc.linear import lookup
from lodge_mpc.linear.gaussians import gaussian, uniform
from lodge_mpc.linear.keys import SecretKey
from lodge_mpc.linear.prover import (
    coset,
    image,
    images_digest,
    monomials,
    signed,
    transcript,
    turned,
)
from lodge_mpc.linear.residues import Signed, centred, from_residues, product, size, unpack
from lodge_mpc.linear.sets import INPUTS_HEADER, PROOF_BITS, SEED, LinearSet
from lodge_mpc.threshold.arithmetic import expand
from lodge_mpc.threshold.arithmetic import unpack as unpack_bits


def unsigned(data: bytes, count: int, width: int) -> Signed:
    """Inverse of signed."""
    v = unpack_bits(data, count, width).astype(np.int64)
    return np.where(v >> (width - 1), v - (1 << width), v)


def rows(s: LinearSet, data: bytes) -> list[Signed]:
    """The encoding of a polynomial."""
    out, at = [], 0
    for q in s.q:
        end = at + size(s.n, q)
        out.append(from_residues(unpack(data[at:end], s.n, q), q))
        at = end
    return out


def verified(s: LinearSet, public: bytes, parts: list[bytes]) -> bool:
    """Verify a proof as the party does, except for the norms of responses."""
    header, count = parts[0], (len(parts) - 3) // 2  # a header, ciphertexts, and two frames more than these
    ciphertexts, frames = parts[1 : 1 + count], parts[1 + count :]
    assert len(header) == INPUTS_HEADER and header[32:64] == hashlib.sha256(public).digest()
    challenge, exponents = frames[0][:32], monomials(s, frames[0][:32])
    turns = []
    for w in exponents:
        one = np.zeros(s.n, np.int64)
        one[0] = 1
        turns.append([s.transform(i).forward(turned(one, w)) for i in range(len(s.q))])

    def responses(frame: bytes, width: int) -> list[Signed]:
        step = (s.n * width + 7) // 8
        return [unsigned(frame[r * step : (r + 1) * step], s.n, width) for r in range(s.repetitions)]

    secret = [[s.transform(i).forward(z) for i in range(len(s.q))] for z in responses(frames[0][32:], PROOF_BITS)]

    def images(a: list[Signed], b: list[Signed], list_: list[Signed], divided: bool) -> bytes:
        out = []
        for r, z in enumerate(list_):
            masked = image(s, a, secret[r], z, divided=divided)
            out.append(
                [
                    centred(m - product(turns[r][i], b[i], q), q)
                    for i, (m, q) in enumerate(zip(masked, s.q, strict=True))
                ]
            )
        return images_digest(s, out)

    def uniform_half(seed: bytes, label: str, number: int) -> list[Signed]:
        return [from_residues(expand(q, s.n, seed, label, number, prime=i), q) for i, q in enumerate(s.q)]

    found = [
        images(
            uniform_half(public[32:64], "linear key", 0),
            rows(s, public[2 * SEED :]),
            responses(frames[1], PROOF_BITS),
            False,
        )
    ]
    for i, c in enumerate(ciphertexts):
        a = uniform_half(header[64:], "linear input", i)
        found.append(images(a, rows(s, c), responses(frames[2 + i], s.input_bits), True))
    sums = [hashlib.sha256(c).digest() for c in ciphertexts]
    return transcript(s, header[32:64], header[64:], sums, found) == challenge


class Proofs(unittest.TestCase):
    def test_holds(self) -> None:
        for name in ("insecure-V6-32-proved", "V13-32-proved"):
            with self.subTest(name):
                s = lookup(name)
                key, rng = SecretKey(s, False), np.random.default_rng(1)
                messages = [rng.integers(-(s.t // 2), s.t // 2 + 1, s.n) for _ in range(2)]
                parts = key.encrypt(messages)
                self.assertEqual(sum(map(len, parts)), s.inputs_size(2))
                self.assertTrue(verified(s, key.public, parts))
                for i in range(1, len(parts)):
                    bad = list(parts)
                    bad[i] = bad[i][:-1] + bytes([bad[i][-1] ^ 1])
                    with contextlib.suppress(ValueError):  # no residue any more
                        self.assertFalse(verified(s, key.public, bad), i)
                with self.assertRaisesRegex(ValueError, "one list"):
                    key.encrypt(messages)
        with self.assertRaisesRegex(ValueError, "do not support products"):
            SecretKey(lookup("insecure-V6-32-proved"), True)

    def test_coset(self) -> None:
        """Values equal their message modulo t, and divided by t they follow the Gaussian around 0."""
        s, n = lookup("V13-32-proved"), 100_000
        for width in (16.0, 51.0):
            for message in (0, 1, s.t // 3, s.t // 2, s.t // 2 + 1, s.t - 1):
                with self.subTest(width=width, message=message):
                    v = coset(s, np.full(n, message, np.uint64), width, secrets.token_bytes)
                    self.assertTrue((v % s.t == message).all())
                    self.law(v / s.t, width)

    def law(self, x: np.ndarray[tuple[int, ...], np.dtype[np.float64]], width: float) -> None:
        """Chi-square over the points of a coset of Z."""
        offset = float(x[0] - math.floor(x[0]))
        points = np.arange(-int(width), int(width) + 1) + offset
        weights = np.exp(-math.pi * points**2 / width**2)
        every = np.arange(-int(8 * width), int(8 * width) + 1) + offset
        weights /= np.exp(-math.pi * every**2 / width**2).sum()
        counts = np.array([np.count_nonzero(np.abs(x - p) < 1e-6) for p in points])
        expected = weights * len(x)
        kept = expected > 20
        chi = float((((counts - expected) ** 2 / expected)[kept]).sum())
        freedom = int(kept.sum())
        self.assertLess(chi, freedom + 7 * math.sqrt(2 * freedom))
        self.assertLess(abs(float(x.mean())), 6 * width / math.sqrt(2 * math.pi * len(x)))

    def test_uniform(self) -> None:
        t = lookup("V13-32").t
        v = uniform(t, 200_000, secrets.token_bytes)
        self.assertTrue((v < t).all())
        counts = np.bincount((v // np.uint64(-(-t // 16))).astype(np.int64), minlength=16)
        self.assertLess(float(((counts - len(v) / 16) ** 2 / (len(v) / 16)).sum()), 60)

    def test_encodings(self) -> None:
        x = np.array([0, 1, -1, 511, -512, 5, -7, 300], np.int64)
        self.assertEqual(unsigned(signed(x, 10), 8, 10).tolist(), x.tolist())
        for bad in (512, -513):
            with self.assertRaises(ValueError):
                signed(np.array([bad] * 8, np.int64), 10)
        for w, want in ((0, [1, 2, 3, 4]), (1, [-4, 1, 2, 3]), (4, [-1, -2, -3, -4]), (7, [2, 3, 4, -1])):
            self.assertEqual(turned(np.array([1, 2, 3, 4]), w).tolist(), want)

    def test_masks_are_wider_than_secrets(self) -> None:
        """Responses fit their encoding and are within the bound of the party."""
        for name in ("insecure-V6-32-proved", "V13-32-proved"):
            s = lookup(name)
            assert s.proof is not None
            widths = (s.proof.mask_width, s.proof.secret_width)
            mask, secret = (gaussian(w * w / (2 * math.pi), s.n, secrets.token_bytes) for w in widths)
            z = mask + secret
            values = np.abs(np.fft.fft(z * np.exp(1j * math.pi * np.arange(s.n) / s.n)))
            self.assertLess(float(values.max()), s.proof.bound)


if __name__ == "__main__":
    unittest.main()
