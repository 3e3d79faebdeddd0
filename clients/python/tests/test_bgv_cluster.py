"""Tests against a cluster of three parties (LODGE_CLUSTER) that has BGV keys, and exact masks of every quorum."""

from __future__ import annotations

import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from test_threshold_cluster import CLUSTER, PATIENCE, config

from lodge_mpc import BadAnswersError, BadKeysError, Config, ConfigError, LodgeError
from lodge_mpc.threshold import (
    BGVCiphertext,
    BGVPublicKey,
    BGVSet,
    Key,
    Provenance,
    Recipient,
    SealedAnswers,
    ThresholdClient,
    read_bgv_public_key,
    read_public_key,
    statement,
)

SET = "insecure-B5-17"

try:
    RECIPIENT = Recipient.generate()
except ConfigError:
    MISSING = True
else:
    MISSING = False


def word(key: Key, ciphertexts: list[BGVCiphertext], circuit: str = "none") -> Provenance:
    """The attester's signature for the decryption of ciphertexts with flooding."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    private = load_pem_private_key((CLUSTER / "clients" / "attester.key").read_bytes(), None)
    signature = private.sign(statement(key, ciphertexts, circuit, flooding=True))
    return Provenance("evaluator", circuit, signature)


class BGVKeys(unittest.TestCase):
    client: ClassVar[ThresholdClient]
    attested: ClassVar[ThresholdClient]  #: sends ciphertexts that the attester has signed
    key: ClassVar[Key]
    params: ClassVar[BGVSet]
    public: ClassVar[BGVPublicKey]

    @classmethod
    def setUpClass(cls) -> None:
        cls.client = ThresholdClient(config(), patience=PATIENCE)
        cls.attested = ThresholdClient(Config.load(CLUSTER / "clients" / "attested.yaml"), patience=PATIENCE)
        listed = cls.client.keys()
        cls.key = next(k for k in listed if k.params == SET)
        assert cls.key.bgv is not None
        cls.params, cls.public = cls.key.bgv, cls.client.bgv_public_key(cls.key)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.attested.close()

    def values(self, seed: int) -> list[int]:
        return [(seed + i * i * seed) % self.params.t for i in range(self.params.n)]

    def test_keys(self) -> None:
        k = self.key
        self.assertEqual((k.threshold, k.holders, k.galois), (1, (0, 1, 2), (5, 63)))
        self.assertEqual([m.quorum for m in k.masks], [(0, 1), (0, 2), (1, 2)])
        self.assertEqual((k.flooders, k.flooding_limit), ((0, 1, 2), dict.fromkeys(range(3), 1 << 19)))
        with self.assertRaises(ConfigError):
            self.client.public_key(k)
        with self.assertRaises(ConfigError):
            self.client.bgv_public_key(self.client.key())
        with self.assertRaises(BadKeysError):
            self.client.bgv_public_key(replace(k, digest=bytes(32)))
        with self.assertRaises(BadKeysError):
            self.client.bgv_public_key(replace(k, galois=(5,)))

    def test_coefficients_under_masks(self) -> None:
        x, y = self.values(3), self.values(5)
        a, b = self.public.encrypt(x)[0], self.public.encrypt(y)[0]
        for quorum in None, (0, 1), (0, 2), (1, 2):
            opened = self.client.decrypt(self.key, [a, b, a + b], coefficients=3, quorum=quorum)
            total = [(v + w) % self.params.t for v, w in zip(x, y, strict=True)]
            self.assertEqual(opened.messages, x[:3] + y[:3] + total[:3])
        slots = self.public.encrypt(x, "slots")
        self.assertEqual(self.client.decrypt(self.key, slots, coefficients=32, encoding="slots").messages, x)

    @unittest.skipIf(MISSING, "cryptography 48 or later is not installed")
    def test_flooding(self) -> None:
        x = self.values(7)
        ciphertexts = self.public.encrypt(x, "slots") + self.public.encrypt(x)
        both = word(self.key, ciphertexts)
        first = self.attested.decrypt(self.key, ciphertexts, flooding=True, quorum=(1, 2), provenance=both)
        self.assertEqual((self.params.slots(first.messages[:32]), first.messages[32:]), (x, x))
        # The ciphertext stays with that quorum, which the client finds.
        before = self.client.key(self.key.epoch).flooded
        one = word(self.key, ciphertexts[:1])
        again = self.attested.decrypt(self.key, ciphertexts[:1], flooding=True, encoding="slots", provenance=one)
        self.assertEqual((again.messages, again.quorum), (x, (1, 2)))
        self.assertEqual(self.client.key(self.key.epoch).flooded, before)
        with self.assertRaises(LodgeError) as caught:
            self.attested.decrypt(self.key, ciphertexts, flooding=True, quorum=(0, 1), provenance=both)
        self.assertEqual(caught.exception.code, "wrong_quorum")
        for client, provenance in (self.attested, None), (self.attested, one), (self.client, both):
            with self.assertRaises(LodgeError) as caught:
                client.decrypt(self.key, ciphertexts, flooding=True, quorum=(1, 2), provenance=provenance)
            self.assertEqual(caught.exception.code, "policy_refused")

    def test_keys_in_files(self) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "keys"
            for evaluation, chunks in (False, 1), (True, self.key.layout.chunks):
                seen: list[int] = []

                def progress(done: int, _of: int, seen: list[int] = seen) -> None:
                    seen.append(done)

                self.client.fetch_keys(self.key, path, evaluation=evaluation, progress=progress)
                self.assertEqual(seen[-1], chunks)
                start, public = read_bgv_public_key(path)
                self.assertEqual((start.galois, start.digest, start.chunks), (self.key.galois, self.key.digest, chunks))
                self.assertTrue((public._b == self.public._b).all())
            with self.assertRaises(ConfigError):
                read_public_key(path)
            whole, part = path.read_bytes(), Path(f"{path}.part")
            part.write_bytes(whole[:-100])
            self.client.fetch_keys(self.key, path)
            self.assertEqual(path.read_bytes(), whole)

    @unittest.skipIf(MISSING, "cryptography 48 or later is not installed")
    def test_recipient(self) -> None:
        x, mine = self.values(9), Recipient.generate()
        for flooding, encoding in (False, "coefficients"), (True, "slots"):
            c = self.public.encrypt(x, encoding)
            coefficients = None if flooding else 4
            client = self.attested if flooding else self.client
            provenance = word(self.key, c) if flooding else None
            answers = client.decrypt_for(
                RECIPIENT.public, self.key, c, coefficients=coefficients, flooding=flooding, encoding=encoding,
                provenance=provenance)  # fmt: skip
            with tempfile.TemporaryDirectory() as directory:
                path = Path(directory) / "answers"
                answers.write(path)
                self.assertEqual(RECIPIENT.open(SealedAnswers.read(path)), x[:coefficients])
            with self.assertRaises(BadAnswersError):
                mine.open(answers)
            if flooding:  # it is the recipient's for ever
                with self.assertRaises(LodgeError) as caught:
                    client.decrypt(
                        self.key, c, flooding=True, quorum=answers.requests[0].question.quorum, provenance=provenance
                    )
                self.assertEqual(caught.exception.code, "already_delivered")

    @unittest.skipIf(MISSING, "cryptography 48 or later is not installed")
    def test_recipient_of_other_keys(self) -> None:
        """LWE and ring ciphertexts can be decrypted for a recipient too."""
        key = self.client.key()
        public = self.client.public_key(key)
        for encoding, messages in ("plain", [3, 1, 4]), ("padded", [0, 5, 15]), ("boolean", [1, 0, 1]):
            with self.subTest(encoding):
                c = public.encrypt(messages, encoding)
                one = self.client.decrypt_for(RECIPIENT.public, key, c, coefficients=3, encoding=encoding)
                self.assertEqual(RECIPIENT.open(one), messages)
                extracted = [c[0].extract(i) for i in range(3)]
                one = self.client.decrypt_for(RECIPIENT.public, key, extracted, encoding=encoding)
                self.assertEqual(RECIPIENT.open(one), messages)
        with self.assertRaises(LodgeError):
            self.client.decrypt_for(bytes(1215), key, c, coefficients=1)


if __name__ == "__main__":
    unittest.main()
