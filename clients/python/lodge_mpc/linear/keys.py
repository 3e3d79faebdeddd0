"""Keys of the owner, fresh ciphertexts, and what answers decrypt to, as engine/linear has them.

A ciphertext (c0, c1) of m has the phase c0 + c1 s = m/t + e. Nothing here computes with ciphertexts: parties do.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np

from ..errors import BadAnswersError
from ..threshold.arithmetic import expand
from ..threshold.ciphertexts import Random, gaussian_table, ternary
from .residues import Signed, Words, centred, from_residues, pack, product, residues, scalar, size, unpack
from .sets import SEED, LinearSet


def gaussian(variance: float, count: int, random: Random) -> Signed:
    """Discrete Gaussians, as threshold.ciphertexts.gaussian has them: a place in a table of 192 bits, and a sign.

    The upper 64 bits say the place but for a chance of about 2^-58, in which all are compared.
    """
    table = gaussian_table(variance)
    data = np.frombuffer(random(25 * count), np.uint8).reshape(count, 25)
    high = np.ascontiguousarray(data[:, 16:24]).view("<u8").reshape(-1)
    magnitudes = np.zeros(count, np.int64)
    close = np.zeros(count, bool)
    for limit in table:
        upper = np.uint64(limit >> 128)
        magnitudes += high > upper
        close |= high == upper
    for i in np.flatnonzero(close):
        value = int.from_bytes(data[i, :24].tobytes(), "little")
        magnitudes[i] = sum(map(value.__ge__, table))
    return magnitudes * (1 - 2 * (data[:, 24] & 1).astype(np.int64))


class Reader(Protocol):
    """A plan, as far as answers are read."""

    @property
    def targets(self) -> Signed: ...
    @property
    def answer_size(self) -> int: ...


class SecretKey:
    """A key for one product: it is drawn, encrypts, decrypts, and is forgotten.

    Args:
        params: the set.
        products: whether it serves products of ciphertexts.
        random: gives random bytes. Whoever knows or can repeat them can read what is encrypted.
        errors: draws as many errors; for tests.
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
            self.public += self._packed(rows)
        self.digest = hashlib.sha256(self.public).digest()

    def _sample(self, errors: Signed, message: Signed | None, seed: bytes, name: tuple[str, int]) -> list[Signed]:
        """Of (b, a) with the phase b + a s = m/t + e, the half b, in evaluation form."""
        s, out = self.params, []
        for i, q in enumerate(s.q):
            v = errors
            if message is not None:
                v = v + scalar(message, pow(s.t, -1, q), q)
            a = from_residues(expand(q, s.n, seed, *name, prime=i), q)
            out.append(centred(s.transform(i).forward(v) - product(a, self._s[i], q), q))
        return out

    def _packed(self, rows: list[Signed]) -> bytes:
        return b"".join(pack(residues(row, q), q) for row, q in zip(rows, self.params.q, strict=True))

    def encrypt(self, messages: Iterable[Signed]) -> list[bytes]:
        """The header of fresh ciphertexts of centred messages, and each of them. They are of a new seed."""
        seed = self._random(SEED)
        out = [self.params.hash() + self.digest + seed]
        for i, m in enumerate(messages):
            out.append(self._packed(self._sample(self._errors(self.params.n), m, seed, ("linear input", i))))
        return out

    def open(self, plan: Reader, answer: bytes) -> Words:
        """The messages at the coefficients of an answer that a plan reads.

        Raises:
            BadAnswersError: it is no answer under this key.
        """
        s, q, targets = self.params, self.params.q[0], plan.targets
        if len(answer) != plan.answer_size:
            raise BadAnswersError(f"an answer of {len(answer)} bytes, not {plan.answer_size}", _TELL)
        if answer[:32] != self.digest:
            raise BadAnswersError("an answer under another key", _TELL)
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
