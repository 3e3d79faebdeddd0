"""A computation between the parties' programs."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from ..client import Client
from ..config import Config
from ..errors import ConfigError, LodgeError
from ..fields import modulus
from .check import Checker
from .errors import CheckFailedError, PeerError
from .field import Field, Values
from .fixed import FixedPoint
from .peers import Mesh, Peer
from .supply import Stock, Supply, Tuples
from .values import Input, Local, Share, Shared, reachable


class Session:
    """A computation between the parties' programs, each with its own party's shares.

    All programs run the same operations in the same order. Use it in an ``async with`` statement, and from one task.

    Args:
        config: the client's configuration, as for Client; its party is this program's.
        peers: where each party's program listens, including this one, in the order of the roster.
        field: name of the field of all values, such as ``p128``.
        fraction: bits behind the binary point of floats.
        bits: bound on products of floats: they are less than 2^(bits - 1 - 2 fraction).
        ahead: largest number of tuples that are reserved at once. The next tuples are reserved while these are used.
            Unused tuples are lost when the session ends.
        patience: seconds to wait for tuples; a peer's message may take twice as long.
        report: whether a failed check is reported to the party, which then burns the MAC key and all tuples under it.
    """

    def __init__(
        self,
        config: Config | str | Path,
        peers: Sequence[Peer],
        *,
        field: str = "p128",
        fraction: int = 16,
        bits: int = 64,
        ahead: int = 8192,
        patience: float = 60.0,
        report: bool = True,
    ) -> None:
        self.config = config if isinstance(config, Config) else Config.load(config)
        if self.config.own is None or len(peers) != len(self.config.parties):
            raise ConfigError(f"{len(peers)} peers for {len(self.config.parties)} parties", "name a program for each")
        self.field = Field(modulus(self.config.params, field))
        self.own = self.config.own
        self.key = 0  # this party's share of the MAC key
        self.fixed = FixedPoint(self.field, fraction, bits)
        self._name, self._ahead, self._patience, self._report = field, ahead, patience, report
        self._mesh = Mesh(self.config, peers, self.own, 2 * patience)
        self._peers = peers
        self._client: Client | None = None
        self._supply: Supply
        self._checker: Checker
        self._numbers = itertools.count()
        self._failed: LodgeError | None = None

    async def __aenter__(self) -> Session:
        terms = json.dumps(
            [
                [p.identity for p in self._peers],
                [p.identity for p in self.config.parties],
                self.config.params,
                self.config.tenant,
                self._name,
                self.fixed.fraction,
                self.fixed.bits,
            ]
        )
        try:
            await self._mesh.connect(terms.encode(), self._patience)
            self._supply = self.supply()
            self._checker = Checker(self._mesh, self.field, self._supply)
            self.key = await self._supply.key_share()
        except BaseException as error:
            await self._end(error)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self._end(error)

    def supply(self) -> Supply:
        """Return the source of tuples; tests replace it."""
        self._client = Client(self.config, patience=self._patience)
        return Stock(self._client, self._mesh, self._name, self._ahead, self._patience)

    async def _end(self, error: BaseException | None) -> None:
        why = error if isinstance(error, LodgeError) else None
        if error is not None and why is None:
            why = LodgeError("internal", f"the program ended with {type(error).__name__}")
        await self._mesh.close(why)
        if hasattr(self, "_supply"):
            await self._supply.close()
        if self._client is not None:
            self._client.close()
        self.key = 0

    def numbered(self) -> int:
        return next(self._numbers)

    def encoded(self, values: npt.ArrayLike, scale: int | None = None) -> tuple[Values, int]:
        return self.fixed.encoded(values, scale)

    def rounded(self, x: Shared, scale: int) -> Shared:
        return self.fixed.rounded(x, scale)

    def input(
        self,
        values: npt.ArrayLike | None = None,
        *,
        owner: int,
        shape: tuple[int, ...] | int | None = None,
        floats: bool = False,
    ) -> Shared:
        """Share an array of one party.

        The owner gives the values; the others give their shape, and whether they are floats, or an array of that shape
        and type, whose values do not matter.
        """
        if not 0 <= owner < len(self._peers):
            raise ConfigError(f"there is no party {owner}", f"parties are 0 to {len(self._peers) - 1}")
        if values is None:
            if owner == self.own or shape is None:
                raise ConfigError("an input needs its owner's values, and its shape elsewhere")
            size = (shape,) if isinstance(shape, int) else tuple(shape)
            scale = self.fixed.fraction if floats else 0
            return Shared(self, size, scale, Input(size, owner, None))
        elements, scale = self.encoded(values)
        return Shared(
            self, elements.shape, scale, Input(elements.shape, owner, elements if owner == self.own else None)
        )

    def public(self, values: npt.ArrayLike) -> Shared:
        """Return public values as a shared array."""
        elements, scale = self.encoded(values)
        zero = np.zeros(elements.shape, dtype=object)
        p = self.field.p
        share = Share(elements if self.own == 0 else zero, self.key * elements % p)
        return Shared(self, elements.shape, scale, Local((), lambda: share))

    async def open(self, *arrays: Shared) -> list[Values]:
        """Return the values of several arrays to all parties, with one check of the results. See Shared.open."""
        if self._failed is not None:
            raise self._failed
        # Until this call has returned: values that it opened may not have been checked.
        self._failed = LodgeError("conflict", "an earlier open of this session did not end", "start a new session")
        try:
            values = await self._open(arrays)
        except LodgeError as error:
            self._failed = error
            if isinstance(error, CheckFailedError) and self._report:
                await self._supply.report("the MAC check of an online computation failed")
            raise
        self._failed = None
        return values

    async def _open(self, arrays: Sequence[Shared]) -> list[Values]:
        await self._evaluate(arrays)
        if self._checker.pending:
            await self._checker.run()  # before anything that depends on an opened value is released
        shares = [a.share for a in arrays if a.share is not None]
        opened, _ = await self._exchange(shares)
        await self._checker.run()
        return [self.fixed.decoded(v, a.scale) for v, a in zip(opened, arrays, strict=True)]

    async def _evaluate(self, targets: Sequence[Shared]) -> None:
        """Computes arrays, with one message of each party for all products whose factors are known."""
        waiting = reachable(targets)
        while waiting:
            ready: list[Shared] = []
            later: list[Shared] = []
            for x in waiting:  # arrays that x depends on come before it
                if any(a.share is None for a in x.step.args):
                    later.append(x)
                elif x.step.tuples is None:
                    x.finish(x.step.result(self, x.arguments(), {}, []))
                else:
                    ready.append(x)
            if ready:
                await self._round(ready)
            waiting = later

    async def _round(self, ready: Sequence[Shared]) -> None:
        """Computes arrays that need messages, with one message of each party."""
        tuples = [await self._supply.take(x.step.tuples, x.step.count) for x in ready if x.step.tuples is not None]
        masked = [x.step.masked(self, x.arguments(), t) for x, t in zip(ready, tuples, strict=True)]
        inputs = [(x.step, t) for x, t in zip(ready, tuples, strict=True) if isinstance(x.step, Input)]
        opened, differences = await self._exchange([m for part in masked for m in part], inputs)
        values, sent = iter(opened), iter(differences)
        for x, t, part in zip(ready, tuples, masked, strict=True):
            got = [next(sent)] if isinstance(x.step, Input) else [next(values) for _ in part]
            x.finish(x.step.result(self, x.arguments(), t, got))

    async def _exchange(
        self, shares: Sequence[Share], inputs: Sequence[tuple[Input, Tuples]] = ()
    ) -> tuple[list[Values], list[Values]]:
        """Opens shares, and sends the differences of inputs from their masks. The opened values wait for the check."""
        field, parties = self.field, range(len(self._peers))
        body = b"".join([field.encode(s.value) for s in shares])
        body += b"".join([field.encode(step.difference(self, t)) for step, t in inputs if step.owner == self.own])
        common = sum(math.prod(s.value.shape) for s in shares)
        lengths = [field.size * (common + sum(step.count for step, _ in inputs if step.owner == i)) for i in parties]
        received = [_Reader(field, i, data) for i, data in enumerate(await self._mesh.broadcast(body, lengths))]
        opened = []
        for s in shares:
            value = np.asarray(sum(r.read(s.value.shape) for r in received) % field.p, dtype=object)
            self._checker.add(value, s.mac)
            opened.append(value)
        return opened, [received[step.owner].read(step.shape) for step, _ in inputs]


class _Reader:
    """Reads the elements of one party's message."""

    def __init__(self, field: Field, party: int, data: bytes) -> None:
        self._field, self._party, self._data = field, party, memoryview(data)

    def read(self, shape: tuple[int, ...]) -> Values:
        size = math.prod(shape) * self._field.size
        part, self._data = self._data[:size], self._data[size:]
        try:
            return self._field.decode(part, shape)
        except ValueError as error:
            raise PeerError(self._party, "bad_answers", f"sent a bad message: {error}", "tell its operator") from error
