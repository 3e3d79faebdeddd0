"""Proofs by the owner of a key about its key and inputs, as in engine/linear/proof.go and prover.go.

The owner knows short s, e and v_i with

    b   = -a s + e           of the key
    b_i = -a_i s + v_i/t     of each input, v_i being its message modulo t

It applies the equations to masks, hashes the images with all public values, and responds with z = y + X^w x for the
monomials X^w of the hash, one for each repetition. A key proves one list of inputs: more responses reveal more of s.

Secrets, masks and v/t are discrete Gaussians, the last on the coset of the message. The cosets are drawn by rejection
with probabilities in floats of 53 bits, so each value has its probability up to a factor of 1 + 2^-48. Over 2^40 values
the Renyi divergence of order 2 from the exact law is below 1 + 2^-55: an attack that succeeds with probability p here
succeeds with at least p^2 / (1 + 2^-55) against the exact law.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ..threshold.arithmetic import expand
from ..threshold.arithmetic import pack as pack_bits
from ..threshold.ciphertexts import Random
from .gaussians import gaussian, uniform
from .residues import Signed, Words, centred, from_residues, pack, product, residues, scalar
from .sets import PROOF_BITS, LinearSet

Rows = list[Signed]  #: a polynomial modulo each prime, in evaluation form


def coset(s: LinearSet, messages: Words, width: float, random: Random) -> Signed:
    """Draw v = m modulo t with v/t from the discrete Gaussian of a width, for each message m.

    v = t k - c with c = -m modulo t, and k around c/t. A candidate is drawn around the nearest integer and kept with
    probability exp(-pi ((x - f)^2 - x^2)/width^2), up to a constant factor, where f is the rest of c/t.
    """
    negated = np.where(messages == 0, np.uint64(0), np.uint64(s.t) - messages).astype(np.int64)
    nearest = (2 * negated > s.t).astype(np.int64)
    fractions = (negated - nearest * s.t) / s.t
    out, left = np.zeros(len(negated), np.int64), np.arange(len(negated))
    variance = width**2 / (2 * math.pi)
    while len(left):
        x, f = gaussian(variance, len(left), random), fractions[left]
        # The exponent is at most pi (2 |x f| - f^2)/width^2; candidates beyond 16 deviations have no weight.
        most = math.pi * 16 * math.sqrt(variance) / width**2
        chance = np.exp(math.pi * (2 * x * f - f * f) / width**2 - most)
        drawn = np.frombuffer(random(8 * len(left)), "<u8") >> np.uint64(11)
        kept = drawn < chance * 2.0**53
        out[left[kept]] = x[kept]
        left = left[~kept]
    return s.t * (out + nearest) - negated


def turned(x: Signed, exponent: int) -> Signed:
    """Return x times X^exponent modulo X^n + 1, for an exponent below 2 n."""
    n = len(x)
    y = np.concatenate([x, -x, x])
    return y[2 * n - exponent : 3 * n - exponent]


def signed(x: Signed, width: int) -> bytes:
    """Encode integers in two's complement of width bits each."""
    if ((x >> (width - 1)) != (x >> 63)).any():
        raise ValueError(f"a response needs more than {width} bits")
    return pack_bits((x & ((1 << width) - 1)).astype(np.uint64), width)


@dataclass(frozen=True)
class Witness:
    """The secret knowledge of a key's owner."""

    s: Signed
    e: Signed


class Prover:
    """Encrypts one list of messages under a key, and proves that the key and the inputs are well formed.

    Args:
        params: a set with proofs.
        witness: witness of the key.
        seed, digest: the seed of the key's uniform half, and the digest of the public key.
        random: returns random bytes.
    """

    def __init__(self, params: LinearSet, witness: Witness, *, seed: bytes, digest: bytes, random: Random) -> None:
        if params.proof is None:
            raise ValueError(f"set {params.name} has no proofs")
        self._s, self._proof, self._key, self._random = params, params.proof, witness, random
        self._digest, self._times = digest, params.repetitions
        self._secret = self._evaluated(witness.s)
        self._masks = [[self._mask() for _ in range(self._times)] for _ in (witness.s, witness.e)]
        self._mask_values = [self._evaluated(y) for y in self._masks[0]]
        self._images = [self._images_of(self._uniform(seed, "linear key", 0), self._masks[1], divided=False)]

    def prove(self, messages: Iterable[Signed], input_seed: bytes) -> Iterator[bytes]:
        """Yield the ciphertexts of centred messages, under the seed of their header, followed by the frames of the
        proof.
        """
        s, values, masks, sums = self._s, list[Signed](), list[list[Signed]](), list[bytes]()
        for i, m in enumerate(messages):
            a = self._uniform(input_seed, "linear input", i)
            v = coset(s, residues(m, s.t), self._proof.secret_width, self._random)
            own = [self._input_mask() for _ in range(self._times)]
            b = packed(s, image(s, a, self._secret, v, divided=True))
            self._images.append(self._images_of(a, own, divided=True))
            values.append(v)
            masks.append(own)
            sums.append(hashlib.sha256(b).digest())
            yield b
        challenge = transcript(s, self._digest, input_seed, sums, self._images)
        exponents = monomials(s, challenge)
        yield challenge + self._responses(self._masks[0], self._key.s, exponents, PROOF_BITS)
        yield self._responses(self._masks[1], self._key.e, exponents, PROOF_BITS)
        for v, own in zip(values, masks, strict=True):
            yield self._responses(own, v, exponents, s.input_bits)

    def _mask(self) -> Signed:
        return gaussian(self._proof.mask_width**2 / (2 * math.pi), self._s.n, self._random)

    def _input_mask(self) -> Signed:
        return coset(self._s, uniform(self._s.t, self._s.n, self._random), self._proof.mask_width, self._random)

    def _evaluated(self, x: Signed) -> Rows:
        return [self._s.transform(i).forward(x) for i in range(len(self._s.q))]

    def _uniform(self, seed: bytes, label: str, number: int) -> Rows:
        return [from_residues(expand(q, self._s.n, seed, label, number, prime=i), q) for i, q in enumerate(self._s.q)]

    def _images_of(self, a: Rows, masks: list[Signed], *, divided: bool) -> bytes:
        pairs = zip(self._mask_values, masks, strict=True)
        return images_digest(self._s, (image(self._s, a, y, z, divided=divided) for y, z in pairs))

    def _responses(self, masks: list[Signed], x: Signed, exponents: list[int], width: int) -> bytes:
        return b"".join(signed(y + turned(x, w), width) for y, w in zip(masks, exponents, strict=True))


def image(s: LinearSet, a: Rows, z: Rows, x: Signed, *, divided: bool) -> Rows:
    """Return x - a z, or x/t - a z, modulo each prime."""
    out = Rows()
    for i, q in enumerate(s.q):
        v = scalar(centred(x, q), pow(s.t, -1, q), q) if divided else x
        out.append(centred(s.transform(i).forward(v) - product(a[i], z[i], q), q))
    return out


def packed(s: LinearSet, rows: Rows) -> bytes:
    """Encode a polynomial for sending."""
    return b"".join(pack(residues(row, q), q) for row, q in zip(rows, s.q, strict=True))


def images_digest(s: LinearSet, images: Iterable[Rows]) -> bytes:
    """Return SHA-256 of the images of one equation, one for each repetition."""
    h = hashlib.sha256()
    for rows in images:
        h.update(packed(s, rows))
    return h.digest()


def transcript(s: LinearSet, key: bytes, seed: bytes, ciphertexts: list[bytes], images: list[bytes]) -> bytes:
    """Return the challenge: SHA-256 of the set, the key, the inputs and the images of all equations."""
    h, fields = hashlib.sha256(), [b"lodge linear proof 1", s.hash(), key, seed]
    for digests in (ciphertexts, images):
        fields += [struct.pack(">Q", len(digests)), *digests]
    for field in fields:
        h.update(struct.pack(">Q", len(field)) + field)
    return h.digest()


def monomials(s: LinearSet, challenge: bytes) -> list[int]:
    """Return the exponents expanded from a challenge, one for each repetition."""
    drawn = hashlib.shake_256(b"lodge linear challenge" + challenge).digest(2 * s.repetitions)
    return [int(w) & (2 * s.n - 1) for w in np.frombuffer(drawn, "<u2")]
