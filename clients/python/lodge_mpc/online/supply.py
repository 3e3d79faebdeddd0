"""Tuples for a session: one program reserves them ahead of their use, and all programs fetch them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from ..client import Client
from ..errors import LodgeError
from ..fields import modulus
from ..kinds import TABLE
from ..reservation import Class
from .errors import PeerError
from .field import Values
from .peers import Mesh

LEADER = 0  # the party whose program reserves
FEW = 64  # tuples of the first reservation
SCALAR = Class("scalar", "", "", "")

_drawing = threading.Lock()
_drawn: set[tuple[str, int, str]] = set()  # what this process has drawn: client, party and reservation

Tuples = Mapping[str, Values]  #: this party's shares of tuples, by the names of Shares


class Supply(Protocol):
    """The source of a session's tuples."""

    own: int
    parties: int
    p: int

    async def take(self, tuples: Class, count: int) -> Tuples:
        """Return count tuples that no one has taken before. All programs take the same classes in the same order."""

    async def key_share(self) -> int:
        """Return this party's share of the MAC key of the tuples."""

    async def report(self, reason: str) -> None:
        """Tell the party that a check failed under this MAC key."""

    async def close(self) -> None:
        """Stop reserving."""


@dataclass
class _Store:
    """Fetched tuples of one class, and the task that fetches the next reservation."""

    tuples: dict[str, Values]
    left: int = 0
    taken: int = 0
    coming: asyncio.Task[dict[str, Values]] | None = None


class Stock:
    """Tuples from Lodge's stock.

    The leader reserves, and tells the others the ids in the order of the program's needs, which is the same at all
    programs. Each program verifies that an id has the expected class, number, key epoch and MAC key, and that its party
    has not delivered it before: a leader that names an id a second time would make two values share a mask.
    """

    def __init__(self, client: Client, mesh: Mesh, field: str, ahead: int, limit: float) -> None:
        self._client, self._mesh, self._field, self._ahead, self._limit = client, mesh, field, ahead, limit
        self.own, self.parties = mesh.own, len(mesh.others) + 1
        self.p = modulus(client.config.params, field)
        self._stores: dict[Class, _Store] = {}
        self._ordered: asyncio.Task[Any] | None = None  # reservations follow one another
        self._number = 0
        self._epoch = 0
        self._mac_key = ""

    def complete(self, tuples: Class) -> Class:
        config = self._client.config
        return replace(tuples, field=self._field, params=config.params, tenant=config.tenant)

    async def take(self, tuples: Class, count: int) -> Tuples:
        tuples = self.complete(tuples)
        store = await self._fill(tuples, count)
        out = {k: v[:count] for k, v in store.tuples.items()}
        store.tuples = {k: v[count:] for k, v in store.tuples.items()}
        store.left -= count
        store.taken += count
        if store.left < self._next(tuples, store) // 2 and store.coming is None:
            store.coming = self._order(tuples, self._next(tuples, store), ahead=True)
        return out

    async def _fill(self, tuples: Class, count: int) -> _Store:
        store = self._stores.setdefault(tuples, _Store({}))
        while store.left < count:
            coming = store.coming or self._order(tuples, max(count - store.left, self._next(tuples, store)))
            store.coming = None
            more = await coming
            if not more:
                continue  # nothing could be reserved ahead
            store.tuples = {k: np.concatenate([store.tuples[k], v]) if store.left else v for k, v in more.items()}
            store.left += len(next(iter(more.values())))
        return store

    def _next(self, tuples: Class, store: _Store) -> int:
        """Returns how many tuples to reserve at once: as many as were taken so far, so that a short program wastes few.
        Matrices and convolutions are reserved one by one, when they are needed.
        """
        return 0 if TABLE[tuples.kind].form else min(self._ahead, max(FEW, store.taken))

    def _order(self, tuples: Class, count: int, *, ahead: bool = False) -> asyncio.Task[dict[str, Values]]:
        """Reserves and fetches in the background, after all earlier orders. An order ahead of the need does not wait
        for stock, because other orders follow it: it returns nothing if there are not enough tuples.
        """
        number, self._number = self._number, self._number + 1
        self._ordered = asyncio.create_task(self._draw(number, tuples, count, self._ordered, ahead))
        self._ordered.add_done_callback(lambda task: task.cancelled() or task.exception())  # raised where it is awaited
        return self._ordered

    async def _draw(
        self, number: int, tuples: Class, count: int, before: asyncio.Task[Any] | None, ahead: bool
    ) -> dict[str, Values]:
        if before is not None:
            await asyncio.wait({before})
        if self.own == LEADER:
            id_ = await asyncio.to_thread(self._reserve, tuples, count, ahead)
            note = json.dumps([number, id_]).encode()
            await asyncio.gather(*(link.note(number, note) for link in self._mesh.links.values()))
        else:
            note = await self._mesh.links[LEADER].noted(3 * self._limit)
            id_ = self._read(note, number)
        if ahead and not id_:
            return {}
        return await asyncio.to_thread(self._fetch, id_, tuples, count)

    def _reserve(self, tuples: Class, count: int, ahead: bool) -> str:
        def reserve(wait: bool) -> str:
            return self._client.reserve(
                tuples.kind,
                field=tuples.field,
                count=count,
                shape=tuples.shape,
                input_party=tuples.input_party,
                convolution=tuples.convolution,
                epoch=self._epoch,
                wait=wait,
                timeout=self._limit,
            ).id

        try:
            return reserve(False)
        except LodgeError as error:
            if error.code != "out_of_stock":
                raise
            if ahead:
                return ""
            why = error
        try:
            return reserve(True)
        except LodgeError as error:
            raise why if error.code == "timed_out" else error from None

    def _read(self, note: bytes, number: int) -> str:
        try:
            got, id_ = json.loads(note)
            if got == number and isinstance(id_, str):
                return id_
        except (ValueError, TypeError):
            pass
        raise PeerError(LEADER, "bad_answers", f"named no new reservation as number {number}", "run the same program")

    def _fetch(self, id_: str, tuples: Class, count: int) -> dict[str, Values]:
        # The party gives the same client the same shares again, so a second session must not ask at the same time.
        key = (str(self._client.config.certificate), self.own, id_)
        with _drawing:
            known = key in _drawn
            _drawn.add(key)
        r = self._client.reservation(id_)
        if known or r.fetched_by:
            raise PeerError(LEADER, "bad_answers", f"named reservation {id_}, which was delivered before")
        if r.tuples != tuples or r.count != count:
            raise PeerError(LEADER, "bad_answers", f"named reservation {id_}, which has other tuples")
        if self._mac_key and (r.epoch, r.mac_key_id) != (self._epoch, self._mac_key):
            raise LodgeError("conflict", "the MAC key of the stock has changed", "start a new session")
        self._epoch, self._mac_key = r.epoch, r.mac_key_id
        shares = self._client.fetch(id_)
        out = {name: shares[name].astype(object) for name in shares.names}
        shares.wipe()
        return out

    async def key_share(self) -> int:
        await self._fill(self.complete(SCALAR), 1)
        return await asyncio.to_thread(self._client.mac_key_share, self._mac_key)

    async def report(self, reason: str) -> None:
        if self._mac_key:
            await asyncio.to_thread(self._client.report_failed_check, self._mac_key, reason)

    async def close(self) -> None:
        for store in self._stores.values():
            if store.coming is not None:
                store.coming.cancel()
