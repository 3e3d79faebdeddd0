"""Tests that need no cluster: configurations, fields, and parties that send invalid data."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import grpc
import numpy as np

from lodge_mpc import AwayParty, BadSharesError, Client, Config, ConfigError, Convolution, LodgeError, Server, Stock
from lodge_mpc._proto.lodge.job.v1 import job_pb2
from lodge_mpc._proto.lodge.stock.v1 import stock_pb2
from lodge_mpc._proto.lodge.tuples.v1 import tuples_pb2
from lodge_mpc.channel import Patience, Service
from lodge_mpc.fields import _FORMULAS, layout, modulus
from lodge_mpc.reservation import Class
from lodge_mpc.shares import Download

REPOSITORY = Path(__file__).resolve().parents[3]
CONFIG = """
name: client-p0
tenant: dev
params: S14-32
coordinator: {address: "127.0.0.1:1", identity: "spiffe://lodge/coordinator"}
parties:
  - {name: p0, address: "127.0.0.1:2", identity: "spiffe://lodge/party/p0"}
party: p0
tls: {certificate: c.pem, key: c.key, ca: ../ca.pem}
"""


class Configurations(unittest.TestCase):
    def load(self, text: str) -> Config:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "c.yaml"
            path.write_text(text)
            return Config.load(path)

    def test_load(self) -> None:
        c = self.load(CONFIG)
        self.assertEqual((c.name, c.tenant, c.params, c.own), ("client-p0", "dev", "S14-32", 0))
        self.assertEqual(c.parties[0].identity, "spiffe://lodge/party/p0")
        self.assertTrue(str(c.ca).endswith("../ca.pem"))

    def test_refuses(self) -> None:
        for name, text in {
            "an unknown key": CONFIG + "colour: red\n",
            "an unknown party": CONFIG.replace("party: p0", "party: p7"),
            "no certificate": CONFIG.replace("certificate: c.pem,", ""),
            "no identity": CONFIG.replace(', identity: "spiffe://lodge/party/p0"', ""),
            "no mapping": "- 1\n",
            "nothing": "",
        }.items():
            with self.subTest(name), self.assertRaises(ConfigError) as caught:
                self.load(text)
            self.assertEqual(caught.exception.code, "invalid_request")

    def test_arguments(self) -> None:
        c = Client(Config("c", "k", "ca", coordinator=Server("127.0.0.1:1", "x")))
        for arguments in (
            {"kind": "tripel"},
            {"kind": "matrix"},
            {"kind": "scalar", "shape": (1, 1, 1)},
            {"kind": "input"},
            {"kind": "convolution"},
            {"kind": "scalar", "convolution": Convolution((1, 3, 3), 1, (3, 3))},
            {"kind": "convolution", "convolution": Convolution((1, -3, 3), 1, (3, 3))},
        ):
            with self.subTest(arguments), self.assertRaises(ConfigError):
                c.reserve(**{"field": "p128", "count": 1, **arguments})  # type: ignore[arg-type]
        with self.assertRaises(ConfigError):
            c.fetch("abc")


class Convolutions(unittest.TestCase):
    def test_shapes(self) -> None:
        c = Convolution((3, 8, 7), 4, (3, 2), stride=(2, 1), padding=(1, 0))
        self.assertEqual((c.kernels, c.result), ((4, 3, 3, 2), (4, 4, 6)))
        self.assertEqual(Convolution.of(c.wire()), c)
        whole = Class("convolution", "p128", "S14-32", "dev", convolution=c)
        self.assertEqual(Class.of(whole.wire()), whole)
        self.assertEqual(Class.of(Class("scalar", "p64", "S14-32", "dev").wire()).convolution, None)
        names = layout("convolution", None, False, c)
        self.assertEqual(list(names), ["x", "w", "y", "mac_x", "mac_w", "mac_y"])
        self.assertEqual((names["x"], names["mac_w"], names["y"]), ((3, 8, 7), (4, 3, 3, 2), (4, 4, 6)))
        with self.assertRaises(ConfigError):
            layout("convolution", None, False, Convolution((3, 8, 7), 4, (3, 2), stride=(0, 1)))
        with self.assertRaises(ConfigError):
            layout("convolution", None, False)


class Tokens(unittest.TestCase):
    def test_read_anew(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "token"
            config = Config("", "", "ca", coordinator=Server("127.0.0.1:1", "x", token_file=path))
            service = Client(config)._at_coordinator()
            for token in "first", "second":
                path.write_text(token + "\n")
                self.assertEqual(service._headers(), [("authorization", f"Bearer {token}")])
            for bad in "", "two words", "\u00e4":
                path.write_text(bad)
                with self.subTest(bad), self.assertRaises(LodgeError) as caught:
                    service._headers()
                self.assertEqual(caught.exception.code, "unauthenticated")


class Fields(unittest.TestCase):
    def test_table_is_the_documented_one(self) -> None:
        text = (REPOSITORY / "docs" / "reference" / "export-format.md").read_text()
        rows = re.findall(r"^\| (p\d+) \|(.*)\|$", text, re.MULTILINE)
        found: dict[int, dict[str, tuple[int, int]]] = {}
        for name, cells in rows:
            for width, cell in zip((8, 16, 32, 64, 128), cells.split("|"), strict=True):
                if match := re.fullmatch(r" (\d+) \((\d+)\) ", cell):
                    found.setdefault(width, {})[name] = (int(match[1]), int(match[2]))
        self.assertEqual(found, _FORMULAS)

    def test_moduli(self) -> None:
        p = modulus("S14-32", "p128")
        self.assertEqual(p, (2**32 - 80) ** 4 + 1)
        self.assertEqual(pow(3, p - 1, p), 1)
        with self.assertRaises(ConfigError):
            modulus("S14-32", "p127")


class Stocks(unittest.TestCase):
    def answer(self) -> stock_pb2.GetStockResponse:
        answer = stock_pb2.GetStockResponse()
        row = answer.stock.add(epoch=3, available=5, reserved=2, consumed=1, lost=4, in_production=7)
        getattr(row, "class").CopyFrom(
            tuples_pb2.Class(tenant="dev", kind=job_pb2.KIND_SCALAR, params="s", field="p64")
        )
        return answer

    def stock(self, answer: stock_pb2.GetStockResponse) -> Stock:
        class Coordinator:
            def call(self, _method: str, _request: Any, _timeout: float | None) -> Any:
                return answer

        client = Client(Config("c", "k", "ca", coordinator=Server("127.0.0.1:1", "x")))
        client._coordinator = Coordinator()  # type: ignore[assignment]
        return client.stock()

    def test_known(self) -> None:
        answer, now = self.answer(), datetime(2026, 5, 4, 3, 2, 1, tzinfo=timezone.utc)
        answer.as_of.FromDatetime(now)
        stock = self.stock(answer)
        self.assertEqual((len(stock), stock.as_of, stock.away), (1, now, ()))
        self.assertEqual(list(stock), [stock[0]])
        s = stock[0]
        self.assertEqual((s.available, s.reserved, s.consumed, s.lost, s.in_production, s.epoch), (5, 2, 1, 4, 7, 3))
        answer.away.add(party=1, name="p1", reason="gone")
        stock = self.stock(answer)
        self.assertEqual((stock.as_of, stock.away, stock[0]), (now, (AwayParty(1, "p1", "gone"),), s))

    def test_not_known(self) -> None:
        answer = self.answer()
        answer.away.add(party=1, name="p1", reason="gone")
        stock = self.stock(answer)
        self.assertEqual((stock.as_of, stock.away[0].name), (None, "p1"))
        s = stock[0]
        self.assertEqual((s.available, s.reserved, s.consumed, s.lost, s.in_production), (None, None, None, None, 7))


class Reset(grpc.RpcError):  # type: ignore[misc]
    """What gRPC raises for a stream that the server has reset, without a word."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.CANCELLED

    def details(self) -> str:
        return "Stream removed"

    def trailing_metadata(self) -> tuple[tuple[str, bytes], ...]:
        return ()


class Resets(unittest.TestCase):
    """A server resets calls after their deadline, possibly before this side has noticed the deadline."""

    def test_streams(self) -> None:
        server = Server("127.0.0.1:1", "x")
        service = Service(server, Config("c", "k", "ca", server), stock_pb2.DESCRIPTOR.services_by_name["StockService"])
        for left, closed, code in ((0, False, "timed_out"), (0.1, False, "cancelled"), (None, False, "cancelled"),
                                   (0, True, "cancelled")):  # fmt: skip
            with self.subTest(left=left, closed=closed):
                if closed:
                    service.close()
                call = SimpleNamespace(time_remaining=lambda left=left: left)
                with self.assertRaises(LodgeError) as caught, service.errors_of(call):
                    raise Reset
                self.assertEqual(caught.exception.code, code)


class FakeParty:
    """Replaces a connection to a party: each call runs the next script."""

    def __init__(self, *scripts: Callable[[int], Iterator[Any]]) -> None:
        self.scripts = list(scripts)
        self.starts: list[int] = []

    @contextmanager
    def errors_of(self, _call: Any) -> Iterator[None]:
        yield

    def stream(self, _method: str, request: Any, _timeout: float | None) -> Any:
        start = getattr(request, "from")
        self.starts.append(start)
        script = self.scripts.pop(0)

        class Call:
            def __iter__(self) -> Iterator[Any]:
                return script(start)

            def cancel(self) -> None:
                pass

        return Call()


COUNT, TUPLE = 5, 96
DATA = os.urandom(COUNT * TUPLE)


def head(**changes: Any) -> tuples_pb2.FetchResponse:
    r = tuples_pb2.Reservation(id="r", count=COUNT, digest=b"d", mac_key_id="k")
    getattr(r, "class").CopyFrom(tuples_pb2.Class(kind=job_pb2.KIND_SCALAR, params="S14-32", field="p128"))
    size = changes.pop("tuple_bytes", TUPLE)
    for name, value in changes.items():
        setattr(r, name, value)
    return tuples_pb2.FetchResponse(reservation=r, tuple_bytes=size)


def whole(start: int, data: bytes = DATA, sum_of: bytes | None = None) -> Iterator[Any]:
    yield head()
    rest = data[start * TUPLE :]
    for i in range(0, len(rest), 70):
        yield tuples_pb2.FetchResponse(chunk=rest[i : i + 70])
    yield tuples_pb2.FetchResponse(sha256=hashlib.sha256(rest if sum_of is None else sum_of).digest())


def broken(size: int, error: LodgeError | None) -> Callable[[int], Iterator[Any]]:
    def script(start: int) -> Iterator[Any]:
        yield head()
        yield tuples_pb2.FetchResponse(chunk=DATA[start * TUPLE :][:size])
        if error is not None:
            raise error

    return script


class Downloads(unittest.TestCase):
    def run_against(self, *scripts: Callable[[int], Iterator[Any]]) -> tuple[Any, FakeParty]:
        party = FakeParty(*scripts)
        return Download(party, "r", 0, Patience(1.0, None)).run(), party  # type: ignore[arg-type]

    def test_resumes(self) -> None:
        gone = LodgeError("unavailable", "gone")
        shares, party = self.run_against(broken(100, gone), broken(250, None), broken(0, gone), whole)
        self.assertEqual(party.starts, [0, 1, 3, 3])
        self.assertEqual(shares._words.tobytes(), DATA)
        self.assertEqual(int(shares.b[1]), int.from_bytes(DATA[112:128], "little"))
        self.assertEqual(shares.raw("b").shape, (COUNT, 2))
        self.assertTrue(np.shares_memory(shares.raw("mac_c"), shares._words))
        shares.wipe()
        self.assertFalse(shares.raw("b").any())

    def test_resumes_for_the_checksum(self) -> None:
        shares, party = self.run_against(broken(len(DATA), None), whole)
        self.assertEqual(party.starts, [0, COUNT - 1])
        self.assertEqual(shares._words.tobytes(), DATA)

    def test_refuses(self) -> None:
        def only(message: Any) -> Callable[[int], Iterator[Any]]:
            return lambda _: iter([message])

        for name, scripts in {
            "another reservation": [only(head(id="x"))],
            "another size": [only(head(tuple_bytes=95))],
            "no tuples": [only(head(count=0))],
            "another sum": [lambda s: whole(s, sum_of=b"")],
            "too much": [lambda s: whole(s, DATA + b"x")],
            "too little": [lambda s: whole(s, DATA[:-1])],
            "other tuples later": [broken(100, None), only(head(digest=b"e"))],
        }.items():
            with self.subTest(name), self.assertRaises(BadSharesError):
                self.run_against(*scripts)

    def test_gives_up(self) -> None:
        expired = LodgeError("expired", "the lease has ended")
        with self.assertRaises(LodgeError) as caught:
            self.run_against(broken(10, expired))
        self.assertEqual(caught.exception.code, "expired")
        gone = LodgeError("unavailable", "gone")
        with self.assertRaises(LodgeError) as caught:
            self.run_against(*[broken(0, gone)] * 100)
        self.assertTrue(caught.exception.retry)


if __name__ == "__main__":
    unittest.main()
