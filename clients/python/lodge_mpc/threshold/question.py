"""The request to the parties of a quorum, and its digests: engine/protocol/threshold/decrypt/question.go."""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass


def _hash(tag: str, *fields: bytes) -> bytes:
    """SHA-256 of the tag and the fields, each preceded by its length."""
    return hashlib.sha256(_fields(tag.encode(), *fields)).digest()


def _fields(*fields: bytes) -> bytes:
    return b"".join(struct.pack("<Q", len(f)) + f for f in fields)


def _number(v: int) -> bytes:
    return struct.pack("<Q", v)


@dataclass(frozen=True)
class Question:
    """A client's request to a quorum, the same for every party."""

    id: bytes  #: of the request, different for each
    epoch: int
    keys: bytes  #: digest of the public keys
    quorum: tuple[int, ...]
    form: str  #: of the ciphertexts: lwe, ring, bgv or multikey
    count: int  #: of ciphertexts
    each: int  #: messages of each
    ciphertexts: bytes  #: their digest
    masks: str = "exact"  #: or paper, or flooding
    level: int = 0  #: of BGV ciphertexts
    recipient: bytes = b""  #: public key that answers are sealed to, if any
    multikey: tuple[tuple[bytes, int], ...] = ()  #: keys that multi-key ciphertexts are under, and their owners

    @property
    def digest(self) -> bytes:
        """The digest that the parties compare before anything else."""
        ring, paper = bytes([self.form == "ring"]), bytes([self.masks == "paper"])
        what = _hash(
            "lodge threshold question", _number(self.epoch), self.keys, ring, _number(self.count), _number(self.each),
            paper, self.recipient, self.ciphertexts)  # fmt: skip
        if self.form == "bgv":
            flooding = bytes([self.masks == "flooding"])
            what = _hash("lodge threshold question bgv", what, _number(self.level), flooding)
        if self.multikey:
            keys = b"".join(key + struct.pack("<I", owner) for key, owner in self.multikey)
            what = _hash("lodge threshold question multikey", what, keys)
        quorum = struct.pack(f"<{len(self.quorum)}I", *self.quorum)
        return _hash("lodge threshold request", self.id, quorum, what)

    def info(self, party: int) -> bytes:
        """The context to which a party's sealed answer is bound."""
        return _hash("lodge threshold answer", self.digest, _number(party))

    def statement(self, circuit: str) -> bytes:
        """The message that an attester signs on the origin of the ciphertexts, and on how much of each is opened."""
        opened = _number(0 if self.form in ("lwe", "multikey") else self.each)
        tag = b"lodge flooding provenance v1" if self.masks == "flooding" else b"lodge provenance v1"
        return tag + _fields(_number(self.epoch), self.keys, self.ciphertexts, opened, circuit.encode())
