"""Tests against a cluster of three parties (LODGE_CLUSTER): two have keys, all are in a group with masks."""

from __future__ import annotations

import os
import secrets
import tempfile
import unittest
from pathlib import Path
from typing import ClassVar

from lodge_mpc import BadAnswersError, ConfigError, LodgeError
from lodge_mpc.multikey import Batch, Evaluation, MultikeyClient, result_digest, write_inputs
from lodge_mpc.threshold import Recipient, SealedAnswers

CLUSTER = Path(os.environ.get("LODGE_CLUSTER", "lodge-dev"))
PATIENCE = 20.0  # seconds, for machines that do much else
NETLIST = """5 9
2 2 2
1 5

2 1 0 2 4 XOR
2 1 1 3 5 AND
1 1 0 6 EQW
1 1 1 7 EQ
1 1 3 8 INV
"""  # two bits of each of two parties; a sum, a product, an input, a constant, and another bit


class Multikey(unittest.TestCase):
    client: ClassVar[MultikeyClient]
    inputs: ClassVar[list[Batch]]

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = MultikeyClient.from_config(CLUSTER / "clients" / "app.yaml", patience=PATIENCE)
        cls.inputs = [cls.client.encrypt(0, [1, 1]), cls.client.encrypt(1, [0, 1])]

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()

    def refused(self, code: str, *args: object) -> None:
        call, *rest = args
        with self.assertRaises(LodgeError) as caught:
            call(*rest)  # type: ignore[operator]
        self.assertEqual(caught.exception.code, code)

    def test_keys(self) -> None:
        own = [self.client.keys(p)[0] for p in (0, 1)]
        self.assertEqual([k.key for k in own], [b.key for b in self.inputs])
        self.assertTrue(all(k.state == "active" and k.version == 1 and k.pinned for k in own))
        self.assertEqual([k.key for k in self.client.published(1)], [k.key for k in own])

    def test_evaluation(self) -> None:
        cost = self.client.estimate(0, NETLIST, self.inputs)
        self.assertEqual((cost.gates, cost.bootstraps, cost.rotations), (2, 2, 4))
        seen: list[Evaluation] = []
        result = self.client.evaluate(0, NETLIST, self.inputs, progress=seen.append)
        self.assertEqual((seen[-1].state, seen[-1].done, len(result.ciphertexts)), ("done", 2, 5))
        self.assertEqual(result_digest(result.ciphertexts), result.digest)
        self.assertEqual([len(c.keys) for c in result.ciphertexts], [2, 2, 1, 0, 1])
        opened = self.client.decrypt(result.ciphertexts)
        self.assertEqual(opened.bits, [1, 1, 1, 1, 0])
        self.assertIn((0, 1), opened.quorums)
        # Results are inputs, beside batches; what was answered comes again.
        again = self.client.evaluate(1, NETLIST, [*result.ciphertexts[:2], self.inputs[1]])
        self.assertEqual(self.client.decrypt(again.ciphertexts).bits, [1, 1, 1, 1, 0])
        self.assertEqual(self.client.decrypt(result.ciphertexts).bits, opened.bits)
        # The same job, and its result, are there again.
        job = next(j for j in self.client.jobs(0) if j.request_id == result.evaluation.request_id)
        self.assertEqual(self.client.job(0, job.request_id).result_digest, result.digest)
        self.assertEqual(self.client.result(0, job).digest, result.digest)
        self.assertEqual(self.client.cancel(0, job.request_id).state, "done")

    def test_files(self) -> None:
        """What is written is read again, if it is of the party's reference string."""
        with tempfile.TemporaryDirectory() as directory:
            path, other = Path(directory) / "inputs", Path(directory) / "other"
            self.client.write(0, path, self.inputs)
            again = self.client.read(0, path)
            self.assertEqual([x.encode() for x in again], [x.encode() for x in self.inputs])
            self.assertEqual(self.client.estimate(0, NETLIST, again).gates, 2)
            write_inputs(other, bytes(32), self.inputs)
            self.assertRaises(ConfigError, self.client.read, 0, other)

    def test_fetch_keys(self) -> None:
        """Downloads keys of both owners, by record and by name; keys already in the file are not downloaded again."""
        seen = list[int]()
        for record in self.client.published(0):
            with tempfile.TemporaryDirectory() as directory:
                path, part = Path(directory) / "keys", Path(directory) / "again.part"
                self.client.fetch_keys(record, path, progress=lambda have, of: seen.append(of - have))
                self.assertEqual(seen[-1], 0)
                self.client.fetch_keys(record.key, path, progress=lambda have, of: self.fail("fetched twice"))
                part.write_bytes(path.read_bytes()[:-1])  # the last chunk is missing
                seen.clear()
                self.client.fetch_keys(record.key, part.with_suffix(""), progress=lambda have, of: seen.append(have))
                self.assertEqual(len(seen), 1)
                self.assertEqual(part.with_suffix("").read_bytes(), path.read_bytes())
                self.refused("unknown_key", self.client.fetch_keys, bytes(32), Path(directory) / "nothing")

    def test_sealed(self) -> None:
        """The recipient reads bits under three sets of keys and public ones, also from a file."""
        try:
            to = Recipient.generate()
        except ConfigError as error:
            self.skipTest(error.what)
        fresh = [self.client.encrypt(0, [1, 1]), self.client.encrypt(1, [0, 1])]  # decrypted for nobody else
        list_ = self.client.evaluate(0, NETLIST, fresh).ciphertexts
        opened = self.client.decrypt(list_, recipient=to.public)
        assert opened.sealed is not None
        self.assertEqual((opened.bits, opened.sealed.known, len(opened.quorums)), ([], "???1?", 3))
        with tempfile.TemporaryDirectory() as directory:
            opened.sealed.write(Path(directory) / "sealed")
            self.assertEqual(to.open(SealedAnswers.read(Path(directory) / "sealed")), [1, 1, 1, 1, 0])
        with self.assertRaises(BadAnswersError):
            Recipient.generate().open(opened.sealed)
        self.refused("already_delivered", self.client.decrypt, list_)  # to the recipient

    def test_own_bits(self) -> None:
        bits = [1, 0, 0, 1, 1, 1, 0, 1, 1]
        batch = self.client.encrypt(1, bits)
        self.assertEqual(self.client.decrypt(batch.ciphertexts()).bits, bits)
        self.assertEqual(self.client.decrypt(batch.ciphertexts()[:2], quorum=(0, 1)).quorums, [(0, 1)])

    def test_submission_is_repeated(self) -> None:
        name = secrets.token_bytes(16)
        first = self.client.submit(0, NETLIST, self.inputs, request_id=name)
        self.assertEqual(self.client.submit(0, NETLIST, self.inputs, request_id=name).request_id, first.request_id)
        self.assertEqual(self.client.wait(0, name).state, "done")
        self.refused("conflict", lambda: self.client.submit(0, NETLIST, self.inputs[::-1], request_id=name))

    def test_refusals(self) -> None:
        c = self.client
        self.refused("invalid_request", c.estimate, 0, "no netlist", self.inputs)
        self.refused("invalid_request", c.submit, 0, NETLIST, self.inputs[:1])
        self.refused("not_found", c.job, 0, bytes(16))
        self.refused("not_found", c.encrypt, 2, [1])  # which has no keys
        self.assertRaises(ConfigError, c.encrypt, 3, [1])
        self.refused("wrong_quorum", lambda: c.decrypt(self.inputs[0].ciphertexts(), quorum=(1, 2)))
        self.refused("not_found", lambda: c.decrypt(self.inputs[0].ciphertexts(), epoch=1 << 40))


if __name__ == "__main__":
    unittest.main()
