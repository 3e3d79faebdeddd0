"""Tests against a cluster (LODGE_CLUSTER) whose first party multiplies for its clients."""

from __future__ import annotations

import os
import tempfile
import threading
import unittest
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np

from lodge_mpc import Config, ConfigError, LodgeError
from lodge_mpc.linear import (
    DEFAULT_VECTOR,
    METHODS,
    PACKINGS,
    UNPROVED,
    Fixed,
    LinearClient,
    ProductShares,
    Progress,
    RangeError,
    Run,
    lookup,
    share,
    unshare,
)

CLUSTER = Path(os.environ.get("LODGE_CLUSTER", "lodge-dev"))
PATIENCE = 20.0  # seconds, for machines that do much else
SMALL, SMALL_PRODUCT = "insecure-V6-32-proved", "insecure-P6-40"


def extremes(shape: tuple[int, ...], t: int, seed: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Residues, many of which are the largest, the smallest and those in the middle."""
    rng = np.random.default_rng(seed)
    v = rng.integers(0, t, shape, dtype=np.uint64)
    special = np.array([0, 1, t - 1, t // 2, t // 2 + 1], np.uint64)
    return np.where(rng.random(shape) < 0.5, rng.choice(special, shape), v)


class Linear(unittest.TestCase):
    app: ClassVar[LinearClient]
    other: ClassVar[LinearClient]

    @classmethod
    def setUpClass(cls) -> None:
        party = Config.load(CLUSTER / "clients" / "client-p0.yaml").party
        cls.app = LinearClient.from_config(CLUSTER / "clients" / "app.yaml", party=party, patience=PATIENCE)
        cls.other = LinearClient.from_config(CLUSTER / "clients" / "client-p0.yaml", patience=PATIENCE)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.app.close()
        cls.other.close()

    def both(
        self, ask: Callable[[Run], ProductShares], answer: Callable[[Run], ProductShares]
    ) -> tuple[ProductShares, ProductShares]:
        """Runs both ends of a run concurrently."""
        run = Run.new("client-p0")
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ask, run)
            answered = answer(Run("app", run.id))
            return asked.result(), answered

    def test_products(self) -> None:
        rng = np.random.default_rng(1)
        for params, shape, most in (
            (SMALL_PRODUCT, (9, 20, 7), 65535),
            ("insecure-P6-17", (5, 8, 6), 63),
            ("P13-40", (20, 33, 17), 65535),
        ):
            for method in METHODS:
                with self.subTest(params, method=method):
                    rows, inner, cols = shape
                    a = rng.integers(-most, most + 1, (rows, inner))
                    b = rng.choice([-most, most], (inner, cols))
                    a[0] = most
                    seen: list[Progress] = []
                    got = self.app.multiply(a, b, params=params, method=method, progress=seen.append)
                    np.testing.assert_array_equal(got.entries, a @ b)
                    self.assertEqual((got.attempts, got.up), (1, seen[-1].to_send))
                    self.assertEqual((seen[-1].sent, seen[-1].answers), (seen[-1].to_send, seen[-1].expected))
                    self.assertLess(got.log_distance, -40)
        small = np.array([[1, -2], [3, 4]], np.int8)
        got = self.app.multiply(small, small, params=SMALL_PRODUCT, max_left=100, max_right=4)
        self.assertEqual(got.entries.tolist(), [[-5, -10], [15, 10]])

    def test_interruptions(self) -> None:
        """An interrupted product is resumed with the missing answer."""
        c = LinearClient(self.app._service._config, party=self.app.party, patience=PATIENCE)
        exchange, cuts = c._service.exchange, [2, 3, 1]

        class Cut:
            """A call that yields a number of responses, and half of the last one."""

            def __init__(self, call: Any, left: int) -> None:
                self.call, self.left = call, left

            def __iter__(self) -> Cut:
                return self

            def __next__(self) -> Any:
                response = next(self.call)
                self.left -= 1
                if self.left == 0:
                    response.chunk = response.chunk[: len(response.chunk) // 2]
                if self.left < 0:
                    raise LodgeError("unavailable", "cut off")
                return response

            def cancel(self) -> None:
                self.call.cancel()

        def cut(*args: Any) -> Any:
            call = exchange(*args)
            return Cut(call, cuts.pop(0)) if cuts else call

        a = np.arange(20 * 20).reshape(20, 20)
        with c, patch.object(c._service, "exchange", cut):
            got = c.multiply(a, a.T, params=SMALL_PRODUCT)
        np.testing.assert_array_equal(got.entries, a @ a.T)
        self.assertEqual(got.attempts, 4)
        once = self.app.multiply(a, a.T, params=SMALL_PRODUCT)
        self.assertEqual(got.up, 4 * once.up)
        self.assertLess(got.down, once.down + once.down)

    def test_cut_off_at_the_end(self) -> None:
        """A product is complete when all answers have arrived, even if the end of the call is lost."""
        c = LinearClient(self.app._service._config, party=self.app.party, patience=PATIENCE)
        exchange = c._service.exchange

        class Cut:
            """A call that fails at its end."""

            def __init__(self, call: Any) -> None:
                self.call, self.cancel = call, call.cancel

            def __iter__(self) -> Cut:
                return self

            def __next__(self) -> Any:
                for response in self.call:
                    return response
                raise LodgeError("unavailable", "cut off")

        a = np.arange(20 * 20).reshape(20, 20)
        with c, patch.object(c._service, "exchange", lambda *args: Cut(exchange(*args))):
            got = c.multiply(a, a.T, params=SMALL_PRODUCT)
        np.testing.assert_array_equal(got.entries, a @ a.T)
        self.assertEqual(got.attempts, 1)

    def test_vectors(self) -> None:
        for params, rows, cols, packing, slots in (
            (SMALL, 100, 70, "cheapest", 0),
            (SMALL, 20, 130, "forward", 0),
            (SMALL, 33, 50, "double", 8),
            (SMALL, 33, 50, "tiled", 4),
            (DEFAULT_VECTOR, 300, 200, "cheapest", 0),
        ):
            with self.subTest(params, packing=packing):
                t = lookup(params).t
                m, v = extremes((rows, cols), t, 2), extremes((cols,), t, 3)
                a, b = share(v, t)
                options: dict[str, Any] = {"params": params, "packing": packing, "slots": slots}
                ask = partial(self.app.ask_vector, share=a, rows=rows, **options)
                x, y = self.both(ask, partial(self.other.answer_vector, matrix=m, share=b, **options))
                want = (m.astype(object) @ v.astype(object)) % t
                self.assertEqual(unshare(x.entries, y.entries, t).tolist(), want.tolist())
                self.assertEqual((x.t, y.t, x.security, y.security), (t, t, "passive_evaluator", "passive_evaluator"))
                self.assertEqual(x.log_distance, y.log_distance)
        self.assertEqual(PACKINGS[0], "cheapest")

    def test_rows_of_a_file(self) -> None:
        """Numbers with a fraction, from a mapped file or as single rows, with an unshared vector."""
        s, rng = lookup(SMALL), np.random.default_rng(4)
        entries, values = Fixed.of(s, 10, 6), Fixed.of(s, 12, 8)
        m, v = rng.uniform(-7.9, 7.9, (90, 64)), rng.uniform(-7.9, 7.9, 64)
        out = entries.product(values, 64)
        first = values.encode(v)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "m.npy"
            np.save(path, m)

            def rows() -> Iterator[Any]:
                yield from m

            for matrix, shape in ((np.load(path, mmap_mode="r"), None), (rows(), (90, 64)), (m.tolist(), None)):
                ask = partial(self.app.ask_vector, share=first, rows=90, params=SMALL)
                answer = partial(self.other.answer_vector, shape=shape, encoding=entries, params=SMALL)
                x, y = self.both(ask, partial(answer, matrix=matrix))
                exact = entries.decode(entries.encode(m)) @ values.decode(first)
                np.testing.assert_array_equal(out.join(x.entries, y.entries), exact)

    def test_batches(self) -> None:
        for params, rows, cols, count, outputs, shared in (
            (SMALL, 10, 3, 2, 4, True),
            (SMALL, 100, 3, 2, 3, True),
            (SMALL, 64, 1, 5, 1, False),
            (DEFAULT_VECTOR, 500, 3, 2, 5, True),
        ):
            with self.subTest(params, rows=rows, outputs=outputs):
                t = lookup(params).t
                m, v = extremes((count, rows, cols), t, 5), extremes((outputs, count, cols), t, 6)
                a, b = share(m, t) if shared else (m, None)
                ask = partial(self.app.ask_batch, shares=a, outputs=outputs, params=params)
                x, y = self.both(ask, partial(self.other.answer_batch, vectors=v, rows=rows, shares=b, params=params))
                sums = [sum(k @ w for k, w in zip(m.astype(object), out, strict=True)) % t for out in v.astype(object)]
                self.assertEqual(unshare(x.entries, y.entries, t).tolist(), np.array(sums).tolist())

    def test_refusals(self) -> None:
        c, run = self.app, Run.new("client-p0")
        calls: list[Callable[[], object]] = [
            lambda: c.multiply([[1, 2]], [[1, 2]], params=SMALL_PRODUCT),
            lambda: c.multiply([1, 2], [[1], [2]], params=SMALL_PRODUCT),
            lambda: c.multiply([[0.5]], [[1]], params=SMALL_PRODUCT),
            lambda: c.multiply([[1 << 30]], [[1 << 30]], params=SMALL_PRODUCT),
            lambda: c.multiply([[1]], [[1]], params="V13-32-proved"),
            lambda: c.ask_vector(run, [[1]], 1),
            lambda: c.ask_batch(run, [[1]], 1),
            lambda: c.ask_vector(Run("", run.id), [1], 1),
            lambda: c.ask_vector(Run("client-p0", b"short"), [1], 1),
            lambda: c.answer_vector(run, iter([[1]])),
            lambda: c.answer_vector(run, [[1]], share=[1, 2]),
            lambda: c.answer_vector(run, np.zeros((2, 2), np.int64), shape=(2, 3)),
            lambda: c.answer_vector(run, [[1]], encoding=Fixed.of(lookup("P13-17"), 3)),
            lambda: c.answer_batch(run, [[1]], 1),
            lambda: c.answer_batch(run, [[[1]]], 1, shares=[[[1, 2]]]),
            lambda: LinearClient(c._service._config, party="p9"),
        ]
        for call in calls:
            with self.assertRaises(ConfigError):
                call()
        for unproved in ("insecure-V6-32", UNPROVED):  # for which the party would have to have a setting
            for asked in (
                partial(c.ask_vector, run, [1], 1, params=unproved),
                partial(c.ask_batch, run, [[[1]]], 1, params=unproved),
                partial(c.answer_vector, run, [[1]], params=unproved),
            ):
                with self.assertRaisesRegex(LodgeError, "allow_unproved_linear") as refused:
                    asked()
                self.assertEqual(refused.exception.code, "policy_refused")
        with self.assertRaises(RangeError) as caught:
            c.multiply([[1, 2], [3, 9]], [[1], [1]], params=SMALL_PRODUCT, max_left=8)
        self.assertEqual((caught.exception.index, caught.exception.high), ((1, 1), 8))

    def test_what_fails(self) -> None:
        """Invalid rows end the run at both ends; so do inconsistent parameters."""
        t = lookup(SMALL).t
        for matrix, error in (
            ([[1, 2, 3], [4, 5, t]], RangeError),
            (iter([[1, 2, 3], [4, 5]]), ConfigError),
            (iter([[1, 2, 3]]), ConfigError),
            (iter([[1, 2, 3]] * 3), ConfigError),
        ):
            with self.subTest(error), self.assertRaises(error) as raised:
                self.other.answer_vector(Run.new("app"), matrix, shape=(2, 3), params=SMALL)
            if isinstance(raised.exception, RangeError):
                self.assertEqual((raised.exception.index, raised.exception.high), ((1, 2), t - 1))
        came, run = threading.Event(), Run.new("client-p0")

        def broken() -> Iterator[Any]:
            for _ in range(599):  # more than one request
                yield np.zeros(500, np.int64)
            came.wait()
            raise OSError("the disk is gone")

        def heard(p: Progress) -> None:
            if p.answers:
                came.set()

        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self.app.ask_vector, run, np.zeros(500, np.int64), 600, params=SMALL)
            with self.assertRaises(OSError):
                self.other.answer_vector(Run("app", run.id), broken(), shape=(600, 500), params=SMALL, progress=heard)
            self.refused("unavailable", asked.result)
        with self.assertRaises(LodgeError) as caught:
            self.both(
                lambda run: self.app.ask_vector(run, [1, 2, 3], 2, params=SMALL),
                lambda run: self.other.answer_vector(run, [[1, 2, 3]] * 3, params=SMALL),
            )
        self.assertIn(caught.exception.code, ("conflict", "unavailable"))
        alone = Run.new("nobody")
        self.refused("timed_out", lambda: self.app.ask_vector(alone, [1], 1, params=SMALL, timeout=0.5))
        self.refused("timed_out", lambda: self.app.multiply([[1]], [[1]], params=SMALL_PRODUCT, timeout=0.0))

    def refused(self, code: str, call: Callable[[], object]) -> None:
        with self.assertRaises(LodgeError) as caught:
            call()
        self.assertEqual(caught.exception.code, code)


if __name__ == "__main__":
    unittest.main()
