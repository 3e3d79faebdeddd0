"""Tests of the online phase: programs in one process, over real TLS connections with the certificates of the clients in
LODGE_CLUSTER. Most take tuples from a dealer. The last take them from that cluster, before test_cluster burns its MAC
keys.
"""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import socket
import unittest
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lodge_mpc import Client, Config, LodgeError
from lodge_mpc.fields import layout, modulus
from lodge_mpc.online import CheckFailedError, InconsistentError, Peer, PeerError, Session
from lodge_mpc.online.check import Checker
from lodge_mpc.online.field import Field, Values
from lodge_mpc.online.supply import Stock, Supply, Tuples
from lodge_mpc.reservation import Class

CLUSTER = Path(os.environ.get("LODGE_CLUSTER", "lodge-dev"))
Program = Callable[[Session], Awaitable[Any]]


class Dealer:
    """Makes tuples, and deals their shares: what Lodge does without knowing the values."""

    def __init__(self, params: str, n: int, field: str = "p128") -> None:
        self.n, self.p = n, modulus(params, field)
        self.field = Field(self.p)
        self.alpha = self.split(self.random(()))
        self.key = sum(self.alpha) % self.p
        self._made: dict[tuple[Class, int, int], list[dict[str, Values]]] = {}
        self.reports: list[str] = []

    def random(self, shape: tuple[int, ...]) -> Values:
        return self.field.expand(secrets.token_bytes(16), math.prod(shape)).reshape(shape)

    def split(self, value: Values) -> list[Values]:
        parts = [self.random(value.shape) for _ in range(self.n - 1)]
        return [*parts, (value - sum(parts)) % self.p]

    def deal(self, tuples: Class, count: int, at: int, party: int) -> dict[str, Values]:
        made = self._made.setdefault((tuples, count, at), [])
        if not made:
            made += self._make(tuples, count)
        return made[party]

    def _make(self, tuples: Class, count: int) -> list[dict[str, Values]]:
        shapes = layout(tuples.kind, tuples.shape, False, tuples.convolution)
        values = {k: self.random((count, *s)) for k, s in shapes.items() if not k.startswith("mac_")}
        if tuples.kind == "scalar":
            values["c"] = values["a"] * values["b"] % self.p
        elif tuples.kind == "matrix":
            values["c"] = np.array([a.dot(b) % self.p for a, b in zip(values["a"], values["b"], strict=True)])
        elif tuples.kind == "bit":
            values["a"] %= 2
        elif tuples.convolution is not None:
            form = tuples.convolution
            values["y"] = np.array(
                [
                    convolved(x, w, form.stride, form.padding) % self.p
                    for x, w in zip(values["x"], values["w"], strict=True)
                ]
            )
        out: list[dict[str, Values]] = [{} for _ in range(self.n)]
        for name, v in values.items():
            for i, (share, mac) in enumerate(zip(self.split(v), self.split(v * self.key % self.p), strict=True)):
                out[i] |= {name: share, f"mac_{name}": mac}
        if tuples.input_party is not None:
            out[tuples.input_party]["clear"] = values["a"]
        return out


def convolved(x: Values, w: Values, stride: tuple[int, int], padding: tuple[int, int]) -> Values:
    """Convolves by the definition."""
    channels, height, width = x.shape
    padded = np.zeros((channels, height + 2 * padding[0], width + 2 * padding[1]), dtype=object)
    padded[:, padding[0] : padding[0] + height, padding[1] : padding[1] + width] = x
    rows = (padded.shape[1] - w.shape[2]) // stride[0] + 1
    columns = (padded.shape[2] - w.shape[3]) // stride[1] + 1
    out = np.zeros((len(w), rows, columns), dtype=object)
    for o in range(len(w)):
        for i in range(rows):
            for j in range(columns):
                y, z = i * stride[0], j * stride[1]
                out[o, i, j] = (w[o] * padded[:, y : y + w.shape[2], z : z + w.shape[3]]).sum()
    return out


class Dealt:
    """One party's supply from a dealer."""

    def __init__(self, dealer: Dealer, own: int) -> None:
        self.own, self.parties, self.p, self._dealer = own, dealer.n, dealer.p, dealer
        self._at: dict[Class, int] = {}

    async def take(self, tuples: Class, count: int) -> Tuples:
        at = self._at.get(tuples, 0)
        self._at[tuples] = at + count
        return self._dealer.deal(tuples, count, at, self.own)

    async def key_share(self) -> int:
        return int(self._dealer.alpha[self.own])

    async def report(self, reason: str) -> None:
        self._dealer.reports.append(reason)

    async def close(self) -> None:
        pass


class Dealing(Session):
    """A session whose tuples come from a dealer."""

    def __init__(self, dealer: Dealer, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.dealer = dealer

    def supply(self) -> Supply:
        return Dealt(self.dealer, self.own)


def ports(n: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
    out = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return out


def config(i: int, n: int) -> Config:
    """Returns the configuration of party i's program among n, with the certificate that the cluster gave it."""
    whole = Config.load(CLUSTER / "clients" / f"client-p{i}.yaml")
    return whole.with_changes(parties=whole.parties[:n])


def identity(i: int) -> str:
    return f"spiffe://lodge/client/p{i}"


class Programs(unittest.TestCase):
    """Runs programs."""

    def sessions(self, n: int, dealer: Dealer | None = None, **options: Any) -> list[Dealing]:
        dealer = dealer or Dealer(config(0, n).params, n, options.get("field", "p128"))
        peers = [Peer(f"127.0.0.1:{port}", identity(i)) for i, port in enumerate(ports(n))]
        options = {"patience": 10.0} | options
        return [Dealing(dealer, config(i, n), peers, **options) for i in range(n)]

    def run_all(self, sessions: Sequence[Session], programs: Program | Sequence[Program]) -> list[Any]:
        """Runs a program at every party; an error is its result."""
        each = [programs] * len(sessions) if callable(programs) else programs

        async def one(session: Session, program: Program) -> Any:
            async with session as mpc:
                return await program(mpc)

        async def everyone() -> list[Any]:
            return await asyncio.gather(
                *(one(s, p) for s, p in zip(sessions, each, strict=True)), return_exceptions=True
            )

        return asyncio.run(everyone())


class Arithmetic(Programs):
    """What honest programs compute."""

    def same(self, program: Program, want: Any, n: int = 3, **options: Any) -> None:
        for got in self.run_all(self.sessions(n, **options), program):
            if isinstance(got, BaseException):
                raise got
            np.testing.assert_array_equal(got, want)

    def test_arithmetic(self) -> None:
        a, b = np.array([3, -4, 5]), np.array([[7], [-11]])

        async def program(mpc: Session) -> Values:
            x, y = mpc.input(a, owner=0), mpc.input(b, owner=mpc_last(mpc))
            z = (x * y + 2 * x - y) * (1 - x) * np.array([1, 2, 3]) + 10
            return await (-z).open()

        want = -(((a * b + 2 * a - b) * (1 - a)) * np.array([1, 2, 3]) + 10)
        for n in (2, 3):
            with self.subTest(parties=n):
                self.same(program, want, n)
        self.same(program, want, field="p64")

    def test_shapes(self) -> None:
        a = np.arange(12).reshape(3, 4)

        async def program(mpc: Session) -> Values:
            x = mpc.input(a if mpc.own == 1 else None, owner=1, shape=(3, 4))
            parts = [
                x.T[1:, 0],
                x.reshape(-1)[2:5],
                x.sum(axis=0)[:3],
                (x * x).sum().reshape(1) + np.zeros(3, dtype=int),
            ]
            opened = await mpc.open(*parts, mpc.public([1, 2, 3]))
            return np.concatenate(opened)

        want = np.concatenate([a.T[1:, 0], a.ravel()[2:5], a.sum(axis=0)[:3], [(a * a).sum()] * 3, [1, 2, 3]])
        self.same(program, want)

    def test_numbers(self) -> None:
        async def program(mpc: Session) -> list[Any]:
            x, y = mpc.input(3, owner=0), mpc.input(1.5, owner=1)
            values = await mpc.open(x * x + 1, 2 - x, x * y, y * y, x + x + x)
            return [v.item() if v.dtype == object else round(float(v), 4) for v in values]

        self.same(program, [10, -1, 4.5, 2.25, 9])

    def test_matrices(self) -> None:
        rng = np.random.default_rng(1)
        a, b = rng.integers(-1000, 1000, (5, 70)), rng.integers(-1000, 1000, (70, 3))

        async def program(mpc: Session) -> Values:
            x, y = mpc.input(a, owner=0), mpc.input(b, owner=1)
            parts = [x @ y, x @ b, a @ y, x[0] @ y, x @ y[:, 1], (x[1] @ y[:, 2]).reshape(1, 1)]
            return np.concatenate([v.ravel() for v in await mpc.open(*parts)])

        c = a @ b
        self.same(program, np.concatenate([c.ravel()] * 3 + [c[0], c[:, 1], c[1, 2:3]]))

    def test_convolution(self) -> None:
        rng = np.random.default_rng(2)
        x, w = rng.integers(-9, 9, (2, 6, 5)), rng.integers(-9, 9, (3, 2, 3, 2))

        async def program(mpc: Session) -> Values:
            return await mpc.input(x, owner=0).convolve(mpc.input(w, owner=1), stride=(2, 1), padding=(1, 0)).open()

        self.same(program, convolved(x, w, (2, 1), (1, 0)))

    def test_field(self) -> None:
        for name in "p64", "p128", "p256":
            field = Field(modulus("S14-32", name))
            a, b = (field.expand(bytes([i]), 12 * 300) for i in range(2))
            a[:3], b[:3] = field.p - 1, field.p - 1
            a, b = a.reshape(12, 300), b.reshape(300, 12)
            np.testing.assert_array_equal(field.matmul(a, b), a.dot(b) % field.p)
            np.testing.assert_array_equal(field.decode(field.encode(a), a.shape), a)
            self.assertEqual(list(field.signed(field.elements([-1, 0, 1]))), [-1, 0, 1])
            for data in field.p.to_bytes(field.size, "little"), bytes(field.size - 1):
                with self.assertRaises(ValueError):
                    field.decode(data, (1,))

    def test_fixed_point(self) -> None:
        rng = np.random.default_rng(3)
        a, b = rng.uniform(-100, 100, 40), rng.uniform(-100, 100, 40)

        async def program(mpc: Session) -> Values:
            x, y = mpc.input(a, owner=0), mpc.input(b, owner=1)
            return np.concatenate(await mpc.open(x * y, x * 0.5, x + y, x * 2, x - 1.25, (x * y) * x))

        unit = 2.0**-16
        x, y = np.round(a / unit) * unit, np.round(b / unit) * unit
        want = np.concatenate([x * y, x * 0.5, x + y, x * 2, x - 1.25, x * y * x])
        for got in self.run_all(self.sessions(3), program):
            error = np.abs(got - want)
            self.assertLess(error[:40].max(), unit)  # one truncation: less than one unit
            self.assertLess(error[40:80].max(), unit)
            self.assertEqual(error[80:200].max(), 0)  # no truncation
            self.assertLess(error[200:].max(), 101 * unit + unit)  # its error times the second factor, and a second one

    def test_truncation_rounds_by_chance(self) -> None:
        async def program(mpc: Session) -> Values:
            return await (mpc.input(np.full(600, 3 * 2.0**-16), owner=0) * 0.25).open()

        for got in self.run_all(self.sessions(2), program):
            units = got * 2**16
            self.assertEqual(set(units), {0.0, 1.0})
            self.assertAlmostEqual(units.mean(), 0.75, delta=0.1)

    def test_bounds(self) -> None:
        async def program(mpc: Session) -> None:
            x = mpc.input(np.array([1.5]), owner=0)
            with self.assertRaises(LodgeError):
                x * x
            for bad in np.array([np.nan]), np.array(["a"]):
                with self.assertRaises(LodgeError):
                    x + bad

        for got in self.run_all(self.sessions(2, field="p64"), program):
            self.assertIsNone(got)

    def test_needs_its_owner(self) -> None:
        async def program(mpc: Session) -> None:
            for owner, shape in (mpc.own, (1,)), (9, (1,)), (1 - mpc.own, None):
                with self.assertRaises(LodgeError):
                    mpc.input(None, owner=owner, shape=shape)
            with self.assertRaises(LodgeError):
                mpc.input([1], owner=0) @ mpc.input([1, 2], owner=0)

        self.assertEqual(self.run_all(self.sessions(2), program), [None, None])


async def everything(mpc: Session) -> Values:
    """Uses inputs, products, matrices, and a second opening."""
    x = mpc.input([5, 7], owner=0)
    y = mpc.input([11, 13], owner=mpc_last(mpc))
    first = await (x * y).open()
    second = await ((x * x * y).reshape(1, 2) @ y.reshape(2, 1)).open()
    return np.concatenate([first, second.ravel()])


WANT = np.array([55, 91, 5 * 5 * 11 * 11 + 7 * 7 * 13 * 13])


def mpc_last(mpc: Session) -> int:
    return len(mpc.config.parties) - 1


class Lies(Programs):
    """A program that departs from the protocol: nothing wrong is opened, whatever it sends."""

    def lying(
        self, n: int, lie: Callable[[int, bytes], bytes], to: Sequence[int] | None = None
    ) -> tuple[list[Any], Dealing]:
        """Runs everything; the last party sends lie(step, body) in each step, to some peers or to all."""
        sessions = self.sessions(n, patience=3.0)
        liar = sessions[-1]
        for_peers = range(n - 1) if to is None else to

        async def program(mpc: Session) -> Values:
            for i, link in mpc._mesh.links.items():
                if i in for_peers:
                    sends = link.send

                    async def send(step: int, body: bytes, sends: Any = sends) -> None:
                        await sends(step, lie(step, body))

                    link.send = send  # type: ignore[method-assign]
            return await everything(mpc)

        return self.run_all(sessions, [everything] * (n - 1) + [program]), liar

    def steps(self) -> int:
        sessions = self.sessions(2)
        for got in self.run_all(sessions, everything):
            np.testing.assert_array_equal(got, WANT)
        return sessions[0]._mesh.step

    def never_wrong(self, results: Sequence[Any], what: str) -> int:
        """Returns the number of honest programs that failed. The others must have the right result."""
        failed = 0
        for got in results:
            if isinstance(got, LodgeError):
                failed += 1
            elif isinstance(got, BaseException):
                raise AssertionError(what) from got
            else:
                np.testing.assert_array_equal(got, WANT, what)
        return failed

    def test_in_every_message(self) -> None:
        steps = self.steps()
        self.assertGreater(steps, 15)
        for n in (2, 3):
            for at in range(steps):
                for name, change in LIES.items():
                    what = f"{name} in step {at} of {n} parties"
                    with self.subTest(what):
                        results, _ = self.lying(n, only(at, change))
                        self.assertEqual(self.never_wrong(results[:-1], what), n - 1, what)

    def test_to_one_of_two_peers(self) -> None:
        for at in range(self.steps()):
            with self.subTest(at):
                results, _ = self.lying(3, only(at, LIES["one byte"]), to=[0])
                self.assertGreater(self.never_wrong(results[:-1], f"step {at}"), 0)

    def test_unequal_broadcasts_are_found(self) -> None:
        """Two versions of an opened share fail the comparison of broadcasts before the weights are known."""
        results, _ = self.lying(3, only(1, LIES["one byte"]), to=[0])
        self.assertIsInstance(results[0], InconsistentError)

    def test_wrong_share(self) -> None:
        async def wrong(mpc: Session) -> Values:
            mpc.key += 1  # shifts the shares of MACs by its products with what is opened
            return await everything(mpc)

        async def shifted(mpc: Session) -> Values:
            x, y = mpc.input([5, 7], owner=0), mpc.input([11, 13], owner=mpc_last(mpc))
            await mpc._evaluate([x, y])
            assert x.share is not None
            x.share.value = (x.share.value + 1) % mpc.field.p
            return await (x * y).open()

        for n in (2, 3):
            for liar in (wrong, shifted):
                sessions = self.sessions(n)
                results = self.run_all(sessions, [everything] * (n - 1) + [liar])
                for got in results[:-1]:
                    self.assertIsInstance(got, CheckFailedError)
                self.assertEqual(len(sessions[0].dealer.reports), n)

    def test_nothing_is_opened_after_a_failure(self) -> None:
        sessions = self.sessions(2)
        seen: list[Any] = []

        async def honest(mpc: Session) -> None:
            for _ in range(2):
                try:
                    await (mpc.input([1], owner=0) * mpc.input([2], owner=1)).open()
                except LodgeError as error:
                    seen.append((error.code, mpc._mesh.step))

        async def liar(mpc: Session) -> None:
            mpc.key += 1
            await honest(mpc)

        self.run_all(sessions, [honest, liar])
        self.assertEqual({code for code, _ in seen}, {"check_failed"})
        self.assertEqual(len({step for _, step in seen}), 1)

    def test_nothing_is_opened_after_an_interruption(self) -> None:
        """Otherwise values that were opened, and not yet checked, would count as checked."""

        async def honest(mpc: Session) -> list[str]:
            codes = []
            x = mpc.input([1], owner=0) * mpc.input([2], owner=1)
            for _ in range(2):
                try:
                    await asyncio.wait_for(x.open(), 0.5)
                except asyncio.TimeoutError:
                    codes.append("interrupted")
                except LodgeError as error:
                    codes.append(error.code)
            return codes

        async def late(mpc: Session) -> None:
            await mpc._evaluate([mpc.input([1], owner=0) * mpc.input([2], owner=1)])  # and no check
            await asyncio.sleep(1.5)

        self.assertEqual(self.run_all(self.sessions(2), [honest, late])[0], ["interrupted", "conflict"])

    def test_stops(self) -> None:
        for at in (0, 3, 7):

            def lie(step: int, body: bytes, at: int = at) -> bytes:
                if step == at:
                    raise RuntimeError("a program that dies")
                return body

            results, _ = self.lying(3, lie)
            for got in results[:-1]:
                self.assertIsInstance(got, PeerError)
                self.assertEqual((got.peer, got.code), (2, "unavailable"))

    def test_silence(self) -> None:
        async def silent(mpc: Session) -> None:
            await asyncio.sleep(2)

        results = self.run_all(self.sessions(2, patience=1.0), [everything, silent])
        self.assertIsInstance(results[0], PeerError)
        self.assertEqual((results[0].peer, results[0].code), (1, "timed_out"))

    def test_another_program(self) -> None:
        async def other(mpc: Session) -> Values:
            return await (mpc.input([5, 7, 8], owner=0) * 2).open()

        results = self.run_all(self.sessions(2, patience=3.0), [everything, other])
        self.assertTrue(any(isinstance(r, PeerError) and r.code == "bad_answers" for r in results), results)

    def test_out_of_order(self) -> None:
        async def skips(mpc: Session) -> None:
            for link in mpc._mesh.links.values():
                await link.send(1, b"")

        results = self.run_all(self.sessions(2, patience=3.0), [everything, skips])
        self.assertIsInstance(results[0], PeerError)
        self.assertEqual((results[0].peer, results[0].code), (1, "bad_answers"))

    def test_other_terms(self) -> None:
        first, second = self.sessions(2, patience=2.0)
        second.fixed.fraction = 8
        results = self.run_all([first, second], everything)
        self.assertEqual([r.code for r in results], ["conflict", "conflict"])

    def test_other_identity(self) -> None:
        first, second = self.sessions(2, patience=2.0)
        second._mesh._config = config(2, 3)  # another program's certificate
        results = self.run_all([first, second], everything)
        self.assertEqual([r.code for r in results], ["unavailable", "unavailable"])


def only(at: int, change: Callable[[bytes], bytes]) -> Callable[[int, bytes], bytes]:
    """Returns a lie in one step."""
    return lambda step, body: change(body) if step == at else body


LIES: dict[str, Callable[[bytes], bytes]] = {
    "one byte": lambda body: bytes([body[0] ^ 1]) + body[1:] if body else b"x",
    "no number": lambda body: b"\xff" * max(1, len(body)),
    "cut": lambda body: body[:-1] if body else b"x",
}


class Forgery(Programs):
    """Two programs under one MAC key: what a failed check shows must not help to forge in the second."""

    def attack(self, check: Callable[[Checker, list[bytes]], Coroutine[Any, Any, None]] | None) -> Any:
        """The last party shifts an opened value by 1, keeps all it can learn, and lies by 41 in the second program with
        the MAC that it then believes to be right. Returns the honest party's result of the second.
        """
        dealer, learnt = Dealer(config(0, 2).params, 2), dict[str, int]()
        p = dealer.p
        run, committed, seen = Checker.run, Checker._committed, list[bytes]()

        async def recorded(checker: Checker, mine: bytes) -> Sequence[bytes]:
            seen[:] = await committed(checker, mine)
            return seen

        if check is not None:
            Checker.run = lambda checker: check(checker, seen)  # type: ignore[assignment, method-assign]
        Checker._committed = recorded  # type: ignore[assignment, method-assign]
        try:

            async def honest(mpc: Session) -> Values:
                return await mpc.input([1000], owner=0).open()

            async def first(mpc: Session) -> None:
                x = mpc.input([1000], owner=0)
                await mpc._evaluate([x])
                assert x.share is not None
                x.share.value = (x.share.value + 1) % p
                try:
                    await x.open()
                finally:
                    # In the check of the papers this is alpha times the shift.
                    learnt["alpha"] = -sum(int.from_bytes(z, "little") for z in seen) % p

            async def second(mpc: Session) -> None:
                x = mpc.input([1000], owner=0)
                await mpc._evaluate([x])
                assert x.share is not None
                x.share.value, x.share.mac = (x.share.value + 41) % p, (x.share.mac + 41 * learnt["alpha"]) % p
                await x.open()

            failed = self.run_all(self.sessions(2, dealer), [honest, first])
            self.assertIsInstance(failed[0], CheckFailedError)
            return self.run_all(self.sessions(2, dealer), [honest, second])[0]
        finally:
            Checker.run, Checker._committed = run, committed  # type: ignore[method-assign]

    def test_check_of_the_papers_is_forged(self) -> None:
        async def revealing(checker: Checker, seen: list[bytes]) -> None:
            p = checker._field.p
            (values, macs), checker._opened = (checker._opened[0], [])
            sigma = int(macs.sum() - await checker._supply.key_share() * values.sum()) % p
            seen[:] = await checker._mesh.broadcast(checker._encode(sigma))
            if sum(int.from_bytes(share, "little") for share in seen) % p != 0:
                raise CheckFailedError

        got = self.attack(revealing)
        np.testing.assert_array_equal(got, [1041])  # the reason for the other check

    def test_check_of_this_library_is_not_forged(self) -> None:
        self.assertIsInstance(self.attack(None), CheckFailedError)


class Stocked(Programs):
    """With tuples from the cluster's stock."""

    def stocked(self, n: int = 3, **options: Any) -> list[Session]:
        peers = [Peer(f"127.0.0.1:{port}", identity(i)) for i, port in enumerate(ports(n))]
        return [Session(config(i, n), peers, **options) for i in range(n)]

    def test_stock(self) -> None:
        a, b = np.arange(6).reshape(3, 2) - 2, np.arange(8).reshape(2, 4) - 3

        async def program(mpc: Session) -> list[Values]:
            x, y = mpc.input(a, owner=1), mpc.input(b, owner=1)
            return await mpc.open(x * x, x @ y, x + 1)

        for got in self.run_all(self.stocked(), program):
            if isinstance(got, BaseException):
                raise got
            for value, want in zip(got, [a * a, a @ b, a + 1], strict=True):
                np.testing.assert_array_equal(value, want)

    def test_leader_that_names_a_reservation_again(self) -> None:
        """Two values would share a mask, whose difference the programs would see."""
        ids: list[str] = []
        reserve = Stock._reserve

        async def program(mpc: Session) -> Values:
            return await mpc.input([5], owner=1).open()

        def again(stock: Stock, tuples: Class, count: int, ahead: bool) -> str:
            return ids[0] if tuples.kind == "input" else reserve(stock, tuples, count, ahead)

        def recorded(stock: Stock, tuples: Class, count: int, ahead: bool) -> str:
            id_ = reserve(stock, tuples, count, ahead)
            if tuples.kind == "input" and id_:
                ids.append(id_)
            return id_

        try:
            Stock._reserve = recorded  # type: ignore[assignment, method-assign]
            self.assertEqual([list(r) for r in self.run_all(self.stocked(), program)], [[5]] * 3)
            Stock._reserve = again  # type: ignore[assignment, method-assign]
            for got in self.run_all(self.stocked(patience=5.0), program):
                self.assertIsInstance(got, PeerError)
                self.assertIn("bad_answers", str(got))

            # A session that runs at the same time sees no record of the other's draw yet.
            asked = Client.reservation
            Client.reservation = lambda *args, **options: replace(asked(*args, **options), fetched_by="")  # type: ignore[method-assign]
            try:
                for got in self.run_all(self.stocked(patience=5.0), program):
                    self.assertIsInstance(got, PeerError)
            finally:
                Client.reservation = asked  # type: ignore[method-assign]
        finally:
            Stock._reserve = reserve  # type: ignore[method-assign]

    def test_no_stock(self) -> None:
        async def program(mpc: Session) -> Values:
            return await mpc.input([5], owner=2).open()

        results = self.run_all(self.stocked(patience=2.0, field="p64"), program)  # the cluster has no such masks
        self.assertEqual(results[0].code, "out_of_stock")
        for got in results[1:]:
            self.assertIsInstance(got, PeerError)
            self.assertIn("out_of_stock", str(got))


if __name__ == "__main__":
    unittest.main()
