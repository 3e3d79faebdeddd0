"""Tests against a cluster: LODGE_CLUSTER is its directory, with two parties or more and stock of all classes below."""

from __future__ import annotations

import os
import socket
import ssl
import threading
import unittest
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from lodge_mpc import Client, Config, Convolution, LodgeError, Reservation, Shares
from lodge_mpc._proto.lodge.tuples.v1.tuples_pb2 import ListMacKeysRequest
from lodge_mpc.pin import Pin

CLUSTER = Path(os.environ.get("LODGE_CLUSTER", "lodge-dev"))


def config(i: int) -> Config:
    return Config.load(CLUSTER / "clients" / f"client-p{i}.yaml")


class CuttingProxy:
    """Forwards connections, and cuts each after a number of bytes from the server; cuts is the number of cuts."""

    def __init__(self, target: str, after: int, cuts: int) -> None:
        host, _, port = target.rpartition(":")
        self.target, self.after, self.cuts = (host, int(port)), after, cuts
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(self.target)
                threading.Thread(target=self._pass, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(server, client, True), daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, counted: bool) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(1 << 14):
                passed += len(data)
                if counted and passed > self.after and self.cuts > 0:
                    self.cuts -= 1
                    break
                sink.sendall(data)
        for s in (source, sink):
            with suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
        source.close()

    def close(self) -> None:
        self.listener.close()


class Cluster(unittest.TestCase):
    clients: ClassVar[list[Client]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.clients = [Client(config(i)) for i in range(len(config(0).parties))]

    @classmethod
    def tearDownClass(cls) -> None:
        for c in cls.clients:
            c.close()

    def draw(self, kind: str, field: str, count: int, **options: Any) -> tuple[Reservation, list[Shares], int]:
        """A reservation, the shares of all parties, and the MAC key."""
        reserved = self.clients[0].reserve(kind, field=field, count=count, wait=True, timeout=60, **options)
        shares = [c.fetch(reserved.id) for c in self.clients]
        return reserved, shares, sum(c.mac_key_share(reserved) for c in self.clients)

    def opened(self, shares: list[Shares], key: int) -> dict[str, Any]:
        """Values of tuples, after checking their MACs."""
        p, values = shares[0].modulus, dict[str, Any]()
        for name in shares[0].names:
            if name == "clear":
                continue
            values[name] = sum(s[name].astype(object) for s in shares) % p
        for name in [n for n in values if not n.startswith("mac_")]:
            self.assertTrue((key * values[name] % p == values[f"mac_{name}"]).all(), f"MACs of {name}")
        return values

    def test_scalar(self) -> None:
        for field, dtype in ("p128", object), ("p64", np.uint64):
            with self.subTest(field):
                reserved, shares, key = self.draw("scalar", field, 1000)
                self.assertEqual((reserved.count, len(shares[0]), shares[0].a.shape), (1000, 1000, (1000,)))
                self.assertEqual(shares[0].a.dtype, dtype)
                raw = shares[0].raw("b")
                self.assertEqual((raw.dtype, raw.shape), (np.dtype(np.uint64), (1000, 2 if field == "p128" else 1)))
                self.assertEqual(sum(int(limb) << (64 * i) for i, limb in enumerate(raw[7])), int(shares[0].b[7]))
                v = self.opened(shares, key)
                self.assertTrue((v["a"] * v["b"] % shares[0].modulus == v["c"]).all())
                self.assertEqual(len(set(v["a"])), 1000)

    def test_matrix(self) -> None:
        _, shares, key = self.draw("matrix", "p128", 2, shape=(3, 2, 4))
        self.assertEqual([shares[0][n].shape for n in "abc"], [(2, 3, 2), (2, 2, 4), (2, 3, 4)])
        self.assertEqual(shares[0].raw("b").shape, (2, 2, 4, 2))
        v = self.opened(shares, key)
        for a, b, c in zip(v["a"], v["b"], v["c"], strict=True):
            self.assertTrue((a.dot(b) % shares[0].modulus == c).all())

    def test_convolution(self) -> None:
        shape = Convolution((2, 4, 3), 3, (3, 2), stride=(1, 1), padding=(1, 0))
        reserved, shares, key = self.draw("convolution", "p128", 2, convolution=shape)
        self.assertEqual(reserved.tuples.convolution, shape)
        self.assertEqual([shares[0][n].shape for n in "xwy"], [(2, 2, 4, 3), (2, 3, 2, 3, 2), (2, 3, 4, 2)])
        v, p = self.opened(shares, key), shares[0].modulus
        for x, w, y in zip(v["x"], v["w"], v["y"], strict=True):
            padded = np.zeros((2, 6, 3), dtype=object)
            padded[:, 1:5] = x
            for i in range(4):
                for j in range(2):
                    window = padded[:, i : i + 3, j : j + 2]
                    self.assertTrue(((w * window).sum(axis=(1, 2, 3)) % p == y[:, i, j]).all())

    def test_other_kinds(self) -> None:
        _, shares, key = self.draw("square", "p128", 10)
        v, p = self.opened(shares, key), shares[0].modulus
        self.assertTrue((v["a"] * v["a"] % p == v["a2"]).all())
        _, shares, key = self.draw("bit", "p128", 100)
        self.assertEqual(set(self.opened(shares, key)["a"]), {0, 1})
        _, shares, key = self.draw("input", "p128", 10, input_party=1)
        self.assertNotIn("clear", shares[0].names)
        self.assertTrue((shares[1].clear == self.opened(shares, key)["a"]).all())

    def test_resumes_through_a_connection_that_breaks(self) -> None:
        c = config(0)
        proxy = CuttingProxy(c.parties[0].address, 100_000, 4)
        parties = [replace(c.parties[0], address=proxy.address), *c.parties[1:]]
        reserved = self.clients[1].reserve("scalar", field="p128", count=3000, wait=True, timeout=60)
        with Client(replace(c, parties=parties)) as client:
            shares = client.fetch(reserved)
        proxy.close()
        self.assertLess(proxy.cuts, 4)
        self.assertEqual(shares._words.tobytes(), self.clients[0].fetch(reserved)._words.tobytes())

    def test_the_server_is_who_the_configuration_says(self) -> None:
        c = config(0)
        for name, changed in {
            "another identity": replace(c.parties[0], identity=c.parties[1].identity),
            "another server": replace(c.parties[0], address=c.parties[1].address),
        }.items():
            with (
                self.subTest(name),
                Client(replace(c, parties=[changed, *c.parties[1:]])) as client,
                self.assertRaises(LodgeError) as caught,
            ):
                client.fetch("abc")
            self.assertEqual(caught.exception.code, "unauthenticated")

    def test_no_other_certificate_is_accepted_than_the_pinned_one(self) -> None:
        def certificate(address: str) -> bytes:
            host, _, port = address.rpartition(":")
            context = ssl.create_default_context(cafile=str(CLUSTER / "ca.pem"))
            context.load_cert_chain(config(0).certificate, config(0).key)
            with socket.create_connection((host, int(port))) as s, context.wrap_socket(s, server_hostname=host) as t:
                return ssl.DER_cert_to_PEM_cert(t.getpeercert(binary_form=True) or b"").encode()

        c = config(0)
        with Client(c, patience=0.5) as client:
            service = client._at_party()
            pin = Pin(certificate(c.parties[1].address), "localhost")  # of the same authority and host, and of a peer
            service._channel, service._pin, service._suspect = service._connect(pin), pin, False
            with self.assertRaisesRegex(LodgeError, "(?i)certificate|handshake") as caught:
                service.call("ListMacKeys", ListMacKeysRequest(), 5)
            self.assertEqual(caught.exception.code, "unavailable")
            self.assertGreaterEqual(
                len(client._at_party().call("ListMacKeys", ListMacKeysRequest(), 5).keys), 1
            )  # looks again

    def test_errors(self) -> None:
        with self.assertRaises(LodgeError) as caught:
            self.clients[0].reserve("scalar", field="p128", count=10**9)
        self.assertEqual((caught.exception.code, caught.exception.retry), ("out_of_stock", False))
        self.assertTrue(caught.exception.next)
        with self.assertRaises(LodgeError) as caught:
            self.clients[0].fetch("0123456789abcdef")
        self.assertEqual(caught.exception.code, "not_found")
        with self.assertRaises(LodgeError) as caught:
            self.clients[0].reserve("scalar", field="p128", count=1, tenant="somebody")
        self.assertEqual(caught.exception.code, "forbidden")
        with self.assertRaises(LodgeError) as caught:
            self.clients[0].reserve("scalar", field="p128", count=10**9, wait=True, timeout=0.5)
        self.assertIn(caught.exception.code, ("out_of_stock", "timed_out"))

    def test_release(self) -> None:
        r = self.clients[0].reserve("scalar", field="p64", count=5, lease=timedelta(minutes=1), key="mine")
        again = self.clients[0].reserve("scalar", field="p64", count=5, lease=timedelta(minutes=1), key="mine")
        self.assertEqual(r, again)
        self.assertTrue(self.clients[0].release(r))
        with self.assertRaises(LodgeError):
            self.clients[0].fetch(r)
        r = self.clients[0].reserve("scalar", field="p64", count=5)
        self.clients[1].fetch(r)
        self.assertFalse(self.clients[0].release(r))

    def test_stock(self) -> None:
        stock = self.clients[0].stock()
        levels = {(s.tuples.kind, s.tuples.field): s for s in stock}
        self.assertGreater(levels["scalar", "p128"].available or 0, 0)
        self.assertEqual(stock.away, ())
        assert stock.as_of is not None
        self.assertLess(abs(datetime.now(timezone.utc) - stock.as_of), timedelta(minutes=1))
        self.assertEqual(levels["matrix", "p128"].tuples.shape, (3, 2, 4))

    def test_zz_pooled_and_reported(self) -> None:
        """The last test, because it burns the stock of the others."""
        r = self.clients[0].reserve("scalar", field="p64", count=1)
        self.clients[0].mac_key_share(r, pool=True)
        for call in (lambda: self.clients[0].mac_key_share(r), lambda: self.clients[0].fetch(r)):
            with self.assertRaises(LodgeError) as caught:
                call()
            self.assertEqual(caught.exception.code, "burnt")
        self.assertGreaterEqual(self.clients[1].report_failed_check(r, "a test"), 1)


if __name__ == "__main__":
    unittest.main()
