"""Tests against a cluster of three parties (LODGE_CLUSTER) that has threshold keys, and exact masks of every quorum."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from lodge_mpc import BadKeysError, Config, ConfigError, LodgeError
from lodge_mpc.threshold import Key, PublicKey, RingCiphertext, ThresholdClient, read_public_key

CLUSTER = Path(os.environ.get("LODGE_CLUSTER", "lodge-dev"))
SET = "insecure-L8-50"
PATIENCE = 20.0  # seconds, for machines that do much else


def config() -> Config:
    return Config.load(CLUSTER / "clients" / "app.yaml")


@contextmanager
def dead_end() -> Iterator[str]:
    """An address that accepts connections and never responds."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


class ThresholdKeys(unittest.TestCase):
    client: ClassVar[ThresholdClient]
    key: ClassVar[Key]
    public: ClassVar[PublicKey]

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = ThresholdClient(config(), patience=PATIENCE)
        cls.key = cls.client.key()
        cls.public = cls.client.public_key(cls.key)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()

    def without(self, party: int, address: str) -> ThresholdClient:
        """A client with a different address for one party."""
        c = config()
        parties = [replace(p, address=address) if i == party else p for i, p in enumerate(c.parties)]
        return ThresholdClient(replace(c, parties=parties), patience=PATIENCE)

    def test_keys(self) -> None:
        k, keys = self.key, self.client.keys()
        self.assertEqual((k.params, k.threshold, k.holders, k.state, k.up), (SET, 1, (0, 1, 2), "active", (0, 1, 2)))
        self.assertEqual([m.quorum for m in k.masks if m.form == "exact"], [(0, 1), (0, 2), (1, 2)])
        self.assertTrue(all(m.free > 0 and 0 < m.noise_bound < 1 for m in k.masks))
        self.assertEqual((keys.away, keys.find(k.epoch).digest), ((), k.digest))
        with self.assertRaises(LodgeError) as caught:
            self.client.key(1 << 40)
        self.assertEqual(caught.exception.code, "not_found")

    def test_ring_ciphertexts(self) -> None:
        messages = [7 * i % 16 for i in range(300)]
        ciphertexts = self.public.encrypt(messages)
        opened = self.client.decrypt(self.key, ciphertexts, coefficients=150).messages
        self.assertEqual(opened, messages[:150] + messages[256:] + [0] * 106)

    def test_lwe_ciphertexts(self) -> None:
        c = self.public.encrypt([3, 1, 4, 15])[0]
        extracted = [c.extract(i) for i in range(4)]
        total = [extracted[0] + extracted[2], extracted[3] + extracted[1], extracted[3]]
        self.assertEqual(self.client.decrypt(self.key, total).messages, [7, 0, 15])

    def test_encodings(self) -> None:
        for encoding, messages in ("padded", [0, 5, 15]), ("boolean", [1, 0, 1]):
            with self.subTest(encoding):
                c = self.public.encrypt(messages, encoding)
                opened = self.client.decrypt(self.key, c, coefficients=3, encoding=encoding).messages
                self.assertEqual(opened, messages)
                extracted = [c[0].extract(i) for i in range(3)]
                self.assertEqual(self.client.decrypt(self.key, extracted, encoding=encoding).messages, messages)

    def test_repeats(self) -> None:
        """The same quorum repeats the same answers, without spending masks."""
        c = self.public.encrypt([9])
        first = self.client.decrypt(self.key, c, coefficients=1)
        before = self.client.key(self.key.epoch).decrypted
        again = self.client.decrypt(self.key, c, coefficients=1, quorum=first.quorum)
        self.assertEqual(again, first)
        self.assertEqual(self.client.key(self.key.epoch).decrypted, before)

    def test_routes_around_a_party_that_is_gone(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            gone = f"127.0.0.1:{listener.getsockname()[1]}"
        c = self.public.encrypt([6, 2])
        with self.without(1, gone) as client:
            key = client.key()
            self.assertEqual((key.up, [m.quorum for m in key.masks]), ((0, 2), [(0, 2)]))
            self.assertEqual([a.party for a in client.keys().away], [1])
            self.assertEqual(client.public_key(key)._b, self.public._b)
            # The known stock of the quorum leads to it first, and from there to the others.
            self.assertEqual(client.decrypt(self.key, c, coefficients=2).quorum, (0, 2))
            with self.assertRaises(LodgeError) as caught:
                client.decrypt(key, c, coefficients=2, quorum=(0, 1), timeout=3)
            self.assertEqual(caught.exception.code, "unavailable")
            self.assertIn("party p1", caught.exception.what)

    def test_routes_around_a_party_that_stands_still(self) -> None:
        with dead_end() as address, self.without(0, address) as client:
            key = client.key()
            self.assertEqual(key.up, (1, 2))
            opened = client.decrypt(key, self.public.encrypt([11]), coefficients=1)
            self.assertEqual((opened.messages, opened.quorum), ([11], (1, 2)))

    def test_too_few_are_there(self) -> None:
        c = config()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            gone = f"127.0.0.1:{listener.getsockname()[1]}"
        parties = [c.parties[0], *(replace(p, address=gone) for p in c.parties[1:])]
        with (
            ThresholdClient(replace(c, parties=parties), patience=PATIENCE) as client,
            self.assertRaises(LodgeError) as caught,
        ):
            client.key()
        self.assertEqual(caught.exception.code, "unavailable")

    def test_evaluation_keys_go_on_where_they_ended(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path, seen = Path(directory) / "keys", list[tuple[int, int]]()
            self.client.fetch_keys(self.key, path, progress=lambda done, of: seen.append((done, of)))
            self.assertEqual(seen, [(1, 1)])
            whole, part = path.read_bytes(), Path(f"{path}.part")
            self.assertFalse(part.exists())
            start, public = read_public_key(path)
            self.assertEqual((start.epoch, start.digest, public._b), (self.key.epoch, self.key.digest, self.public._b))
            for left in whole[:-100], whole[:40], b"something else", whole[:-1] + b"x", whole, whole + b"x":
                part.write_bytes(left)
                self.client.fetch_keys(self.key, path)
                self.assertEqual(path.read_bytes(), whole)
            path.write_bytes(whole[:-1])
            with self.assertRaises(LodgeError):
                read_public_key(path)
            path.write_bytes(whole.replace(b'"epoch"', b'"epocH"', 1))
            with self.assertRaises(ConfigError):
                read_public_key(path)

    def test_other_keys_than_agreed(self) -> None:
        other = replace(self.key, digest=bytes(32))
        with self.assertRaises(BadKeysError):
            self.client.public_key(other)
        with self.assertRaises(LodgeError) as caught:
            self.client.decrypt(other, self.public.encrypt([1]), coefficients=1)
        self.assertEqual(caught.exception.code, "foreign_ciphertext")

    def test_refusals(self) -> None:
        c = self.public.encrypt([1])
        for name, options in {
            "no coefficients": {},
            "too many coefficients": {"coefficients": 257},
            "masks": {"coefficients": 1, "masks": "none"},
            "encoding": {"coefficients": 1, "encoding": "none"},
            "quorum": {"coefficients": 1, "quorum": (0, 7)},
            "flooding": {"coefficients": 1, "flooding": True},
        }.items():
            with self.subTest(name), self.assertRaises(ConfigError):
                self.client.decrypt(self.key, c, **options)  # type: ignore[arg-type]
        nothing: list[RingCiphertext] = []
        with self.assertRaises(ConfigError):
            self.client.decrypt(self.key, nothing)
        with self.assertRaises(LodgeError) as caught:
            self.client.decrypt(self.key, c, coefficients=1, quorum=(0, 1, 2))
        self.assertEqual(caught.exception.code, "wrong_quorum")
        with self.assertRaises(LodgeError) as caught:
            self.client.decrypt(self.key, c, coefficients=1, masks="paper")
        self.assertEqual(caught.exception.code, "out_of_stock")

    def test_many_threads(self) -> None:
        out: dict[int, list[int]] = {}

        def decrypt(i: int) -> None:
            out[i] = self.client.decrypt(self.key, self.public.encrypt([i]), coefficients=1).messages

        threads = [threading.Thread(target=decrypt, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(out, {i: [i] for i in range(4)})


if __name__ == "__main__":
    unittest.main()
