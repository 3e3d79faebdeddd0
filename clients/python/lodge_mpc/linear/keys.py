"""Keys of the owner, fresh ciphertexts, and decryption of answers, as in engine/linear.

A ciphertext (c0, c1) of m has the phase c0 + c1 s = m/t + e. This module does not compute on ciphertexts; parties do.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from ..errors import BadAnswersError
from ..threshold.arithmetic import expand
from ..threshold.ciphertexts import Random, ternary
from .gaussians import gaussian
from .prover import Prover, Witness, image, packed
from .residues import Signed, Words, centred, from_residues, product, residues, scalar, size, unpack
from .sets import SEED, LinearSet


class Reader(Protocol):
    """The part of a plan that is needed to read answers."""

    @property
    def targets(self) -> Signed: ...
    @property
    def answer_size(self) -> int: ...


class SecretKey:
    """A key for one product. It encrypts the inputs, decrypts the answers, and is then discarded.

    Args:
        params: the parameter set.
        products: whether the key supports products of ciphertexts.
        random: returns random bytes. Anyone who knows or can repeat them can read the encrypted data.
        errors: draws the given number of errors; for tests.
    """

    def __init__(
        self,
        params: LinearSet,
        products: bool,
        *,
        random: Random = secrets.token_bytes,
        secret: Signed | None = None,
        errors: Callable[[int], Signed] | None = None,
    ) -> None:
        self.params, self._random = params, random
        self._errors = errors or (lambda count: gaussian(params.variance, count, random))
        self._prover: Prover | None = None
        if params.proof is not None:
            self._prove(products, secret, errors)
            return
        if secret is None:
            secret = np.array(ternary(params.n, random), np.int64)
        self._s = [params.transform(i).forward(secret) for i in range(len(params.q))]
        seed = random(SEED)
        self.public = params.hash() + seed
        for i in range(1 + len(params.q) * products):
            rows = self._sample(self._errors(params.n), None, seed, ("linear key", i))
            if i > 0:  # s^2 modulo one prime, and 0 modulo the others
                q = params.q[i - 1]
                rows[i - 1] = centred(rows[i - 1] + product(self._s[i - 1], self._s[i - 1], q), q)
            self.public += packed(self.params, rows)
        self.digest = hashlib.sha256(self.public).digest()

    def _prove(self, products: bool, secret: Signed | None, errors: Callable[[int], Signed] | None) -> None:
        """Create a key that proves its inputs: with a Gaussian secret and error, and not for products of
        ciphertexts.
        """
        s = self.params
        if products or s.proof is None:
            raise ValueError(f"keys of set {s.name} do not support products of ciphertexts")
        variance = s.secret_variance
        secret = gaussian(variance, s.n, self._random) if secret is None else secret
        error = gaussian(variance, s.n, self._random) if errors is None else errors(s.n)
        self._s = [s.transform(i).forward(secret) for i in range(len(s.q))]
        seed = self._random(SEED)
        a = [from_residues(expand(q, s.n, seed, "linear key", 0, prime=i), q) for i, q in enumerate(s.q)]
        self.public = s.hash() + seed + packed(s, image(s, a, self._s, error, divided=False))
        self.digest = hashlib.sha256(self.public).digest()
        self._prover = Prover(s, Witness(secret, error), seed=seed, digest=self.digest, random=self._random)

    def _sample(self, errors: Signed, message: Signed | None, seed: bytes, name: tuple[str, int]) -> list[Signed]:
        """Return the half b, in evaluation form, of (b, a) with the phase b + a s = m/t + e."""
        s, out = self.params, []
        for i, q in enumerate(s.q):
            v = errors
            if message is not None:
                v = v + scalar(message, pow(s.t, -1, q), q)
            a = from_residues(expand(q, s.n, seed, *name, prime=i), q)
            out.append(centred(s.transform(i).forward(v) - product(a, self._s[i], q), q))
        return out

    def encrypt(self, messages: Iterable[Signed]) -> list[bytes]:
        """Yield the header of fresh ciphertexts of centred messages, each ciphertext, and their proof, with a new seed.

        If the set has proofs, a key encrypts only one list.
        """
        seed = self._random(SEED)
        out = [self.params.hash() + self.digest + seed]
        if self.params.proof is not None:
            if self._prover is None:
                raise ValueError("a key proves one list of inputs; draw another key")
            prover, self._prover = self._prover, None
            return [*out, *prover.prove(messages, seed)]
        for i, m in enumerate(messages):
            out.append(packed(self.params, self._sample(self._errors(self.params.n), m, seed, ("linear input", i))))
        return out

    def open(self, plan: Reader, answer: bytes) -> Words:
        """Return the messages at the coefficients of an answer that a plan reads.

        Raises:
            BadAnswersError: it is not an answer under this key.
        """
        s, q, targets = self.params, self.params.q[0], plan.targets
        if len(answer) != plan.answer_size:
            raise BadAnswersError(f"an answer of {len(answer)} bytes, want {plan.answer_size}", _TELL)
        if answer[:32] != self.digest:
            raise BadAnswersError("the answer is under another key", _TELL)
        cut = 32 + size(len(targets), q)
        try:
            c0, c1 = unpack(answer[32:cut], len(targets), q), unpack(answer[cut:], s.n, q)
        except ValueError as error:
            raise BadAnswersError(f"an answer of which {error}", _TELL) from None
        first = s.transform(0)
        full = first.inverse(product(first.forward(from_residues(c1, q)), self._s[0], q))
        phase = scalar(centred(full[targets] + from_residues(c0, q), q), s.t, q)
        moved = 1
        for p in s.q[1:]:
            moved = moved * p % s.t
        return residues(scalar(centred(phase, s.t), moved, s.t), s.t)


_TELL = "tell the party's operator"
