"""Tests of BGV ciphertexts that need no cluster: comparison with the Go client and Lattigo, and malformed data.

``go test ./clients/go/threshold -run TestBGVVectors -update`` updates the vectors in testdata.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import tempfile
import unittest
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from lodge_mpc import BadAnswersError, BadKeysError, Config, ConfigError, LodgeError, Server
from lodge_mpc._proto.lodge.job.v1 import job_pb2
from lodge_mpc._proto.lodge.threshold.v1 import threshold_pb2
from lodge_mpc.threshold import BGVCiphertext, BGVPublicKey, BGVSet, Key, ThresholdClient, statement
from lodge_mpc.threshold.answers import Masked
from lodge_mpc.threshold.arithmetic import pack
from lodge_mpc.threshold.bgv import (
    BGV_ENCODINGS,
    Flooded,
    MaskedCoefficients,
    _numbers,
    _pack,
    _times,
    _Transform,
    lookup_bgv,
)
from lodge_mpc.threshold.ciphertexts import ternary
from lodge_mpc.threshold.download import Start, read_bgv_public_key, read_public_key
from lodge_mpc.threshold.question import Question
from lodge_mpc.threshold.request import Request

VECTORS: dict[str, Any] = json.loads((Path(__file__).parent / "testdata" / "bgv.json").read_text(encoding="utf-8"))


def known(name: str) -> BGVSet:
    found = lookup_bgv(name)
    assert found is not None
    return found


SMALL = known("insecure-B5-17")


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def small_numbers(text: str) -> list[int]:
    return [int(x) for x in np.frombuffer(bytes.fromhex(text), np.int8)]


def vector(s: BGVSet = SMALL) -> dict[str, Any]:
    found: dict[str, Any] = next(v for v in VECTORS["sets"] if v["name"] == s.name)
    return found


def first_chunk(s: BGVSet) -> bytes:
    """Chunk 0 of the vectors' keys; all other chunks are zero."""
    ramp = np.arange(s.n, dtype=np.uint64)
    return _pack(np.stack([_Transform.of(s.log_n, q).forward(ramp) for q in s.q + s.p]), s.q + s.p)


def parts(s: BGVSet, **changes: Any) -> dict[str, Any]:
    """The data from which the vectors' public key is read."""
    v, first = vector(s), first_chunk(s)
    digests = [hashlib.sha256(first).digest()]
    digests += [hashlib.sha256(bytes(v["chunk_size"])).digest()] * (v["chunks"] - 1)
    given = {"layout": s.layout(v["galois"]), "digest": bytes.fromhex(v["digest"])}
    given |= {"header": bytes.fromhex(v["header"]), "chunk_digests": digests, "first": first}
    return {**given, **changes}


def public_key(s: BGVSet, **changes: Any) -> BGVPublicKey:
    return BGVPublicKey.received(s, **parts(s, **changes))


def key(**changes: Any) -> Key:
    v = vector()
    whole = Key(
        epoch=4, state="active", params=SMALL.name, digest=bytes.fromhex(v["digest"]), threshold=1, holders=(0, 1, 2),
        security="passive", created=datetime.now(timezone.utc), key_bytes=0, up=(0, 1, 2), decrypted={}, masks=(),
        params_hash=SMALL.hash(), galois=tuple(v["galois"]))  # fmt: skip
    return replace(whole, **changes)


class Vectors(unittest.TestCase):
    def test_sets(self) -> None:
        for v in VECTORS["sets"]:
            with self.subTest(v["name"]):
                s = known(v["name"])
                self.assertEqual(s.hash().hex(), v["hash"])
                self.assertEqual([s.ciphertext_size(level) for level in range(s.max_level + 1)], v["sizes"])
                self.assertEqual(s.layout(v["galois"]).chunk_sizes, (v["chunk_size"],) * v["chunks"])
                kinds = [s.kind(t) for t in range(1, 6)]
                self.assertEqual([1000 * k.log_eta + k.log_phi for k in kinds], v["kinds"])
                slots = [7 * i * i % s.t for i in range(s.n)]
                coefficients = s.coefficients(slots)
                self.assertEqual(sha256(pack(np.array(coefficients, np.uint64), 32)), v["slots"])
                self.assertEqual(s.slots(coefficients), slots)
        self.assertIsNone(lookup_bgv("T11-4"))

    def test_public_keys(self) -> None:
        for v in VECTORS["sets"]:
            with self.subTest(v["name"]):
                s = known(v["name"])
                public = public_key(s)
                self.assertEqual(sha256(first_chunk(s)), v["chunk"])
                self.assertEqual(sha256(_pack(public._a, s.q + s.p)), v["uniform"])

    def test_encryption(self) -> None:
        """The bytes equal Lattigo's, with the same randomness."""
        for v in VECTORS["sets"]:
            if (e := v.get("encryption")) is None:
                continue
            s = known(v["name"])
            public, drawn = public_key(s), [small_numbers(e[x]) for x in ("u", "e0", "e1")]
            values = [i**3 % s.t for i in range(s.n)]
            for encoding in BGV_ENCODINGS:
                with self.subTest(v["name"], encoding=encoding):
                    message = s.coefficients(values) if encoding == "slots" else values
                    c = public._encrypted(message, *drawn)
                    self.assertEqual(c.encode().hex(), e[encoding])
                    self.assertEqual(BGVCiphertext.decode(s, c.encode()).encode(), c.encode())

    def test_answers(self) -> None:
        for v in VECTORS["answers"]:
            with self.subTest(v["name"]):
                s, raw = known(v["set"]), [bytes.fromhex(a) for a in v["answers"]]
                c = BGVCiphertext.decode(s, bytes.fromhex(v["ciphertext"]))
                masked = MaskedCoefficients([c], Masked(s.kind(v["threshold"]), len(v["messages"])))
                reader = Flooded([c]) if v["flooding"] else masked
                for data in raw:
                    reader.check(data)
                    self.assertLessEqual(len(data), reader.most)
                self.assertEqual(reader.messages(raw), v["messages"])
                if v["flooding"]:
                    wrong = [raw[0][:-1], raw[0] + b"\0", raw[0][:32] + b"\xff" * 8 + raw[0][40:]]
                    self.assertEqual(Flooded([c, c]).messages([a + a for a in raw]), 2 * v["messages"])
                    with self.assertRaises(BadAnswersError):
                        reader.messages([b"x" + raw[0][1:], *raw[1:]])
                else:
                    kind = s.kind(v["threshold"])
                    words = np.array([0, 0, 0, 0, kind.eta - 1], np.uint64)
                    reader.check(raw[0][:19] + pack(words, kind.log_eta))
                    words[4] += np.uint64(1)
                    with self.assertRaisesRegex(BadAnswersError, "too large"):
                        reader.check(raw[0][:19] + pack(words, kind.log_eta))
                    wrong = [raw[0][:-1], b"\x08" + raw[0][1:], raw[0][:19] + b"\xff" * (len(raw[0]) - 19)]
                for data in wrong:
                    with self.assertRaises(BadAnswersError):
                        reader.check(data)

    def test_questions(self) -> None:
        for v in VECTORS["questions"]:
            with self.subTest(v["name"]):
                masks = "flooding" if v["flooding"] else "paper" if v["paper"] else "exact"
                raw: dict[str, Any] = {
                    name: bytes.fromhex(v[name]) for name in ("id", "keys", "ciphertexts", "recipient")
                }
                numbers = {name: v[name] for name in ("epoch", "form", "count", "each", "level")}
                q = Question(**raw, **numbers, quorum=tuple(v["quorum"]), masks=masks)
                self.assertEqual(q.info(2).hex(), v["info"])
                self.assertEqual(q.statement("a vote").hex(), v["statement"])


class Arithmetic(unittest.TestCase):
    def test_products(self) -> None:
        """Products of the largest residues are exact, for any rounding of floats."""
        for s in SMALL, known("insecure-B6-31"), known("insecure-B5-8"):
            for q in (*s.q, *s.p, s.t):
                edge = [0, 1, 2, q // 2, q // 2 + 1, q - 2, q - 1]
                stream = hashlib.shake_256(str(q).encode()).digest(8 * 500)
                values = edge + [int(v) % q for v in np.frombuffer(stream, "<u8")]
                a, b = np.array(values, np.uint64), np.array(values[::-1], np.uint64)
                self.assertEqual(
                    _times(a, b, q).tolist(), [x * y % q for x, y in zip(values, values[::-1], strict=True)]
                )
                self.assertEqual(_times(a, a, q).tolist(), [x * x % q for x in values])

    def test_ternary(self) -> None:
        drawn = ternary(30000, lambda n: hashlib.shake_256(str(n).encode()).digest(n))
        self.assertEqual(len(drawn), 30000)
        for value in -1, 0, 1:
            self.assertLess(abs(drawn.count(value) / 30000 - 1 / 3), 0.02)
        given = iter([b"\xff\xff", b"\b" + bytes(9)])  # 3 is drawn again
        self.assertEqual(ternary(3, lambda _: next(given)), [-1, 1, -1])


class Encryption(unittest.TestCase):
    def keys(self, s: BGVSet) -> tuple[BGVPublicKey, list[int]]:
        """A key pair without errors, whose secret is the second."""
        secret = ternary(s.n, lambda n: hashlib.shake_256(s.name.encode() + bytes([n % 256])).digest(n))
        public = BGVPublicKey(s, bytes(32), np.zeros((len(s.q + s.p), s.n), np.uint64))
        for i, q in enumerate(s.q + s.p):
            z = _Transform.of(s.log_n, q).forward((np.array(secret) % q).astype(np.uint64))
            public._b[i] = (np.uint64(q) - _times(public._a[i], z, q)) % np.uint64(q)
        return public, secret

    def decrypted(self, secret: list[int], c: BGVCiphertext) -> tuple[list[int], int]:
        """The message, and the largest noise."""
        s, rows = c.params, []
        for row0, row1, q in zip(c.c0, c.c1, s.q[: c.level + 1], strict=True):
            t = _Transform.of(s.log_n, q)
            z = t.forward((np.array(secret) % q).astype(np.uint64))
            rows.append((row0 + t.inverse(_times(t.forward(row1), z, q))) % np.uint64(q))
        modulus = math.prod(s.q[: c.level + 1])
        phases = [s.t * v % modulus for v in _numbers(np.stack(rows), s.q[: c.level + 1])]
        centred = [v - modulus if 2 * v > modulus else v for v in phases]
        factor = pow(c.scale, -1, s.t)
        return [v * factor % s.t for v in centred], max(abs(v) // s.t for v in centred)

    def test_round_trip(self) -> None:
        for name in "insecure-B5-8", "insecure-B5-17", "insecure-B6-31", "B13-17":
            with self.subTest(name):
                s = known(name)
                public, secret = self.keys(s)
                values = [i * i % s.t for i in range(s.n + 3)]
                first, second = public.encrypt(values)
                message, noise = self.decrypted(secret, first)
                self.assertEqual((message, self.decrypted(secret, second)[0][:3]), (values[: s.n], values[s.n :]))
                self.assertLess(noise, s.n)
                slots = self.decrypted(secret, public.encrypt(values[: s.n], "slots")[0])[0]
                self.assertEqual(s.slots(slots), values[: s.n])
                total = self.decrypted(secret, first + second)[0]
                self.assertEqual(total[:3], [(x + y) % s.t for x, y in zip(values, values[s.n :], strict=False)])
                self.assertNotEqual(public.encrypt([1])[0].encode(), public.encrypt([1])[0].encode())

    def test_refusals(self) -> None:
        public = public_key(SMALL)
        for values, encoding in ([-1], "coefficients"), ([SMALL.t], "slots"), ([1], "plain"):
            with self.subTest(encoding), self.assertRaises(ConfigError):
                public.encrypt(values, encoding)
        good = public.encrypt([1])[0]
        other = replace(good, scale=2), replace(good, level=1, c0=good.c0[:2], c1=good.c1[:2])
        for c in other:
            with self.assertRaises(ConfigError):
                good + c
        data, large = good.encode(), b"\xff" * 8
        wrong = [b"", data[:-1], data + b"\0", b"\x03" + data[1:], b"\x01" + data[1:]]
        wrong += [data[:1] + bytes(4) + data[5:], data[:1] + b"\1\0\1\0" + data[5:], data[:5] + large + data[13:]]
        for text in wrong:
            with self.assertRaises(ConfigError):
                BGVCiphertext.decode(SMALL, text)
        with self.assertRaises(ConfigError):
            SMALL.slots([1])


class PublicKeys(unittest.TestCase):
    def test_other_keys_are_refused(self) -> None:
        given = parts(SMALL)
        header, digests = given["header"], given["chunk_digests"]
        too_large = b"\xff" * len(given["first"])
        large = [hashlib.sha256(too_large).digest(), *digests[1:]]
        other = known("insecure-B5-8").hash() + header[32:]
        wrong: dict[str, dict[str, Any]] = {
            "another set's digest": {
                "header": other,
                "digest": hashlib.sha256(b"lodge bgv keys 1" + other + b"".join(digests)).digest(),
            },
            "digest": {"digest": bytes(32)},
            "seed": {"header": header[:32] + b"x" + header[33:]},
            "set": {"header": other},
            "automorphisms": {"layout": SMALL.layout([3, 5])},
            "no automorphisms": {"layout": SMALL.layout([])},
            "short header": {"header": header[:-1]},
            "number of chunks": {"chunk_digests": digests[:-1]},
            "chunk": {"first": given["first"][:-1] + b"x"},
            "residue": {
                "first": too_large,
                "chunk_digests": large,
                "digest": hashlib.sha256(b"lodge bgv keys 1" + header + b"".join(large)).digest(),
            },
        }
        for name, changes in wrong.items():
            with self.subTest(name), self.assertRaises(BadKeysError):
                public_key(SMALL, **changes)

    def test_files(self) -> None:
        given, k = parts(SMALL), key()
        start = Start(4, SMALL.name, k.digest, 1, given["header"], given["chunk_digests"], k.galois)
        self.assertEqual(Start.read(io.BytesIO(start.encode())), start)
        self.assertEqual(start.layout, k.layout)
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "keys"
            path.write_bytes(start.encode() + given["first"])
            again, public = read_bgv_public_key(path)
            self.assertEqual(again, start)
            self.assertTrue((public._b == public_key(SMALL)._b).all())
            with self.assertRaises(ConfigError):
                read_public_key(path)
            for old, new in (
                (b'"galois":', b'"Galois":'),
                (b"[5,63]", b"[5,62]"),
                (b"[5,63]", b"[-1,0]"),
                (b"[5,63]", b"[]"),
            ):
                path.write_bytes(start.encode().replace(old, new, 1) + given["first"])
                with self.subTest(new), self.assertRaises(LodgeError):
                    read_bgv_public_key(path)

    def test_sets_of_keys(self) -> None:
        self.assertEqual(key().bgv, SMALL)
        with self.assertRaises(ConfigError):
            _ = key().set
        with self.assertRaises(ConfigError):
            _ = key(params_hash=bytes(32)).bgv


def ciphertext(s: BGVSet = SMALL, level: int = 2) -> BGVCiphertext:
    zeros = np.zeros((level + 1, s.n), np.uint64)
    return BGVCiphertext(s, level, 1, zeros, zeros)


class Asked(unittest.TestCase):
    def test_header(self) -> None:
        cases: list[tuple[dict[str, Any], int]] = [({"coefficients": 3}, 3), ({"flooding": True}, 0)]
        for options, opened in cases:
            request = Request(key(), [ciphertext()] * 2, None, **{"coefficients": None, **options})
            q = request.question([0, 2])
            h = request.header(q)
            self.assertEqual((h.form, h.count, h.coefficients), (threshold_pb2.CIPHERTEXT_FORM_BGV, 2, opened))
            self.assertEqual((h.level, h.flooding, list(h.quorum)), (2, opened == 0, [0, 2]))
            exact = job_pb2.MASK_FORM_EXACT if opened else job_pb2.MASK_FORM_UNSPECIFIED
            self.assertEqual((h.masks, h.request_id, h.ciphertexts_digest), (exact, q.id, request.digest))
            self.assertEqual(b"".join(m.ciphertexts for m in request.messages(h)), ciphertext().encode() * 2)
            flooding = "flooding" in options
            text = statement(
                key(), [ciphertext()] * 2, "a vote", coefficients=options.get("coefficients"), flooding=flooding
            )
            self.assertEqual(text, q.statement("a vote"))
            self.assertEqual(text.startswith(b"lodge flooding"), flooding)

    def test_refusals(self) -> None:
        good, other = ciphertext(), ciphertext(known("insecure-B5-8"), 1)
        for name, k, list_, options in (
            ("nothing", key(), [], {"coefficients": 1}),
            ("another set", key(), [good, other], {"coefficients": 1}),
            ("two levels", key(), [good, ciphertext(level=1)], {"coefficients": 1}),
            ("no coefficients", key(), [good], {}),
            ("too many", key(), [good], {"coefficients": 33}),
            ("none of each", key(), [good], {"coefficients": 0}),
            ("both", key(), [good], {"coefficients": 3, "flooding": True}),
            ("masks", key(), [good], {"coefficients": 1, "masks": "paper"}),
            ("a low level", key(), [ciphertext(level=0)], {"flooding": True}),
            ("encoding", key(), [good], {"coefficients": 1, "encoding": "plain"}),
            ("some slots", key(), [good], {"coefficients": 3, "encoding": "slots"}),
        ):
            with self.subTest(name), self.assertRaises(ConfigError):
                Request(k, list_, **{"coefficients": None, "encoding": None, **options})  # type: ignore[arg-type]
        no_room = key(params="insecure-B5-8", params_hash=known("insecure-B5-8").hash())
        with self.assertRaises(ConfigError):
            Request(no_room, [other], None, coefficients=None, flooding=True)

    def test_quorums_that_refuse(self) -> None:
        """A ciphertext that another quorum has decrypted with flooding is sent to that quorum."""
        c = ciphertext()
        part = bytes(32) + _pack(np.zeros((2, SMALL.n), np.uint64), SMALL.q[:2])
        refusal = LodgeError("wrong_quorum", "by others")
        asked: list[tuple[int, ...]] = []
        servers = [Server("127.0.0.1:1", "x", f"p{i}") for i in range(3)]
        client = ThresholdClient(Config("c", "k", "ca", Server("127.0.0.1:1", "x"), servers))

        class Party:
            def exchange(self, _method: str, requests: Any, _timeout: float | None) -> Any:
                header = next(iter(requests)).header
                asked.append(tuple(header.quorum))
                if tuple(header.quorum) != (0, 2):
                    raise refusal

                class Call:
                    def __iter__(self) -> Any:
                        return iter([threshold_pb2.DecryptResponse(chunk=part)])

                    def cancel(self) -> None:
                        pass

                return Call()

            def errors_of(self, _call: Any) -> Any:
                return tempfile.TemporaryDirectory()

        client._parties = [Party()] * 3  # type: ignore[list-item]
        out = client.decrypt(key(), [c], flooding=True)
        self.assertEqual((out.quorum, out.messages), ((0, 2), [0] * SMALL.n))
        self.assertEqual((asked[0], asked[-1]), ((0, 1), (0, 2)))
        with self.assertRaises(LodgeError) as caught:
            client.decrypt(key(), [c], flooding=True, quorum=(0, 1))
        self.assertEqual(caught.exception.code, "wrong_quorum")
        asked.clear()  # who may not is not asked
        client.decrypt(key(flooding_limit={0: 5, 1: 0, 2: 7}), [c], flooding=True)
        self.assertEqual(asked, [(0, 2)] * 2)
        asked.clear()  # unless too few may
        client.decrypt(key(flooding_limit={0: 5, 1: 0, 2: 0}), [c], flooding=True)
        self.assertEqual(asked[0], (0, 1))
        with self.assertRaises(LodgeError) as caught:
            client.decrypt(key(up=(0,)), [c], flooding=True)
        self.assertEqual(caught.exception.code, "unavailable")


if __name__ == "__main__":
    unittest.main()
