"""Tests of multi-key ciphertexts that need no cluster: comparison with the Go client, and invalid responses.

``go test ./clients/go/threshold -run TestMultikeyVectors -update`` updates the vectors in testdata.
"""

from __future__ import annotations

import json
import unittest
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lodge_mpc import BadAnswersError, Config, ConfigError, LodgeError, Server
from lodge_mpc._proto.lodge.multikey.v1 import evaluation_pb2, keys_pb2
from lodge_mpc._proto.lodge.threshold.v1 import threshold_pb2
from lodge_mpc.multikey import Batch, Evaluation, MultikeyCiphertext, MultikeyClient, MultikeySet, result_digest
from lodge_mpc.multikey.messages import evaluation, groups
from lodge_mpc.multikey.owners import owners_of
from lodge_mpc.threshold import Key, Masks
from lodge_mpc.threshold.answers import Masked
from lodge_mpc.threshold.client import _choose
from lodge_mpc.threshold.keys import Keys, merged
from lodge_mpc.threshold.multikey import MaskedBits, lookup_multikey
from lodge_mpc.threshold.question import Question
from lodge_mpc.threshold.request import Request

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "testdata" / "multikey.json").read_text(encoding="utf-8"))
NAME = "insecure-M8-32"


def small() -> MultikeySet:
    s = lookup_multikey(NAME)
    assert s is not None
    return s


def batch() -> Batch:
    return Batch.decode(small(), bytes.fromhex(VECTORS["batch"]))


def readable() -> MultikeyCiphertext:
    return MultikeyCiphertext.decode(small(), bytes.fromhex(VECTORS["readable"]))


def shared() -> MultikeyCiphertext:
    """A ciphertext under two keys."""
    s = small()
    return MultikeyCiphertext.decode(s, b"\x02" + b"a" * 32 + b"b" * 32 + bytes(4 + 8 * s.dim))


def group(up: tuple[int, ...] = (0, 1, 2), masks: tuple[Masks, ...] = ()) -> Key:
    return Key(
        epoch=3, state="active", params=NAME, digest=bytes(32), threshold=1, holders=(0, 1, 2), security="none",
        created=datetime.now(timezone.utc), key_bytes=0, up=up, decrypted={}, masks=masks,
        params_hash=small().hash())  # fmt: skip


def client() -> MultikeyClient:
    server = Server("127.0.0.1:1", "spiffe://lodge/party/p0", "p0")
    return MultikeyClient(Config("c", "k", "ca", parties=[server, replace(server, name="p1")], coordinator=server))


class Vectors(unittest.TestCase):
    def test_sets(self) -> None:
        for v in VECTORS["sets"]:
            with self.subTest(v["name"]):
                s = lookup_multikey(v["name"])
                assert s is not None
                self.assertEqual((s.hash().hex(), s.parties), (v["hash"], v["parties"]))
                for parties, words in enumerate(v["words"], 2):
                    if words:
                        self.assertEqual(s.kind(parties).log_eta, words)
                    else:
                        self.assertRaises(ConfigError, s.kind, parties)
                for parties in 1, max(2, s.parties) + 1:
                    self.assertRaises(ConfigError, s.kind, parties)
        self.assertIsNone(lookup_multikey("M99-1"))

    def test_ciphertexts(self) -> None:
        b = batch()
        self.assertEqual(b.encode().hex(), VECTORS["batch"])
        self.assertEqual([c.encode().hex() for c in b.ciphertexts()], VECTORS["ciphertexts"])
        self.assertEqual(result_digest(b.ciphertexts()).hex(), VECTORS["digest"])
        self.assertEqual((b.ciphertext(0).keys, b.ciphertext(0).bit), ((b.key,), None))
        self.assertEqual((readable().keys, readable().bit), ((), 1))

    def test_question(self) -> None:
        key, of = batch().key, bytes.fromhex(VECTORS["digest"])
        q = Question(bytes(16), 7, bytes(32), (0, 2), "multikey", 3, 1, of, multikey=((key, VECTORS["owner"]),))
        self.assertEqual(q.digest.hex(), VECTORS["question"])

    def test_what_is_no_ciphertext(self) -> None:
        s, data, two = small(), batch().ciphertext(0).encode(), shared().encode()
        swapped = two[:1] + two[33:65] + two[1:33] + two[65:]
        twice = two[:1] + two[1:33] * 2 + two[65:]
        for wrong in b"", data[:-1], data + b"x", b"\x21" + data[1:], b"\x02" + data[1:], swapped, twice:
            self.assertRaises(ConfigError, MultikeyCiphertext.decode, s, wrong)
        raw = batch().encode()
        many = raw[:96] + (1 << 20).to_bytes(4, "little") + raw[100:]
        for wrong in b"", raw[:99], raw[:-1], raw + b"x", b"x" + raw[1:], many:
            self.assertRaises(ConfigError, Batch.decode, s, wrong)


class Requests(unittest.TestCase):
    def test_header(self) -> None:
        c = shared()
        request = Request(group(), [c, c], None, coefficients=None, owners={b"a" * 32: 2, b"b" * 32: 0})
        h = request.header(request.question((0, 1, 2)))
        self.assertEqual((h.form, h.count, h.coefficients), (threshold_pb2.CIPHERTEXT_FORM_MULTIKEY, 2, 0))
        self.assertEqual([(k.key, k.owner) for k in h.multikey], [(b"a" * 32, 2), (b"b" * 32, 0)])
        reader = request.reader
        assert isinstance(reader, MaskedBits)
        self.assertEqual(reader.masked, Masked(small().kind(3), 2))

    def test_refusals(self) -> None:
        c, owners = shared(), {b"a" * 32: 0, b"b" * 32: 1}
        other = lookup_multikey("M11-2-128")
        assert other is not None
        foreign = MultikeyCiphertext(other, b"\x00" * 5)
        for name, list_, options in (
            ("none", [], {"owners": owners}),
            ("of another set", [foreign], {"owners": owners}),
            ("under other keys", [c, batch().ciphertext(0)], {"owners": owners}),
            ("that everybody reads", [readable()], {"owners": owners}),
            ("of nobody", [c], {"owners": {b"a" * 32: 0}}),
            ("without owners", [c], {}),
            ("with flooding", [c], {"owners": owners, "flooding": True}),
            ("with coefficients", [c], {"owners": owners, "coefficients": 1}),
            ("with paper masks", [c], {"owners": owners, "masks": "paper"}),
        ):
            with self.subTest(name), self.assertRaises(ConfigError):
                Request(group(), list_, None, **{"coefficients": None, **options})  # type: ignore[arg-type]

    def test_quorums(self) -> None:
        def choose(key: Key, *empty: tuple[int, ...], owner: int = 0) -> tuple[int, ...]:
            request = Request(key, [batch().ciphertext(0)], None, coefficients=None, owners={batch().key: owner})
            return _choose(key, request, Counter(), set(empty))

        masks = tuple(
            Masks(q, "exact", n, 0.0, 0.1) for q, n in (((0, 1), 5), ((0, 2), 9), ((0, 1, 2), 50), ((1, 2), 99))
        )
        key = group(masks=masks)
        self.assertEqual(choose(key), (0, 2))
        self.assertEqual(choose(key, (0, 2)), (0, 1))
        self.assertEqual(choose(key, (0, 2), (0, 1)), (0, 1, 2))
        self.assertEqual(choose(key, owner=1), (1, 2))
        self.assertEqual(choose(group()), (0, 1))  # it may have answered before
        for key, owner, empty, code in (
            (group(), 0, ((0, 1),), "out_of_stock"),
            (group(up=(1, 2)), 0, (), "unavailable"),
            (group(), 7, (), "wrong_quorum"),
        ):
            with self.assertRaises(LodgeError) as caught:
                choose(key, *empty, owner=owner)
            self.assertEqual(caught.exception.code, code)

    def test_what_is_no_bit(self) -> None:
        with patch.object(Masked, "messages", return_value=[0, 1, 2]), self.assertRaises(BadAnswersError):
            MaskedBits(Masked(small().kind(2), 3)).messages([])

    def test_groups_of_parties(self) -> None:
        def said(**changes: Any) -> tuple[tuple[Key, ...], dict[int, LodgeError]]:
            fields = {"epoch": 3, "state": "active", "params": NAME, "params_hash": small().hash(), "threshold": 1,
                      "holders": [0, 1], "any_quorum": True, **changes}  # fmt: skip
            k = threshold_pb2.ThresholdKey(**fields)
            return merged({p: threshold_pb2.ListKeysResponse(keys=[k]) for p in (0, 1)}, ["p0", "p1"])

        keys, disputes = said()
        self.assertEqual((keys[0].multikey, disputes), (small(), {}))
        list_ = Keys(keys, ())
        self.assertEqual((list_.find_group().epoch, list_.find(3).epoch), (3, 3))
        with self.assertRaises(LodgeError):
            list_.find(0)  # no threshold keys
        self.assertRaises(ConfigError, lambda: keys[0].set)
        for wrong in {"threshold": 2}, {"any_quorum": False}, {"params": "insecure-L8-50"}, {"holders": [0, 0]}:
            self.assertEqual(list(said(**wrong)[1]), [3])


class Answers(unittest.TestCase):
    """Parties with invalid responses."""

    def encrypted(self, change: Callable[[keys_pb2.EncryptResponse], None]) -> Batch:
        answer = keys_pb2.EncryptResponse(batch=batch().encode())
        answer.keys.params, answer.keys.key = NAME, batch().key
        change(answer)
        with client() as c, patch.object(MultikeyClient, "_once", return_value=answer):
            return c.encrypt(0, [1, 0, 1])

    def test_encryption(self) -> None:
        self.assertEqual(self.encrypted(lambda a: None).key, batch().key)
        for name, change in {
            "keys": lambda a: setattr(a.keys, "key", bytes(32)),
            "batch": lambda a: setattr(a, "batch", a.batch[:-1]),
            "set": lambda a: setattr(a.keys, "params", "M11-2-128"),
        }.items():
            with self.subTest(name), self.assertRaises(BadAnswersError):
                self.encrypted(change)
        with self.assertRaises(ConfigError):
            self.encrypted(lambda a: setattr(a.keys, "params", "M99-1"))
        with client() as c:
            for bits in [], [2]:
                self.assertRaises(ConfigError, c.encrypt, 0, bits)
            self.assertRaises(ConfigError, c.encrypt, 7, [1])

    def fetched(self, data: bytes, **changes: Any) -> bytes:
        b = batch()
        job = Evaluation(bytes(16), "done", 0, None, b"", result_digest(b.ciphertexts()),  # type: ignore[arg-type]
                         (("batch", 3, (b.key,)),), None)  # fmt: skip

        def some(party: int, name: bytes, out: bytearray, want: int, waiting: object) -> None:
            out += data[:want].ljust(want, b"x")

        with (
            client() as c,
            patch.object(c, "_context", return_value=(small(), b"")),
            patch.object(c, "_some", some),
        ):
            return c.result(0, replace(job, **changes)).digest

    def test_results(self) -> None:
        b, one = batch(), batch().ciphertext(0)
        self.assertEqual(self.fetched(b.encode()), result_digest(b.ciphertexts()))
        of = {"groups": (("ciphertexts", 1, one.keys),), "result_digest": result_digest([one])}
        self.assertEqual(self.fetched(one.encode(), **of), result_digest([one]))
        raw = b.encode()
        for name, data, changes in (
            ("no batch", b"x" + raw[1:], {}),
            ("of other keys", raw, {"groups": (("batch", 3, (bytes(32),)),)}),
            ("other bits", raw[:-1] + bytes([raw[-1] ^ 1]), {}),
            ("another digest", raw, {"result_digest": bytes(32)}),
            ("too many keys", raw, {"groups": (("ciphertexts", 1, (b"k",) * 33),)}),
        ):
            with self.subTest(name), self.assertRaises(BadAnswersError):
                self.fetched(data, **changes)
        with self.assertRaises(ConfigError):
            self.fetched(raw, state="running")

    def test_how_inputs_are_named(self) -> None:
        b, c = batch(), batch().ciphertext(1)
        named = groups([b, b, c, c, readable(), c])
        self.assertEqual([g.count for g in named], [3, 3, 2, 1, 1])
        self.assertEqual([len(g.keys) for g in named], [1, 1, 1, 0, 1])

    def test_jobs(self) -> None:
        failed = evaluation(
            evaluation_pb2.EvaluationJob(state=evaluation_pb2.EVALUATION_STATE_FAILED, code="retired_key")
        )
        cancelled = evaluation(evaluation_pb2.EvaluationJob(state=evaluation_pb2.EVALUATION_STATE_CANCELLED))
        for j, code in (failed, "retired_key"), (cancelled, "cancelled"):
            assert j.error is not None
            self.assertEqual((j.ended, j.error.code), (True, code))
            with (
                client() as c,
                patch.object(c, "watch", return_value=iter([j])),
                self.assertRaises(LodgeError) as caught,
            ):
                c.wait(0, bytes(16))
            self.assertEqual(caught.exception.code, code)

    def test_keys_of_nobody(self) -> None:
        with client() as c:
            with patch.object(c, "keys", return_value=[]), self.assertRaises(LodgeError) as caught:
                c.decrypt([shared()])
            self.assertEqual(caught.exception.code, "unknown_key")
            away = LodgeError("unavailable", "away")
            with patch.object(c, "keys", side_effect=away), self.assertRaises(LodgeError) as caught:
                c.decrypt([shared()])
            self.assertEqual(caught.exception.code, "unavailable")
            self.assertEqual(c.decrypt([readable()]).bits, [1])

    def test_owners(self) -> None:
        said = [{b"a" * 32, b"b" * 32}, {b"b" * 32, b"c" * 32}]
        owners = owners_of({b"a" * 32, b"c" * 32}, ["p0", "p1"], said.__getitem__)
        self.assertEqual((owners[b"a" * 32], owners[b"c" * 32]), (0, 1))
        with self.assertRaises(LodgeError) as caught:
            owners_of({b"b" * 32}, ["p0", "p1"], said.__getitem__)
        self.assertEqual(caught.exception.code, "conflict")
        self.assertIn("claim the keys 62626262: p0, p1", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
