"""The MAC check: it compares opened values with their MACs, without revealing anything about the MAC key.

Each party holds shares of alpha y for every opened value y. A cheating program can shift y by an error, but not alpha y
by alpha times that error, because it does not know alpha. For random weights that nobody knew when the values were
opened, let Y be the weighted sum of the values and gamma of the shares of their MACs. The check takes one triple a, b,
c = a b from stock, which is used for nothing else:

1. all open m = gamma - a;
2. all commit to z = c + m b - Y gamma(b), where gamma(b) is the share of b's MAC, then open it.

The sum of the z is b (gamma - alpha Y), which is 0 if the MACs are right. Otherwise it is a random value, since b is
random and unknown. A cheating program tests one guess of alpha this way, which is right with probability 1/p. The check
that SPDZ's papers describe opens gamma - alpha Y instead, which reveals alpha when it fails.

The weights come from a coin toss after the values were opened. In every exchange of commitments the programs also
compare hashes of all earlier broadcasts, before they open anything further.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence

import numpy as np

from .errors import CheckFailedError, InconsistentError, PeerError
from .field import Field, Values
from .peers import Mesh
from .supply import SCALAR, Supply

_NONCE = 32


class Checker:
    """Collects opened values, and checks all of them at once."""

    def __init__(self, mesh: Mesh, field: Field, supply: Supply) -> None:
        self._mesh, self._field, self._supply = mesh, field, supply
        self._opened: list[tuple[Values, Values]] = []

    @property
    def pending(self) -> bool:
        return bool(self._opened)

    def add(self, value: Values, mac: Values) -> None:
        """Adds opened values and this party's shares of their MACs."""
        self._opened.append((value.ravel(), mac.ravel()))

    async def run(self) -> None:
        """Checks all values that were added, and forgets them.

        Raises:
            CheckFailedError: a value differs from its MAC.
            InconsistentError: the programs received different broadcasts.
        """
        field, p, own = self._field, self._field.p, self._mesh.own
        values, macs = (np.concatenate(part) for part in zip(*self._opened, strict=True))
        self._opened = []
        t = {name: int(v[0]) for name, v in (await self._supply.take(SCALAR, 1)).items()}  # no other check uses it
        weights = field.expand(b"lodge online weights" + await self._coin(), len(values))
        total, gamma = int((weights * values).sum() % p), int((weights * macs).sum() % p)
        m = sum(await self._open(self._encode((gamma - t["a"]) % p))) % p
        z = (t["c"] + m * t["b"] - total * t["mac_b"]) % p
        shares = [self._element(i, body) for i, body in enumerate(await self._committed(self._encode(z)))]
        shares[own] = z
        if sum(shares) % p != 0:
            raise CheckFailedError

    async def _open(self, mine: bytes) -> list[int]:
        return [self._element(i, body) for i, body in enumerate(await self._mesh.broadcast(mine))]

    async def _coin(self) -> bytes:
        return hashlib.sha256(b"".join(await self._committed(secrets.token_bytes(_NONCE)))).digest()

    async def _committed(self, mine: bytes) -> Sequence[bytes]:
        """Broadcasts a message that no program chooses after it has seen another's."""
        mesh, seen = self._mesh, self._mesh.transcript()
        opening = secrets.token_bytes(_NONCE) + mine
        commitments = await mesh.broadcast(self._commitment(mesh.own, seen, opening) + seen)
        for i, body in enumerate(commitments):
            if body[_NONCE:] != seen:
                raise InconsistentError(i)
        openings = await mesh.broadcast(opening)
        for i, body in enumerate(openings):
            if self._commitment(i, seen, body) != commitments[i][:_NONCE]:
                raise PeerError(i, "bad_answers", "opened another value than it committed to", "tell its operator")
        return [body[_NONCE:] for body in openings]

    def _commitment(self, party: int, seen: bytes, opening: bytes) -> bytes:
        return hashlib.sha256(b"lodge online commitment" + bytes([party]) + seen + opening).digest()

    def _encode(self, v: int) -> bytes:
        return v.to_bytes(self._field.size, "little")

    def _element(self, party: int, body: bytes) -> int:
        v = int.from_bytes(body, "little")
        if v >= self._field.p:
            raise PeerError(party, "bad_answers", "sent a number that is not below the prime", "tell its operator")
        return v
