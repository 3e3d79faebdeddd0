"""Tests of downloading multi-key keys from scripted parties, which break off or send invalid data."""

from __future__ import annotations

import hashlib
import tempfile
import threading
import unittest
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lodge_mpc import BadKeysError, Config, ConfigError, LodgeError, Server
from lodge_mpc._proto.lodge.multikey.v1.registry_pb2 import GetPublishedRequest, GetPublishedResponse
from lodge_mpc.channel import Service
from lodge_mpc.multikey import MultikeyClient, PublishedKeys
from lodge_mpc.multikey.download import keys_digest
from lodge_mpc.threshold.multikey import lookup_multikey

SET = lookup_multikey("insecure-M8-32")
assert SET is not None
CRS = b"c" * 32
HEADER = SET.hash() + CRS + bytes(4 + 32)
CHUNKS = [bytes([i + 1]) * size for i, size in enumerate(SET.chunk_sizes())]
DIGESTS = [hashlib.sha256(c).digest() for c in CHUNKS]
KEY = keys_digest(HEADER, b"".join(DIGESTS))
FILE = HEADER + b"".join(DIGESTS) + b"".join(CHUNKS)


def head(header: bytes = HEADER, digests: list[bytes] = DIGESTS) -> GetPublishedResponse:
    return GetPublishedResponse(header=header, chunk_digests=digests)


def chunk(i: int, data: bytes | None = None) -> GetPublishedResponse:
    return GetPublishedResponse(index=i, chunk=CHUNKS[i] if data is None else data)


Script = list[GetPublishedResponse | LodgeError | None]


class Stream:
    """The data that a party sends: messages and errors in order; at None it waits until it is cancelled."""

    def __init__(self, script: Script) -> None:
        self._script, self._cancelled = iter(script), threading.Event()

    def __iter__(self) -> Iterator[GetPublishedResponse]:
        return self

    def __next__(self) -> GetPublishedResponse:
        x = next(self._script)
        if x is None:
            self._cancelled.wait()
            raise LodgeError("cancelled", "the call")
        if isinstance(x, LodgeError):
            raise x
        return x

    def cancel(self) -> None:
        self._cancelled.set()


ALL: Script = [head(), chunk(0), chunk(1)]
GONE = LodgeError("unavailable", "gone")


class Fetch(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name) / "keys"
        self.part = Path(f"{self.path}.part")
        self.asked: list[tuple[str, int]] = []

    def fetch(self, *scripts: Script, key: bytes | PublishedKeys = KEY) -> list[int]:
        """Each call runs the next script."""
        left, seen = list(scripts), list[int]()

        def stream(service: Service, method: str, request: GetPublishedRequest, timeout: Any) -> Stream:
            self.asked.append((service._server.name, request.first))
            return Stream(left.pop(0))

        servers = [Server("127.0.0.1:1", "x", f"p{i}") for i in range(2)]
        client = MultikeyClient(Config("c", "k", "ca", servers[0], servers), patience=30)
        with (
            client,
            patch.object(client, "_context", return_value=(SET, CRS)),
            patch.object(Service, "stream", stream),
        ):
            client.fetch_keys(key, self.path, progress=lambda have, of: seen.append(have))
        self.assertEqual((self.path.read_bytes(), left, self.part.exists()), (FILE, [], False))
        return seen

    def test_once(self) -> None:
        self.assertEqual(self.fetch(ALL), [1, 2])
        self.assertEqual(self.fetch(), [])
        self.assertEqual(self.asked, [("p0", 0)])

    def test_the_owner_is_asked_first(self) -> None:
        self.fetch(ALL, key=PublishedKeys(1, "p1", 1, KEY, "current", True))
        self.assertEqual(self.asked, [("p1", 0)])

    def test_dropped_connections(self) -> None:
        self.fetch([head(), chunk(0), GONE], [GONE], [head(), chunk(1)])
        self.assertEqual(self.asked, [("p0", 0), ("p1", 1), ("p0", 1)])

    def test_a_party_that_stalls(self) -> None:
        with patch("lodge_mpc.multikey.download.STALL_TIME", 0.2):
            self.fetch([None], [head(), chunk(0), None], [head(), chunk(1)])
        self.assertEqual(self.asked, [("p0", 0), ("p1", 0), ("p0", 1)])

    def test_the_next_call_goes_on(self) -> None:
        whole = len(FILE) - len(CHUNKS[1])
        for left, first in ((FILE[:whole], 1), (FILE[: whole + 9], 1), (FILE[: whole - 9], 0), (b"x" + FILE[1:], 0),
                            (FILE[:-1] + b"x", 1), (FILE[:50], 0)):  # fmt: skip
            self.path.unlink(missing_ok=True)
            self.part.write_bytes(left)
            self.asked.clear()
            self.fetch([head(), *ALL[first + 1 :]])
            self.assertEqual(self.asked, [("p0", first)])
        self.path.unlink()
        self.part.write_bytes(FILE)
        self.asked.clear()
        self.fetch()
        self.assertEqual(self.asked, [])

    def test_a_hostile_party(self) -> None:
        """The next party is used for the missing chunks; without one, the download fails and leaves no file."""
        other = bytes([0]) * len(CHUNKS[1])
        digests = [DIGESTS[0], hashlib.sha256(other).digest()]
        foreign = SET.hash() + bytes(32) + HEADER[64:] if SET else b""
        for name, script, first in (
            ("another header", [head(HEADER[:-1] + b"x")], 0),
            ("no header", [head(b"")], 0),
            ("other digests", [head(digests=digests), chunk(0), chunk(1, other)], 0),
            ("a digest too few", [head(digests=DIGESTS[:1])], 0),
            ("another reference string", [head(foreign)], 0),
            ("another chunk", [head(), chunk(0), chunk(1, other)], 1),
            ("a chunk cut short", [head(), chunk(0, CHUNKS[0][:-1])], 0),
            ("a chunk twice", [head(), chunk(0), chunk(0)], 1),
            ("the wrong order", [head(), chunk(1), chunk(0)], 0),
        ):
            with self.subTest(name):
                self.path.unlink(missing_ok=True)
                self.asked.clear()
                self.fetch(list(script), [head(), *ALL[first + 1 :]])
                self.assertEqual(self.asked, [("p0", 0), ("p1", first)])
                self.path.unlink()
                with self.assertRaises(BadKeysError) as caught:
                    again: Script = [head(), *script[first + 1 :]] if first else list(script)
                    self.fetch(list(script), again)
                self.assertIn("party p0: ", caught.exception.what)
                self.assertFalse(self.path.exists())
                self.part.unlink()

    def test_refusals(self) -> None:
        with self.assertRaises(ConfigError):
            self.fetch(key=b"x")
        for wrong in b"something else", FILE[:-1], FILE + b"x":  # what is there is not written over
            self.path.write_bytes(wrong)
            with self.assertRaises(ConfigError):
                self.fetch()
            self.assertEqual(self.path.read_bytes(), wrong)
        self.path.unlink()
        unknown = LodgeError("unknown_key", "nobody's")
        with self.assertRaises(LodgeError) as caught:
            self.fetch([unknown], [unknown])
        self.assertEqual(caught.exception.code, "unknown_key")

    def test_sizes(self) -> None:
        """The sizes match docs/reference/parameters.md and the keys that services publish."""
        sizes = {"M11-2-128": 123.3, "M11-4-128": 82.2, "M11-8-128": 89.1, "M11-16-128": 133.6, "M11-32-128": 117.7}
        sizes |= {"M11-2": 98.2, "M11-4": 62.4, "M11-8": 78.6, "M11-16": 105.6, "M11-32": 149.4}  # legacy
        for name, megabytes in sizes.items():
            s = lookup_multikey(name)
            assert s is not None
            self.assertEqual(round(sum(s.chunk_sizes()) / 1e6, 1), megabytes)
            self.assertLessEqual(max(s.chunk_sizes()), 4 << 20)


if __name__ == "__main__":
    unittest.main()
