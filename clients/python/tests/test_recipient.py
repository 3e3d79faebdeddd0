"""Tests of sealed answers that need no cluster. Tests that open answers are skipped without cryptography."""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from lodge_mpc import BadAnswersError, ConfigError
from lodge_mpc.threshold import Recipient, SealedAnswers, read_recipient
from lodge_mpc.threshold.question import Question
from lodge_mpc.threshold.recipient import SealedRequest, check_public, sealed_bits
from lodge_mpc.threshold.request import digest

TESTDATA = Path(__file__).parent / "testdata"
VECTORS: dict[str, Any] = json.loads((TESTDATA / "bgv.json").read_text(encoding="utf-8"))
LWE: dict[str, Any] = json.loads((TESTDATA / "threshold.json").read_text(encoding="utf-8"))
V = VECTORS["recipient"]

try:
    from cryptography.hazmat.primitives import hpke
    from cryptography.hazmat.primitives.asymmetric import mlkem, x25519
except ImportError:
    missing = True
else:
    missing = False


def bgv_answers(flooding: bool) -> tuple[SealedAnswers, list[int]]:
    """The unsealed answers of the vectors, and their messages."""
    v = next(v for v in VECTORS["answers"] if v["flooding"] == flooding)
    data = bytes.fromhex(v["ciphertext"])
    q = Question(
        id=bytes(16), epoch=7, keys=bytes(range(32)), quorum=(0, 1, 2), form="bgv", count=1, each=len(v["messages"]),
        ciphertexts=digest(data, 1), masks="flooding" if flooding else "exact", level=data[0],
        recipient=bytes.fromhex(V["public"]))  # fmt: skip
    answers = tuple(bytes.fromhex(a) for a in v["answers"])
    n = len(v["messages"])
    return SealedAnswers(v["set"], 2, "coefficients", n, n, (SealedRequest(q, answers, data),)), v["messages"]


def lwe_answers() -> tuple[SealedAnswers, list[int]]:
    v = LWE["answers"][0]
    q = Question(
        id=bytes(16), epoch=7, keys=bytes(range(32)), quorum=(0, 2), form="lwe", count=20, each=1,
        ciphertexts=bytes(32), recipient=bytes.fromhex(V["public"]))  # fmt: skip
    answers = tuple(bytes.fromhex(a) for a in v["answers"])
    return SealedAnswers(v["set"], 1, "plain", 18, 0, (SealedRequest(q, answers),)), v["messages"][:18]


def bit_answers() -> SealedAnswers:
    """Answers for three bits under a party's keys, and a fourth, public bit; the parts are dummies."""
    q = Question(
        id=bytes(16), epoch=3, keys=bytes(32), quorum=(0, 2), form="multikey", count=3, each=1, ciphertexts=bytes(32),
        recipient=bytes.fromhex(V["public"]), multikey=((b"a" * 32, 2), (b"b" * 32, 0)))  # fmt: skip
    one = SealedRequest(q, (bytes(9), bytes(9)), places=(3, 0, 1))
    return sealed_bits("insecure-M8-32", 1, "??1?", [one])


def sealed(answers: SealedAnswers, public: bytes) -> SealedAnswers:
    """The answers, sealed as parties do."""
    first = mlkem.MLKEM768PublicKey.from_public_bytes(public[:1184])
    second = x25519.X25519PublicKey.from_public_bytes(public[1184:])
    to = hpke.MLKEM768X25519PublicKey(first, second)
    suite = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
    (r,) = answers.requests
    q = r.question
    parts = [suite.encrypt(p, to, q.info(party)) for party, p in zip(q.quorum, r.parts, strict=True)]
    return replace(answers, requests=(replace(r, parts=tuple(parts)),))


class Files(unittest.TestCase):
    def test_answers(self) -> None:
        for answers in bgv_answers(True)[0], bgv_answers(False)[0], lwe_answers()[0], bit_answers():
            with self.subTest(answers.params), tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "answers"
                answers.write(path)
                self.assertEqual(SealedAnswers.read(path), answers)
                with self.assertRaises(ConfigError):
                    SealedAnswers.read(Path(directory) / "nothing")

    def test_of_the_go_client(self) -> None:
        """The Go client's files are read, and written identically."""
        for text in V["files"]:
            self.assertEqual(SealedAnswers.decode(text.encode()).encode(), text.encode())
        bits = (TESTDATA / "multikey_sealed.json").read_bytes()
        self.assertEqual((SealedAnswers.decode(bits), bit_answers().encode()), (bit_answers(), bits))

    def test_malformed(self) -> None:
        answers, _ = bgv_answers(False)
        good = json.loads(answers.encode())

        def changed(at: str, name: str, value: Any) -> Any:
            new = json.loads(answers.encode())
            of = new if at == "file" else new["requests"][0]
            of[name] = value
            return new

        wrong: list[Any] = [[], None, {**good, "more": 1}, {k: v for k, v in good.items() if k != "keys"}]
        wrong += [changed("file", n, v) for n, v in (
            ("format", "x"), ("messages", 0), ("messages", "1"), ("epoch", -1), ("epoch", 1 << 64), ("requests", []),
            ("encoding", "plain"), ("each", 0), ("each", 33), ("keys", "xy"), ("recipient", "*"), ("threshold", 1),
            ("params", "T11-4"), ("requests", [1]), ("messages", True))]  # fmt: skip
        wrong += [changed("request", n, v) for n, v in (
            ("form", "lwe"), ("masks", "paper"), ("quorum", [0, 1]), ("quorum", [0, 1, -1]), ("quorum", [0, 1, True]),
            ("parts", []), ("parts", ["", "", ""]), ("count", 0), ("coefficients", 0), ("level", "1"), ("more", 1),
            ("encoded", "*"), ("id", "x"), ("count", 1 << 40))]  # fmt: skip
        for x in wrong:
            with self.subTest(x), self.assertRaises(ConfigError):
                SealedAnswers.decode(json.dumps(x).encode())
        for data in b"", b"{", b"\xff":
            with self.assertRaises(ConfigError):
                SealedAnswers.decode(data)

    def test_malformed_bits(self) -> None:
        """Every bit is known or at one place, and all owners have answered."""
        good = bit_answers().encode()
        owner = {"key": "61" * 32, "owner": 2}
        wrong: list[tuple[str, Any]] = [
            ("known", "??1"), ("known", "??x?"), ("known", "????"), ("known", ""), ("messages", 5), ("each", 1),
            ("encoding", "bits"), ("params", "T11-4"), ("known", "?11?")]  # fmt: skip
        of_request: list[tuple[str, Any]] = [
            ("places", [3, 0]), ("places", [3, 0, 0]), ("places", [3, 0, 2]), ("places", [3, 0, 4]),
            ("places", [3, 0, -1]), ("places", [3, False, 1]), ("places", "301"), ("owners", []), ("owners", [1]),
            ("owners", [owner, owner]),
            ("owners", [{"key": "61" * 32, "owner": 1}]), ("owners", [{"key": "61" * 31, "owner": 2}]),
            ("owners", [{**owner, "more": 1}]), ("quorum", [2]), ("masks", "paper"), ("form", "lwe"), ("level", 1),
            ("encoded", ""), ("coefficients", 2), ("parts", [""])]  # fmt: skip
        for where, list_ in ("file", wrong), ("request", of_request):
            for name, value in list_:
                x = json.loads(good)
                (x if where == "file" else x["requests"][0])[name] = value
                with self.subTest(name=name, value=value), self.assertRaises(ConfigError):
                    SealedAnswers.decode(json.dumps(x).encode())

    def test_public_keys(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "alice.pub"
            path.write_text(V["public_pem"])
            self.assertEqual(read_recipient(path).hex(), V["public"])
            for text in V["private_pem"], "", V["public_pem"] + "\n", V["public_pem"][:-40], "\xff":
                path.write_text(text, encoding="latin-1")
                with self.subTest(text), self.assertRaises(ConfigError):
                    read_recipient(path)
        for key in b"", bytes(1215), bytes(1217):
            with self.assertRaises(ConfigError):
                check_public(key)

    def test_without_the_extra(self) -> None:
        """Without the package, the error states what to install."""
        with patch.dict(sys.modules, {"cryptography.exceptions": None}), self.assertRaises(ConfigError) as caught:
            Recipient.generate()
        self.assertIn("lodge-mpc[sealed]", caught.exception.next)


@unittest.skipIf(missing, "cryptography 48 or later is not installed")
class Opening(unittest.TestCase):
    def test_vectors(self) -> None:
        """The key pair equals the Go client's, and opens data sealed by Go."""
        to = Recipient(bytes.fromhex(V["private"]))
        self.assertEqual(to.public.hex(), V["public"])
        info, text = bytes.fromhex(V["info"]), bytes.fromhex(V["sealed"])
        self.assertEqual(to._open(text, info).hex(), V["plain"])
        for data, of in (
            (text[:-1], info),
            (text, info + b"x"),
            (b"", info),
            (b"x" + text[1:], info),
            (text[:1100], info),
        ):
            with self.assertRaises(BadAnswersError):
                to._open(data, of)
        with self.assertRaises(BadAnswersError):
            Recipient.generate()._open(text, info)
        for file, messages in zip(V["files"], V["messages"], strict=True):
            self.assertEqual(to.open(SealedAnswers.decode(file.encode())), messages)
        for private in b"", bytes(31), bytes(33):
            with self.assertRaises(ConfigError):
                Recipient(private)
        self.assertNotIn(V["private"], repr(to))

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path, public = Path(directory) / "alice", Path(directory) / "alice.pub"
            to = Recipient(bytes.fromhex(V["private"]))
            to.write(path)
            to.write_public(public)
            self.assertEqual((path.read_text(), public.read_text()), (V["private_pem"], V["public_pem"]))
            self.assertEqual(Recipient.read(path).public, to.public)
            if os.name == "posix":
                self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
            with self.assertRaises(ConfigError):  # what is there is not written over
                to.write(path)
            with self.assertRaises(ConfigError):
                Recipient.read(public)

    def test_answers(self) -> None:
        to = Recipient.generate()
        for answers, messages in bgv_answers(False), bgv_answers(True), lwe_answers():
            for_to = sealed(answers, to.public)
            self.assertEqual(to.open(for_to), messages)
            (r,) = for_to.requests
            some = replace(for_to, messages=3)
            self.assertEqual(to.open(some), messages[:3])
            spoilt = {
                "another request": replace(r, question=replace(r.question, id=b"x" * 16)),
                "other parties": replace(r, question=replace(r.question, quorum=(5, 6, 7)[: len(r.parts)])),
                "another part": replace(r, parts=(r.parts[1], *r.parts[1:])),
            }
            for name, request in spoilt.items():
                with self.subTest(name), self.assertRaises(BadAnswersError):
                    to.open(replace(for_to, requests=(request,)))
            with self.assertRaises(BadAnswersError):
                to.open(replace(for_to, messages=1000))
            with self.assertRaises(BadAnswersError):
                Recipient.generate().open(for_to)
            if r.ciphertexts:
                for data in b"", r.ciphertexts[:-1] + b"x":
                    with self.assertRaises(ConfigError):
                        to.open(replace(for_to, requests=(replace(r, ciphertexts=data),)))

    def test_slots_and_some_of_each(self) -> None:
        answers, messages = bgv_answers(True)
        to = Recipient.generate()
        slots = to.open(replace(sealed(answers, to.public), encoding="slots"))
        self.assertNotEqual(slots, messages)
        self.assertEqual(len(slots), len(messages))
        some = replace(sealed(answers, to.public), each=5, messages=5)
        self.assertEqual(to.open(some), messages[:5])


if __name__ == "__main__":
    unittest.main()
