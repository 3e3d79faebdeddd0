"""Tests of threshold keys that need no cluster: comparison with the Go client, and parties with invalid responses.

``go test ./clients/go/threshold -run TestVectors -update`` updates the vectors in testdata.
"""

from __future__ import annotations

import hashlib
import json
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from lodge_mpc import AwayParty, BadAnswersError, BadKeysError, Config, ConfigError, LodgeError, Server
from lodge_mpc._proto.lodge.job.v1 import job_pb2
from lodge_mpc._proto.lodge.threshold.v1 import threshold_pb2
from lodge_mpc.threshold import Decryption, Key, Keys, ThresholdClient, statement
from lodge_mpc.threshold.answers import Answer, RunsDifferError, max_answer, plaintexts
from lodge_mpc.threshold.arithmetic import Transform, _keystream, expand, pack, unpack
from lodge_mpc.threshold.ciphertexts import (
    LWECiphertext,
    PublicKey,
    RingCiphertext,
    decoded,
    differences,
    encode,
    gaussian,
    gaussian_table,
)
from lodge_mpc.threshold.keys import merged
from lodge_mpc.threshold.request import digest
from lodge_mpc.threshold.sets import HEADER_SIZE, MASKS, Kind, ParameterSet, lookup

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "testdata" / "threshold.json").read_text(encoding="utf-8")
)
SMALL = lookup("insecure-L8-50")


def random(seed: str) -> Any:
    """Bytes that are the same in every run."""

    class Stream:
        at = 0

        def __call__(self, count: int) -> bytes:
            self.at += 1
            return hashlib.shake_256(f"{seed} {self.at}".encode()).digest(count)

    return Stream()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def first_chunk(s: ParameterSet) -> bytes:
    """Chunk 0 of the vectors' keys, which are zero except the public key."""
    ramp = pack(np.array(Transform.of(s).forward(range(s.n)), np.uint64), s.width)
    return ramp + bytes(s.chunk_size(0) - len(ramp))


def public_key(vector: dict[str, Any], **changes: Any) -> PublicKey:
    s, v = lookup(vector["name"]), vector["encryption"]
    digests = [hashlib.sha256(bytes(s.chunk_size(i))).digest() for i in range(s.chunks)]
    digests[0] = hashlib.sha256(first_chunk(s)).digest()
    given = {"digest": bytes.fromhex(v["digest"]), "header": bytes.fromhex(v["header"]), "chunk_digests": digests}
    return PublicKey.received(s, **{**given, "first": first_chunk(s), **changes})


def small_numbers(text: str) -> list[int]:
    return [int(x) for x in np.frombuffer(bytes.fromhex(text), np.int8)]


class Vectors(unittest.TestCase):
    def test_sets(self) -> None:
        for v in VECTORS["sets"]:
            with self.subTest(v["name"]):
                s = lookup(v["name"])
                self.assertEqual(s.hash().hex(), v["hash"])
                self.assertEqual([s.chunk_size(i) for i in range(s.chunks)], v["chunk_sizes"])
                self.assertEqual([s.lwe_size, s.ring_size], v["sizes"])
                for form in MASKS:
                    kinds = [Kind.of(s, t, form) for t in range(1, 8)]
                    self.assertEqual([1000 * k.log_eta + k.log_phi for k in kinds], v["kinds"][form])
                for encoding, values in v["encodings"].items():
                    self.assertEqual([encode(s, m, encoding) for m in range(len(values))], values)
                    with self.assertRaises(ConfigError):
                        encode(s, len(values), encoding)

    def test_transforms_and_expansion(self) -> None:
        for v in VECTORS["sets"]:
            with self.subTest(v["name"]):
                s = lookup(v["name"])
                values = Transform.of(s).forward(range(s.n))
                self.assertEqual(sha256(pack(np.array(values, np.uint64), s.width)), v["transform"])
                self.assertEqual(Transform.of(s).inverse(values), list(range(s.n)))
                seed = bytes.fromhex(v["encryption"]["header"])[32:]
                expanded = expand(s.q, s.n, seed, "lwe public key", 0)
                self.assertEqual(sha256(pack(expanded, s.width)), v["expanded"])

    def test_encryption(self) -> None:
        for v in VECTORS["sets"]:
            s, e = lookup(v["name"]), v["encryption"]
            public, (u, e1, e2) = public_key(v), (small_numbers(e[x]) for x in ("u", "e1", "e2"))
            for encoding in "plain", "padded", "boolean":
                with self.subTest(v["name"], encoding=encoding):
                    p = 2 if encoding == "boolean" else s.p
                    c = public._encrypted([encode(s, k % s.p % p, encoding) for k in range(100)], u, e1, e2)
                    self.assertEqual(sha256(c.encode()), e["ring"][encoding])
                    extracted = [c.extract(k) for k in e["coefficients"]]
                    self.assertEqual(sha256(b"".join(x.encode() for x in extracted)), e["lwe"][encoding])
                    again = RingCiphertext.decode(s, c.encode())
                    self.assertEqual(again.encode(), c.encode())
                    self.assertEqual(LWECiphertext.decode(s, extracted[1].encode()).encode(), extracted[1].encode())
                    self.assertEqual((c + c).extract(3).encode(), (c.extract(3) + c.extract(3)).encode())

    def test_answers(self) -> None:
        for v in VECTORS["answers"]:
            with self.subTest(v["name"]):
                s = lookup(v["set"])
                kind, raw = Kind.of(s, v["threshold"], v["masks"]), [bytes.fromhex(a) for a in v["answers"]]
                count = len(v["messages"] or range(5))
                answers = [Answer.decode(kind, count, a) for a in raw]
                self.assertTrue(all(len(a) <= max_answer(kind, count) for a in raw))
                if v["messages"]:
                    self.assertEqual(plaintexts(kind, answers), v["messages"])
                    continue
                with self.assertRaises(RunsDifferError if v["name"] == "another run" else BadAnswersError):
                    plaintexts(kind, answers)

    def test_malformed_answers(self) -> None:
        for v in VECTORS["answers"][:2]:
            kind, raw = Kind.of(SMALL, v["threshold"], "exact"), bytes.fromhex(v["answers"][0])
            several = raw[1] > 1
            wrong = [
                raw[:-1],
                raw + b"\0",
                raw[:2],
                b"\x08" + raw[1:],
                raw[:1] + b"\0\0" + raw[3:],
                raw[:1] + b"\xff" + raw[2:],
            ]
            wrong += [raw[:-1] + bytes([raw[-1] | 0x80])] if len(v["messages"]) * kind.log_eta % 8 else []
            wrong += [raw[: 3 + 48] + b"\x03\0" + raw[3 + 50 :]] if several else []
            for data in wrong:
                with self.subTest(v["name"], data=data), self.assertRaises(BadAnswersError):
                    Answer.decode(kind, len(v["messages"]), data)


class PublicKeys(unittest.TestCase):
    def test_other_keys_are_refused(self) -> None:
        v = next(v for v in VECTORS["sets"] if v["name"] == SMALL.name)
        header, first = bytes.fromhex(v["encryption"]["header"]), first_chunk(SMALL)
        digest = hashlib.sha256(first).digest()
        too_large = b"\xff" * len(first)
        large_digest = hashlib.sha256(too_large).digest()
        wrong: dict[str, dict[str, Any]] = {
            "digest": {"digest": bytes(32)},
            "seed": {"header": header[:-1] + b"x"},
            "set": {"header": lookup("insecure-L8-53").hash() + header[32:]},
            "short header": {"header": header[:-1]},
            "number of chunks": {"chunk_digests": [digest, digest]},
            "chunk": {"first": first[:-1] + b"x"},
            "residue": {
                "first": too_large,
                "chunk_digests": [large_digest],
                "digest": hashlib.sha256(b"lodge lwe keys 1" + header + large_digest).digest(),
            },
        }
        for name, changes in wrong.items():
            with self.subTest(name), self.assertRaises(BadKeysError):
                public_key(v, **changes)
        self.assertEqual(len(header), HEADER_SIZE)

    def test_sets_that_are_not_known(self) -> None:
        with self.assertRaises(ConfigError):
            lookup("L12-50")
        with self.assertRaises(ConfigError):
            Kind.of(SMALL, 1, "exakt")


class Encryption(unittest.TestCase):
    def decrypted(self, z: list[int], c: RingCiphertext) -> list[int]:
        """Decrypt messages with the secret z, computing b - a z with sums of rotations."""
        s, phase = SMALL, [int(v) for v in c.b]
        for i, sign in enumerate(z):
            if sign:
                a = [int(v) for v in c.a]
                rotated = [-v for v in a[s.n - i :]] + a[: s.n - i]
                phase = [(x - sign * y) % s.q for x, y in zip(phase, rotated, strict=True)]
        return [(2 * s.p * x + s.q) // (2 * s.q) % s.p for x in phase]

    def test_round_trip(self) -> None:
        s, t, seed = SMALL, Transform.of(SMALL), bytes(range(32))
        z, e = differences(s.n, random("z")), gaussian(s.variance, s.n, random("e"))
        a = [int(v) for v in expand(s.q, s.n, seed, "lwe public key", 0)]
        secret, errors = t.forward([x % s.q for x in z]), t.forward([x % s.q for x in e])
        b = [(x * y + w) % s.q for x, y, w in zip(a, secret, errors, strict=True)]
        public = PublicKey(s, seed, np.array(b, np.uint64))
        messages = [k * k % 16 for k in range(300)]
        ciphertexts = public.encrypt(messages)
        self.assertEqual(len(ciphertexts), 2)
        opened = self.decrypted(z, ciphertexts[0]) + self.decrypted(z, ciphertexts[1])
        self.assertEqual(opened, messages + [0] * (2 * s.n - 300))
        padded = public.encrypt([5, 9], "padded")[0]
        self.assertEqual(self.decrypted(z, padded + padded)[:2], [5, 9])
        boolean = self.decrypted(z, public.encrypt([1, 0], "boolean")[0])[:2]
        self.assertEqual((boolean, decoded(s, boolean, "boolean")), ([2, 14], [1, 0]))
        with self.assertRaises(ConfigError):
            decoded(s, [3], "boolean")
        self.assertNotEqual(public.encrypt([1])[0].encode(), public.encrypt([1])[0].encode())

    def test_messages_out_of_range(self) -> None:
        public = PublicKey(SMALL, bytes(32), np.zeros(SMALL.n, np.uint64))
        for messages, encoding in ([16], "plain"), ([-1], "plain"), ([16], "padded"), ([2], "boolean"), ([0], "binary"):
            with self.subTest(encoding), self.assertRaises(ConfigError):
                public.encrypt(messages, encoding)

    def test_gaussian(self) -> None:
        table, whole = gaussian_table(12.96), 1 << 192
        self.assertTrue(all(x <= y for x, y in pairwise(table)))
        weights = [np.exp(-(k * k) / (2 * 12.96)) for k in range(len(table))]
        total = 2 * sum(weights) - 1
        for k, x in enumerate(table):
            self.assertAlmostEqual(x / whole, (2 * sum(weights[: k + 1]) - 1) / total, places=12)
        self.assertLess(whole - table[-1], 2)
        drawn = np.array(gaussian(12.96, 20000, random("gaussian")))
        self.assertLess(abs(drawn.mean()), 0.1)
        self.assertLess(abs(drawn.var() - 12.96), 0.5)

        def place(value: int, sign: int) -> list[int]:
            return gaussian(12.96, 1, lambda _: value.to_bytes(24, "little") + bytes([sign]))

        self.assertEqual((place(table[4], 0), place(table[4], 1), place(table[5] - 1, 0)), ([5], [-5], [5]))
        self.assertEqual((place(0, 1), place(whole - 1, 0)), ([0], [len(table)]))

    def test_differences(self) -> None:
        drawn = differences(20000, random("differences"))
        for value, share in (-1, 0.25), (0, 0.5), (1, 0.25):
            self.assertLess(abs(drawn.count(value) / 20000 - share), 0.02)
        self.assertEqual(differences(4, lambda _: bytes([0b11_00_10_01])), [1, -1, 0, 0])


class Packing(unittest.TestCase):
    def test_canonical(self) -> None:
        for width in 1, 7, 8, 50, 53, 64:
            values = np.array([(k * 0x9E3779B97F4A7C15) % (1 << width) for k in range(13)], np.uint64)
            data = pack(values, width)
            number = sum(int(v) << (width * i) for i, v in enumerate(values))
            self.assertEqual(data, number.to_bytes((13 * width + 7) // 8, "little"))
            self.assertTrue((unpack(data, 13, width) == values).all())
        for data in b"\xff\x0f", b"\xff\x01\x00", b"\xff":
            with self.assertRaises(ValueError):
                unpack(data, 9, 1)
        too_large = (b"\xff" * SMALL.lwe_size)[: SMALL.lwe_size - 1] + b"\x03"
        for make, data in (LWECiphertext, too_large), (LWECiphertext, b""), (RingCiphertext, b"\xff" * SMALL.ring_size):
            with self.assertRaises(ConfigError):
                make.decode(SMALL, data)

    def test_aes(self) -> None:
        """The key is from FIPS 197; openssl enc -aes-256-ecb computes the blocks 0 and 256."""
        key = bytes(range(32))
        self.assertEqual(_keystream(key, 0, 1).hex(), "f29000b62a499fd0a9f39a6add2e7780")
        self.assertEqual(_keystream(key, 0, 300)[16 * 256 : 16 * 257], _keystream(key, 256, 1))


def said(party: int, **changes: Any) -> threshold_pb2.ListKeysResponse:
    """A party's description of the keys of epoch 4, with exact masks of two quorums."""
    fields: dict[str, Any] = {
        "epoch": 4,
        "state": "active",
        "params": SMALL.name,
        "params_hash": SMALL.hash(),
        "digest": bytes(range(32)),
        "threshold": 1,
        "holders": [0, 1, 2],
        "number": party,
        "decrypted": party,
    }
    masks = [
        threshold_pb2.MaskStock(quorum=q, form=job_pb2.MASK_FORM_EXACT, free=100 + party - 10 * q[0], noise_bound=0.01)
        for q in ([0, 1], [1, 2])
        if party in q
    ]
    key = threshold_pb2.ThresholdKey(**{**fields, "masks": masks, **changes})
    return threshold_pb2.ListKeysResponse(keys=[key])


NAMES = ["p0", "p1", "p2"]


class WhatPartiesSay(unittest.TestCase):
    def test_merged(self) -> None:
        (k,), _ = merged({1: said(1), 0: said(0), 2: said(2)}, NAMES)
        self.assertEqual((k.epoch, k.state, k.up, k.holders), (4, "active", (0, 1, 2), (0, 1, 2)))
        self.assertEqual((k.decrypted, k.set), ({0: 0, 1: 1, 2: 2}, SMALL))
        self.assertEqual([(m.quorum, m.form, m.free) for m in k.masks], [((0, 1), "exact", 100), ((1, 2), "exact", 91)])
        (k,), _ = merged({1: said(1, state="retired"), 2: said(2)}, NAMES)
        self.assertEqual((k.state, k.up, [m.quorum for m in k.masks]), ("retired", (1, 2), [(1, 2)]))

    def test_disagreement(self) -> None:
        two = said(1)
        two.keys.add().CopyFrom(two.keys[0])
        for name, answer in {
            "digest": said(1, digest=bytes(32)),
            "set": said(1, params="T11-4"),
            "parameters": said(1, params_hash=bytes(32)),
            "holders": said(1, holders=[0, 2, 1]),
            "threshold": said(1, threshold=2, holders=[0, 1, 2, -1, -1]),
            "automorphisms": said(1, galois=[3]),
            "a threshold of 0": said(1, threshold=0),
            "too few holders": said(1, holders=[0, 1]),
            "a holder twice": said(1, holders=[1, 1, 2]),
            "a party that is not there": said(1, holders=[0, 1, 3]),
            "somebody else's keys": said(1, holders=[0, 2, -1]),
            "keys twice": two,
        }.items():
            for others in {}, {0: said(0)}:
                if not others and name in ("digest", "set", "parameters", "holders", "threshold", "automorphisms"):
                    continue
                with self.subTest(name, others=len(others)):
                    keys = Keys((), (), merged({**others, 1: answer}, NAMES)[1])
                    with self.assertRaises(LodgeError) as caught:
                        keys.find(4)
                    self.assertEqual(caught.exception.code, "conflict")

    def test_a_dispute_leaves_other_epochs(self) -> None:
        """A party that lies about one epoch does not affect other epochs."""
        answers = {i: said(i) for i in range(3)}
        answers[1].keys.add().CopyFrom(said(1, epoch=9, threshold=0).keys[0])
        keys, disputes = merged(answers, NAMES)
        self.assertEqual(([k.epoch for k in keys], list(disputes)), ([4], [9]))
        self.assertEqual(Keys(keys, (), disputes).find(0).epoch, 4)

    def test_erased_keys_are_no_dispute(self) -> None:
        """Erased keys with the same epoch number do not affect the present keys."""
        other = said(0, digest=b"x" * 32)
        other.keys[0].state = "retired"
        keys, disputes = merged({0: other, 1: said(1), 2: said(2)}, NAMES)
        self.assertEqual((len(keys), disputes, keys[0].state, keys[0].up), (1, {}, "active", (1, 2)))
        self.assertEqual(merged({0: other}, NAMES)[0][0].state, "retired")

    def test_found(self) -> None:
        newer = said(2, epoch=5)
        keys = Keys(merged({0: said(0), 1: said(1), 2: newer}, NAMES)[0], (AwayParty(7, "p7", "gone"),))
        self.assertEqual(([k.epoch for k in keys], keys.find(4).epoch), ([4, 5], 4))
        for epoch, code in (0, "unavailable"), (5, "unavailable"), (6, "not_found"):
            with self.subTest(epoch), self.assertRaisesRegex(LodgeError, "gone") as caught:
                keys.find(epoch)
            self.assertEqual(caught.exception.code, code)
        other = {i: said(i, params_hash=bytes(32)) for i in range(3)}
        with self.assertRaises(ConfigError):
            Keys(merged(other, NAMES)[0], ()).find(4)


class FakeParty:
    """A party that returns the given answers in order."""

    def __init__(self, party: int, *answers: bytes | LodgeError) -> None:
        self.party, self.answers = party, list(answers)
        self.headers: list[threshold_pb2.DecryptHeader] = []
        self.received = b""

    @contextmanager
    def errors_of(self, _call: Any) -> Iterator[None]:
        yield

    def call(self, _method: str, _request: Any, _timeout: float, *, wait: bool = False) -> Any:
        return said(self.party)

    def exchange(self, _method: str, requests: Iterator[Any], _timeout: float | None) -> Any:
        first, *rest = requests
        self.headers.append(first.header)
        self.received = b"".join(r.ciphertexts for r in rest)
        given = self.answers.pop(0)
        if isinstance(given, LodgeError):
            raise given
        answer = given

        class Call:
            def __iter__(self) -> Iterator[Any]:
                for i in range(0, len(answer), 5):
                    yield threshold_pb2.DecryptResponse(chunk=answer[i : i + 5])

            def cancel(self) -> None:
                pass

        return Call()


class Decrypting(unittest.TestCase):
    def client(self, *parties: FakeParty) -> tuple[ThresholdClient, Key]:
        servers = [Server("127.0.0.1:1", "x", name) for name in NAMES]
        client = ThresholdClient(Config("c", "k", "ca", Server("127.0.0.1:1", "x"), servers), patience=20)
        client._parties = list(parties)  # type: ignore[arg-type]
        return client, client.key()

    def answer(self, word: int, run: bytes = b"r") -> bytes:
        return bytes([7, 1, 0]) + run * 16 + bytes([word])

    def test_asked(self) -> None:
        """All parties of a quorum receive the same request."""
        parties = FakeParty(0, self.answer(100)), FakeParty(1, self.answer(128 + 5 * 8 - 100)), FakeParty(2)
        client, key = self.client(*parties)
        c = LWECiphertext(SMALL, np.arange(SMALL.n, dtype=np.uint64), 5)
        self.assertEqual(client.decrypt(key, [c], quorum=[0, 1]), Decryption([5], (0, 1)))
        h = parties[0].headers[0]
        self.assertEqual(h, parties[1].headers[0])
        self.assertEqual((h.epoch, h.keys_digest, list(h.quorum), h.count), (4, key.digest, [0, 1], 1))
        self.assertEqual((len(h.request_id), h.ciphertexts_digest), (16, digest(c.encode(), 1)))
        self.assertEqual(parties[0].received, c.encode())

    def test_asked_again(self) -> None:
        """Differing runs, malformed answers and spent masks lead to another attempt; a policy error does not."""
        good, c = (self.answer(0), self.answer(24)), LWECiphertext(SMALL, np.zeros(SMALL.n, np.uint64), 5)
        bad_answers: dict[str, bytes | LodgeError] = {
            "runs": self.answer(0, b"s"),
            "malformed": b"x",
            "too long": bytes(1000),
            "spent": LodgeError("mask_spent", "they are spent"),
        }
        for name, bad in bad_answers.items():
            with self.subTest(name):
                zero, one = FakeParty(0, bad, good[0]), FakeParty(1, good[1], good[1])
                client, key = self.client(zero, one, FakeParty(2))
                self.assertEqual(client.decrypt(key, [c], quorum=[0, 1]).messages, [3])
                self.assertNotEqual(zero.headers[0].request_id, zero.headers[1].request_id)
        for code, answer in ("policy_refused", LodgeError("policy_refused", "no")), ("bad_answers", self.answer(1)):
            with self.subTest(code), self.assertRaises(LodgeError) as caught:
                client, key = self.client(FakeParty(0, answer), FakeParty(1, good[1]), FakeParty(2))
                client.decrypt(key, [c], quorum=[0, 1])
            self.assertEqual(caught.exception.code, code)

    def test_another_quorum(self) -> None:
        gone = LodgeError("unavailable", "gone")
        c = LWECiphertext(SMALL, np.zeros(SMALL.n, np.uint64), 5)
        one = FakeParty(1, self.answer(0), self.answer(0))
        client, key = self.client(FakeParty(0, gone), one, FakeParty(2, self.answer(24)))
        self.assertEqual(client.decrypt(key, [c]), Decryption([3], (1, 2)))
        self.assertEqual([list(h.quorum) for h in one.headers], [[0, 1], [1, 2]])

    def test_masks_that_run_out(self) -> None:
        empty = LodgeError("out_of_stock", "none are left")
        c = LWECiphertext(SMALL, np.zeros(SMALL.n, np.uint64), 5)
        good = self.answer(0), self.answer(0)
        client, key = self.client(FakeParty(0, empty), FakeParty(1, *good), FakeParty(2, self.answer(24)))
        self.assertEqual(client.decrypt(key, [c]).quorum, (1, 2))
        client, key = self.client(FakeParty(0, empty, empty), FakeParty(1, *good), FakeParty(2, empty, empty))
        with self.assertRaises(LodgeError) as caught:
            client.decrypt(key, [c])
        self.assertEqual(caught.exception.code, "out_of_stock")
        # A quorum that has answered before may answer again without masks.
        twice = self.answer(24), self.answer(24)
        client, key = self.client(FakeParty(0, empty, empty), FakeParty(1, *good), FakeParty(2, *twice))
        without = replace(key, masks=(), decrypted={1: 7})
        with patch.object(client, "key", return_value=without):
            self.assertEqual(client.decrypt(without, [c]).quorum, (1, 2))
        with self.assertRaises(LodgeError) as caught:
            client.decrypt(replace(key, masks=(), decrypted={1: 0}), [c])
        self.assertEqual(caught.exception.code, "out_of_stock")
        client, key = self.client(FakeParty(0, empty), FakeParty(1, self.answer(0)), FakeParty(2))
        with self.assertRaises(LodgeError) as caught:
            client.decrypt(key, [c], quorum=(0, 1))
        self.assertEqual((caught.exception.code, caught.exception.what), ("out_of_stock", "party p0: none are left"))

    def test_digest(self) -> None:
        v = VECTORS["digest"]
        self.assertEqual(digest(bytes.fromhex(v["ciphertexts"]), v["count"]).hex(), v["digest"])

    def test_statement(self) -> None:
        v = VECTORS["statement"]
        (k,), _ = merged({0: said(0, epoch=v["epoch"], digest=bytes.fromhex(v["keys"]))}, NAMES)
        c = LWECiphertext(SMALL, np.zeros(SMALL.n, np.uint64), 5)
        want = bytes.fromhex(v["statement"])
        for encoding, data in ("plain", c), ("padded", c + c):
            named = digest(data.encode(), 1)
            self.assertEqual(
                statement(k, [c], v["circuit"], encoding=encoding),
                want.replace(bytes.fromhex(v["ciphertexts"]), named),
            )
        ring = RingCiphertext(SMALL, np.zeros(SMALL.n, np.uint64), np.zeros(SMALL.n, np.uint64))
        self.assertEqual(
            statement(k, [ring], v["circuit"], coefficients=3),
            bytes.fromhex(v["of_3_of_each"]).replace(bytes.fromhex(v["ciphertexts"]), digest(ring.encode(), 1)),
        )
        with self.assertRaises(ConfigError):
            statement(k, [ring], v["circuit"])


if __name__ == "__main__":
    unittest.main()
