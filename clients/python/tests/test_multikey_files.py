"""Tests of netlists and of files of ciphertexts written by the Go client.

``go test ./clients/go/multikey -run TestVectors -update`` updates the files in testdata.
"""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from lodge_mpc import Config, ConfigError, Server
from lodge_mpc.multikey import (
    Batch,
    InputsFile,
    MultikeyClient,
    Netlist,
    NetlistError,
    read_inputs,
    result_digest,
    write_inputs,
)

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parent / "testdata" / "multikey_files.json").read_text(encoding="utf-8")
)
FILE = bytes.fromhex(VECTORS["file"])
LINE = b"lodge multikey ciphertexts 1\n"


class Netlists(unittest.TestCase):
    def test_vectors(self) -> None:
        for v in VECTORS["netlists"]:
            n = Netlist.parse(v["text"])
            self.assertEqual((list(n.inputs), list(n.outputs), len(n.gates)), (v["inputs"], v["outputs"], v["gates"]))
            self.assertEqual((n.input_bits, n.output_bits), (sum(v["inputs"]), sum(v["outputs"])))
            self.assertEqual(n.digest().hex(), v["digest"])
            self.assertEqual(Netlist.parse(n.text()), n)

    def test_refusals(self) -> None:
        for name, text in VECTORS["refused"].items():
            with self.subTest(name), self.assertRaises(NetlistError):
                Netlist.parse(text)
        with self.assertRaises(NetlistError) as caught:
            Netlist.parse("1 3\n\n1 2\n1 1\n\n2 1 0 1 2 NADA\n")
        self.assertEqual((caught.exception.line, caught.exception.code), (6, "invalid_request"))
        self.assertIn("line 6: unknown gate 'NADA'", caught.exception.what)

    def test_before_sending(self) -> None:
        """A client reports mistakes before it sends any request."""
        servers = [Server("127.0.0.1:1", "x", f"p{i}") for i in range(3)]
        client = MultikeyClient(Config("c", "k", "ca", Server("127.0.0.1:1", "x"), servers), patience=0.1)
        with tempfile.TemporaryDirectory() as directory, client:
            path = Path(directory) / "f"
            path.write_bytes(FILE)
            inputs = read_inputs(path).inputs
            for netlist in "1 3\n1 2\n1 1\n2 1 0 1 2 AND\n", "1 3\n", "":
                with self.assertRaises(ConfigError):
                    client.submit(0, netlist, inputs)
                with self.assertRaises(ConfigError):
                    client.estimate(0, netlist, inputs)


class Files(unittest.TestCase):
    def read(self, data: bytes) -> InputsFile:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "f"
            path.write_bytes(data)
            return read_inputs(path)

    def test_vectors(self) -> None:
        f = self.read(FILE)
        self.assertEqual((f.params.name, f.crs.hex()), ("insecure-M8-32", VECTORS["crs"]))
        self.assertEqual([len(x) for x in f.inputs], [3, 1, 1, 1])
        self.assertIsInstance(f.inputs[0], Batch)
        self.assertEqual(result_digest(f.ciphertexts()).hex(), VECTORS["digest"])
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "f"
            write_inputs(path, f.crs, f.inputs)
            self.assertEqual(path.read_bytes(), FILE)
            self.assertEqual(path.stat().st_mode & 0o777, 0o600)
            with self.assertRaises(FileExistsError):
                write_inputs(path, f.crs, f.inputs)
            with self.assertRaises(ConfigError):
                write_inputs(Path(directory) / "none", f.crs, [])

    def test_refusals(self) -> None:
        key = FILE.split(b'"keys":["', 1)[1][:64]
        for name, data in {
            "nothing": b"",
            "another file": FILE.replace(b"multikey", b"threshold", 1),
            "no description": LINE,
            "an endless one": LINE + b" " * ((1 << 20) + 1),
            "no JSON": LINE + b"x\n",
            "no mapping": LINE + b"[]\n",
            "no members": LINE + b"{}\n",
            "another member": FILE.replace(b'{"set"', b'{"x":1,"set"', 1),
            "a blank": FILE.replace(b'{"set"', b'{ "set"', 1),
            "another set": FILE.replace(b"insecure-M8-32", b"insecure-M8-33", 1),
            "a set that is none": FILE.replace(b'"insecure-M8-32"', b"8", 1),
            "another form": FILE.replace(b'"batch"', b'"bitch"', 1),
            "a form that is not its own": FILE.replace(b'"batch"', b'"ciphertexts"', 1),
            "no ciphertexts": FILE.replace(b'"count":3', b'"count":0', 1),
            "more than there are": FILE.replace(b'"count":3', b'"count":1048576', 1),
            "more than can be": FILE.replace(b'"count":3', b'"count":1048577', 1),
            "half a bit": FILE.replace(b'"count":3', b'"count":2.5', 1),
            "truth": FILE.replace(b'"count":3', b'"count":true', 1),
            "a short name": FILE.replace(key, key[2:], 1),
            "a name in capitals": FILE.replace(key, key.upper(), 1),
            "another name": FILE.replace(key, b"0" * 64, 1),
            "something at the end": FILE + b"x",
            "something that is off": FILE[:-1],
        }.items():
            with self.subTest(name), self.assertRaises(ConfigError):
                self.assertNotEqual(data, FILE)
                self.read(data)


if __name__ == "__main__":
    unittest.main()
