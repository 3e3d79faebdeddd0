"""Tests of two-party linear algebra that need no cluster: comparison with the Go client, and extreme values.

``go test ./clients/go/linear -run TestVectors -update`` updates the vectors in testdata.
"""

from __future__ import annotations

import hashlib
import json
import unittest
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodge_mpc import BadAnswersError, Config, ConfigError, Server
from lodge_mpc._proto.lodge.linear.v1 import linear_pb2
from lodge_mpc.linear import (
    METHODS,
    Fixed,
    LinearClient,
    RangeError,
    Run,
    lookup,
    plan_batch,
    plan_product,
    plan_vector,
    share,
    unshare,
)
from lodge_mpc.linear import residues as arithmetic
from lodge_mpc.linear.gaussians import gaussian
from lodge_mpc.linear.keys import SecretKey
from lodge_mpc.linear.plans import BatchPlan, ProductPlan, VectorPlan
from lodge_mpc.linear.residues import Signed, Words, centred, from_residues, pack, product, residues, times, unpack
from lodge_mpc.linear.sets import LOG_DISTANCE, _sets, sets
from lodge_mpc.threshold.arithmetic import expand
from lodge_mpc.threshold.ciphertexts import gaussian as exact
from lodge_mpc.threshold.ciphertexts import gaussian_table

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "testdata" / "linear.json").read_text(encoding="utf-8"))
PRIMES = sorted({q for s in _sets().values() for q in (*s.q, s.t)})


class Sets(unittest.TestCase):
    def test_vectors(self) -> None:
        self.assertEqual({v["name"] for v in VECTORS["sets"]}, set(_sets()))
        for v in VECTORS["sets"]:
            with self.subTest(v["name"]):
                s = lookup(v["name"])
                self.assertEqual(s.hash().hex(), v["hash"])
                sizes = (s.key_size(False), s.key_size(True), s.ciphertext_size)
                self.assertEqual(sizes, (v["key"], v["product_key"], v["ciphertext"]))
                ramp = np.arange(s.n)
                ramp[0] = -1
                transformed, expanded = b"", b""
                for i, q in enumerate(s.q):
                    x = s.transform(i).forward(ramp)
                    np.testing.assert_array_equal(s.transform(i).inverse(x), ramp)
                    transformed += pack(residues(x, q), q)
                    expanded += pack(expand(q, s.n, bytes(32), "linear input", 3, prime=i), q)
                self.assertEqual(hashlib.sha256(transformed).hexdigest(), v["transform"])
                self.assertEqual(hashlib.sha256(expanded).hexdigest(), v["expanded"])

    def test_lookup(self) -> None:
        self.assertEqual([s.name for s in sets()], ["V13-32", "V13-32-proved", "P13-17", "P13-40"])
        with self.assertRaisesRegex(ConfigError, "V13-32"):
            lookup("V0")


class Arithmetic(unittest.TestCase):
    def extremes(self, q: int, most: int) -> list[int]:
        half = q // 2
        some = [0, 1, 2, 3, half - 1, half, half + 1, q - 1, q, q + 1, most - 1, most, 1 << 25, (1 << 26) - 1]
        return sorted({s * v for v in some if v <= most for s in (1, -1)})

    def test_products(self) -> None:
        """Products of all extremes, up to the bounds of times."""
        rng = np.random.default_rng(1)
        for q in PRIMES:
            with self.subTest(q):
                self.assertLess(q, arithmetic.LIMIT)
                a = self.extremes(q, 5 * q) + rng.integers(-5 * q, 5 * q, 200, endpoint=True).tolist()
                a += rng.integers(5 * q - 1000, 5 * q, 50, endpoint=True).tolist()
                b = self.extremes(q, q // 2 + (q >> 21)) + rng.integers(-(q // 2), q // 2, 50, endpoint=True).tolist()
                x, y = np.array(a, np.int64)[:, None], np.array(b, np.int64)[None]
                got = times(x, y, np.asarray(y * (1.0 / q), np.float64), q)
                self.assertLessEqual(int(np.abs(got).max()), q // 2 + (q >> 21) + 1)
                want = [[v * w % q for w in b] for v in a]
                self.assertEqual(residues(got, q).tolist(), want)

    def test_centred(self) -> None:
        for q in PRIMES:
            most = min((1 << 63) - 1, q << 30)
            values = list(self.extremes(q, most)) + [most - k for k in range(5)] + [k * q for k in range(-9, 10)]
            got = centred(np.array([v for v in values if abs(v) <= most], np.int64), q)
            self.assertLessEqual(int(np.abs(got).max()), q // 2 + (q >> 21) + 1)
            self.assertEqual(residues(got, q).tolist(), [v % q for v in values if abs(v) <= most])
            all_ = np.array([0, 1, q // 2, q // 2 + 1, q - 1], np.uint64)
            np.testing.assert_array_equal(residues(from_residues(all_, q), q), all_)

    def test_transforms(self) -> None:
        """Products of polynomials with extreme coefficients, and with few."""
        rng = np.random.default_rng(2)
        for s in (lookup("insecure-P6-40"), lookup("insecure-V6-32")):
            for i, q in enumerate(s.q):
                half = q // 2
                for x, y in (
                    (np.full(s.n, half), np.full(s.n, -half)),
                    (np.full(s.n, half), np.where(np.arange(s.n) % 2, half, -half)),
                    (rng.integers(-half, half, s.n), rng.integers(half - 3, half, s.n)),
                ):
                    t = s.transform(i)
                    got = residues(t.inverse(product(t.forward(x), t.forward(y), q)), q).tolist()
                    want = [0] * s.n
                    for j, v in enumerate(x.tolist()):
                        for k, w in enumerate(y.tolist()):
                            want[(j + k) % s.n] += v * w * (1 if j + k < s.n else -1)
                    self.assertEqual(got, [v % q for v in want])

    def test_large_transforms(self) -> None:
        """Transforming extremes forth and back in the full degree returns them, several at a time."""
        s = lookup("P13-40")
        for i, q in enumerate(s.q):
            half = q // 2
            rows = np.stack([np.full(s.n, half), np.full(s.n, -half), np.where(np.arange(s.n) % 2, half, -half)])
            np.testing.assert_array_equal(s.transform(i).inverse(s.transform(i).forward(rows)), rows)
            np.testing.assert_array_equal(s.transform(i).forward(rows)[2], s.transform(i).forward(rows[2]))

    def test_packing(self) -> None:
        for q in PRIMES:
            v = np.array([0, 1, q - 1, q // 2, q - 2], np.uint64)
            data = pack(v, q)
            self.assertEqual(len(data), arithmetic.size(5, q))
            np.testing.assert_array_equal(unpack(data, 5, q), v)
            above = pack(np.array([q] * 8, np.uint64), q)
            for bad, count in ((data[:-1], 5), (data + b"\0", 5), (above, 8)):
                with self.assertRaises(ValueError):
                    unpack(bad, count, q)

    def test_errors(self) -> None:
        """The samples equal those of the exact table, even if the upper bits do not decide."""
        table = gaussian_table(lookup("V13-32").variance)
        values = [v + d for v in table[:20] for d in (-1, 0, 1)] + [0, (1 << 192) - 1] + [i << 180 for i in range(4096)]
        data = b"".join(v.to_bytes(24, "little") + bytes([i & 1]) for i, v in enumerate(values))
        variance = lookup("V13-32").variance
        got = gaussian(variance, len(values), lambda n: data[:n])
        self.assertEqual(got.tolist(), exact(variance, len(values), lambda n: data[:n]))


def of_vectors(v: dict[str, Any], kind: str) -> VectorPlan | BatchPlan | ProductPlan:
    s = lookup(v["set"])
    plan: VectorPlan | BatchPlan | ProductPlan
    if kind == "vector":
        plan = plan_vector(s, v["rows"], v["cols"], v["wanted"], v["slots"])
    elif kind == "batch":
        plan = plan_batch(s, *v["shape"])
    else:
        plan = plan_product(s, tuple(v["shape"]), tuple(v["most"]), METHODS[v["method"]])
    distance = s.distance(plan.noise, plan.answers)
    assert abs(distance - v["distance"]) < 1e-5 and distance <= LOG_DISTANCE
    return plan


LISTS = {"vector": "vectors", "batch": "batches", "product": "products"}


class Plans(unittest.TestCase):
    def test_vectors(self) -> None:
        for kind, name in LISTS.items():
            for v in VECTORS[name]:
                with self.subTest(kind, **v):
                    if v["refused"]:
                        self.assertRaises(ConfigError, of_vectors, v, kind)
                        continue
                    p = of_vectors(v, kind)
                    self.assertEqual((p.answers, p.up_bytes, p.answer_size), (v["answers"], v["up"], v["answer_size"]))
                    if isinstance(p, ProductPlan):
                        self.assertEqual([p.tile_rows, p.tile_inner, p.tile_cols], v["tile"])
                    for field in ("packing", "width", "per_answer", "height", "blocks", "per_input"):
                        if field in v:
                            self.assertEqual(getattr(p, field), v[field])

    def test_refusals(self) -> None:
        s = lookup("insecure-P6-40")
        for call in (
            lambda: plan_vector(s, 1, 1, "tight"),
            lambda: plan_vector(s, 1, 1, "tiled", 65),
            lambda: plan_vector(s, 1, 1, "tiled", -1),
            lambda: plan_product(s, (1, 1, 1), (1, 1), "third"),
            lambda: plan_product(s, (1, 1, 1), (1, -1)),
        ):
            with self.assertRaises(ConfigError):
                call()


def signed(text: str) -> Signed:
    return np.frombuffer(bytes.fromhex(text), np.int8).astype(np.int64)


class Runs(unittest.TestCase):
    """Keys and ciphertexts of given randomness, and answers of the Go client to them."""

    def key(self, run: dict[str, Any], params: str) -> SecretKey:
        seeds = [bytes.fromhex(x) for x in (run["key_seed"], *(i["seed"] for i in run["inputs"]))]
        errors = [signed(e) for e in (*run["key_errors"], *(e for i in run["inputs"] for e in i["errors"]))]
        key = SecretKey(
            lookup(params),
            run["kind"] == "product",
            random=lambda _: seeds.pop(0),
            secret=signed(run["secret"]),
            errors=lambda _: errors.pop(0),
        )
        self.assertEqual(hashlib.sha256(key.public).hexdigest(), run["key"])
        return key

    def opened(self, run: dict[str, Any], key: SecretKey, plan: Any, out: Any) -> None:
        for g, answer in enumerate(run["answers"]):
            plan.place(g, key.open(plan, bytes.fromhex(answer)), out)

    def test_shares(self) -> None:
        for run in VECTORS["runs"]:
            v = VECTORS[LISTS[run["kind"]]][run["plan"]]
            with self.subTest(run["kind"], set=v["set"], plan=run["plan"]):
                plan = of_vectors(v, run["kind"])
                key, t = self.key(run, v["set"]), plan.params.t
                if isinstance(plan, ProductPlan):
                    self.check_product(run, key, plan)
                    continue
                first, second = (np.array(x, np.uint64) for x in run["values"])
                sent = key.encrypt(plan.messages(first))
                self.assertEqual(hashlib.sha256(b"".join(sent)).hexdigest(), run["inputs"][0]["sum"])
                out = np.zeros(plan.rows if isinstance(plan, VectorPlan) else (plan.outputs, plan.rows), np.uint64)
                self.opened(run, key, plan, out)
                other, at = np.zeros_like(out), 0
                for g in range(plan.answers):
                    shares = np.array(run["own"][at : at + plan.results(g)], np.uint64)
                    plan.put(g, shares, other)
                    at += len(shares)
                np.testing.assert_array_equal(unshare(out, other, t), self.wanted(plan, first, second))

    def wanted(self, plan: VectorPlan | BatchPlan, first: Words, second: Words) -> Any:
        a, b = first.astype(object), second.astype(object)
        if isinstance(plan, VectorPlan):
            return (b.reshape(plan.rows, plan.cols) @ a) % plan.params.t
        a = a.reshape(plan.count, plan.rows, plan.cols)
        b = b.reshape(plan.outputs, plan.count, plan.cols)
        sums = [sum(m @ w for m, w in zip(a, v, strict=True)) % plan.params.t for v in b]
        return np.array(sums)

    def check_product(self, run: dict[str, Any], key: SecretKey, plan: ProductPlan) -> None:
        rows, inner, cols = plan.shape
        a, b = (
            np.array(x, np.int64).reshape(s) for x, s in zip(run["values"], ((rows, inner), (inner, cols)), strict=True)
        )
        for messages, given in zip((plan.left_messages(a), plan.right_messages(b)), run["inputs"], strict=True):
            sent = key.encrypt(messages)
            self.assertEqual(hashlib.sha256(b"".join(sent)).hexdigest(), given["sum"])
        out = np.zeros((rows, cols), np.int64)
        self.opened(run, key, plan, out)
        np.testing.assert_array_equal(out, a @ b)
        self.assertEqual(out.reshape(-1).tolist(), run["result"])

    def test_refused_answers(self) -> None:
        run = VECTORS["runs"][0]
        v = VECTORS["vectors"][run["plan"]]
        plan, key = of_vectors(v, "vector"), self.key(run, v["set"])
        answer = bytes.fromhex(run["answers"][0])
        for name, bad in {
            "short": answer[:-1],
            "long": answer + b"\0",
            "another key": bytes(32) + answer[32:],
            "no residues": answer[:32] + b"\xff" * (len(answer) - 32),
        }.items():
            with self.subTest(name), self.assertRaises(BadAnswersError):
                key.open(plan, bad)

    def test_fresh(self) -> None:
        """No random value is used twice."""
        s = lookup("insecure-P6-40")
        m = [np.zeros(s.n, np.int64)] * 2
        seen = Counter[bytes]()
        for key in (SecretKey(s, True), SecretKey(s, True)):
            for sent in (key.encrypt(m), key.encrypt(m)):
                seen.update(sent)
            seen.update([key.public])
        self.assertEqual(set(seen.values()), {1})


class Numbers(unittest.TestCase):
    t: ClassVar[int] = lookup("V13-32").t

    def test_fixed(self) -> None:
        f = Fixed.of(lookup("V13-32"), 12, 4)
        self.assertEqual((f.most, f.fraction), (2047, 4))
        x = [0.0, 1.5, -1.5, 127.9375, -127.9375, 0.03125, -0.03125, 0.03, 1 / 3]
        self.assertEqual(f.encode(x).tolist(), [v % self.t for v in (0, 24, -24, 2047, -2047, 1, -1, 0, 5)])
        self.assertEqual(
            f.decode(f.encode(x)).tolist(), [0, 1.5, -1.5, 127.9375, -127.9375, 0.0625, -0.0625, 0, 0.3125]
        )
        self.assertEqual(f.encode_integers(np.array([-3, 2047], np.int16)).tolist(), [self.t - 3, 2047])
        self.assertEqual(f.decode_integers([self.t - 3]).tolist(), [-3])
        whole = Fixed.of(lookup("V13-32"), 31)
        self.assertEqual(
            whole.decode_integers(whole.encode([whole.most, -whole.most])).tolist(), [whole.most, -whole.most]
        )
        self.assertEqual(f.encode(np.zeros((0, 3))).shape, (0, 3))

    def test_range(self) -> None:
        f = Fixed.of(lookup("V13-32"), 12, 4)
        for bad in (127.97, -128, float("inf"), float("-inf"), float("nan"), 1e300, 2.0**63):
            with self.subTest(bad), self.assertRaises(RangeError) as caught:
                f.encode(np.array([[0, 1, 2], [3, 4, bad]]))
            e = caught.exception
            self.assertEqual((e.index, e.low, e.high, e.code), ((1, 2), -127.9375, 127.9375, "invalid_request"))
            self.assertIn("[1, 2] is not in [-127.9375, 127.9375]", e.what)
        calls: list[Callable[[], object]] = [
            lambda: f.encode_integers([0, 2048]),
            lambda: f.encode_integers([0, -2048]),
            lambda: f.decode([0, 2048]),
            lambda: f.decode([0, self.t - 2048]),
            lambda: f.decode([0, self.t]),
            lambda: f.decode([0, -1]),
            lambda: share([0, self.t], self.t),
            lambda: share(np.array([0, 1 << 63], np.uint64), self.t),
        ]
        for call in calls:
            with self.assertRaises(RangeError) as caught:
                call()
            self.assertEqual(caught.exception.index, (1,))
        with self.assertRaises(ConfigError):
            f.encode_integers([0.5])
        with self.assertRaises(ConfigError):
            f.join([1, 2], [1])

    def test_overflow(self) -> None:
        s = lookup("V13-32")
        x, y = Fixed.of(s, 12, 4), Fixed.of(s, 10, 8)
        p = x.product(y, 512)
        self.assertEqual((p.fraction, p.most), (12, 512 * 2047 * 511))
        calls: list[Callable[[], object]] = [
            lambda: x.product(y, 4096),
            lambda: x.product(y, 0),
            lambda: x.product(Fixed.of(lookup("P13-40"), 3), 1),
            lambda: Fixed.of(s, 1, 62).product(y, 1),
            lambda: Fixed.of(s, 33),
            lambda: Fixed.of(s, 0),
            lambda: Fixed.of(s, 64),
            lambda: Fixed.of(s, 3, 63),
            lambda: Fixed.of(s, 3, -1),
        ]
        for call in calls:
            with self.assertRaises(ConfigError):
                call()

    def test_shares(self) -> None:
        f = Fixed.of(lookup("P13-40"), 30, 10)
        x = np.random.default_rng(3).uniform(-(2**18), 2**18, (40, 50))
        a, b = f.split(x)
        self.assertEqual((a.shape, b.shape), (x.shape, x.shape))
        self.assertLessEqual(float(np.abs(f.join(a, b) - x).max()), 2.0**-11)
        np.testing.assert_array_equal(unshare(a, b, f.t), f.encode(x))
        self.assertEqual(len({*a.reshape(-1).tolist(), *b.reshape(-1).tolist()}), 4000)
        drawn = (f.t).to_bytes(8, "little") + (f.t - 1).to_bytes(8, "little") + bytes(200)  # the first is drawn again
        one, two = share([5], f.t, random=lambda n: drawn[:n])
        self.assertEqual((one.tolist(), two.tolist()), ([f.t - 1], [6]))


class Hostile(unittest.TestCase):
    """The party's messages are checked against the plan and the key."""

    SET = "insecure-V6-32"

    def client(self, *responses: Any) -> LinearClient:
        config = Config("c", "k", "ca", parties=(Server("127.0.0.1:1", "x", "p0"),), coordinator=Server("a:1", "x"))
        c = LinearClient(config)

        class Call:
            def __init__(self, requests: Any) -> None:
                self.requests, self.rest = requests, iter(responses)

            def __iter__(self) -> Call:
                return self

            def __next__(self) -> Any:
                return next(self.rest)

            def cancel(self) -> None:
                pass

        class Party:
            def exchange(self, _method: str, requests: Any, _timeout: float | None) -> Any:
                return Call(requests)

            def errors_of(self, _call: Any) -> Any:
                return nullcontext()

        c._service = Party()  # type: ignore[assignment]
        return c

    def refused(self, why: str, call: Callable[[], object]) -> None:
        with self.assertRaises(BadAnswersError) as caught:
            call()
        self.assertIn(why, caught.exception.what)
        self.assertTrue(caught.exception.what.startswith("party p0: "))

    def terms(self, plan: Any, **changes: Any) -> linear_pb2.Terms:
        return linear_pb2.Terms(
            **{"security": "passive", "answers": plan.answers, "answer_bytes": plan.answer_size, **changes}
        )

    def test_products(self) -> None:
        a = np.full((9, 9), 3)
        plan = plan_product(lookup("insecure-P6-17"), (9, 9, 9), (3, 3))
        response = linear_pb2.MultiplyResponse
        good, size = response(terms=self.terms(plan)), plan.answer_size
        cases: list[tuple[str, list[Any]]] = [
            ("it plans", []),
            ("it plans", [response()]),
            ("it plans", [response(terms=self.terms(plan, security="active"))]),
            ("it plans", [response(terms=self.terms(plan, answers=plan.answers + 1))]),
            ("it plans", [response(terms=self.terms(plan, answer_bytes=size + 1))]),
            ("its answers end after 0", [good]),
            ("its answers end after 0", [good, response(chunk=bytes(size // 2))]),
            ("under another key", [good, response(chunk=bytes(size))]),
        ]
        for why, sent in cases:
            with self.subTest(why, n=len(sent)):
                c = self.client(*sent)
                self.refused(why, lambda c=c: c.multiply(a, a, params="insecure-P6-17"))  # type: ignore[misc]

    def test_runs(self) -> None:
        plan, run = plan_vector(lookup(self.SET), 100, 3), Run.new("other")
        ask, answer = linear_pb2.AskResponse, linear_pb2.AnswerResponse
        first, size = ask(terms=self.terms(plan)), plan.answer_size
        cases: list[tuple[str, list[Any]]] = [
            ("it plans", [ask()]),
            ("before the run is complete", [first]),
            ("end after 0", [first, ask(complete=True)]),
            ("under another key", [first, ask(chunk=bytes(size))]),
        ]
        for why, sent in cases:
            with self.subTest(why):
                c = self.client(*sent)
                self.refused(why, lambda c=c: c.ask_vector(run, [1, 2, 3], 100, params=self.SET))  # type: ignore[misc]
        begin, shares = answer(terms=self.terms(plan)), bytes(4 * 100)
        whole, matrix = answer(chunk=shares, complete=True), np.zeros((100, 3), np.int64)
        got = self.client(begin, whole).answer_vector(run, matrix, params=self.SET)
        self.assertEqual((got.entries.tolist(), got.down), ([0] * 100, 400))
        cases = [
            ("it plans", [answer()]),
            ("before the run is complete", [begin, answer(chunk=shares[:8])]),
            ("before the run is complete", [begin, answer(chunk=shares)]),
            ("end after", [begin, answer(chunk=shares[:8], complete=True)]),
            ("more answers than expected", [begin, answer(chunk=shares + b"x", complete=True)]),
            ("more after the end", [begin, whole, answer(chunk=b"x")]),
            ("is not below", [begin, answer(chunk=b"\xff" * 400, complete=True)]),
        ]
        for why, sent in cases:
            with self.subTest(why):
                c = self.client(*sent)
                self.refused(why, lambda c=c: c.answer_vector(run, matrix, params=self.SET))  # type: ignore[misc]

    def test_proved(self) -> None:
        """Under a set with proofs the answering end requires confirmation that they were verified."""
        name, run = f"{self.SET}-proved", Run.new("other")
        plan, answer = plan_vector(lookup(name), 10, 3), linear_pb2.AnswerResponse
        whole, matrix = answer(chunk=bytes(40), complete=True), np.zeros((10, 3), np.int64)
        begin = answer(terms=self.terms(plan, security="passive_evaluator"))
        got = self.client(begin, whole).answer_vector(run, matrix, params=name)
        self.assertEqual(got.security, "passive_evaluator")
        c = self.client(answer(terms=self.terms(plan)), whole)
        self.refused("it plans", lambda: c.answer_vector(run, matrix, params=name))


if __name__ == "__main__":
    unittest.main()
