"""Answers that parties seal to a recipient's public key: HPKE (RFC 9180) with ML-KEM-768 and X25519.

Requesting them needs no further package. Generating key pairs and opening answers needs the package ``cryptography``,
version 48 or later: ``pip install lodge-mpc[sealed]``.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BadAnswersError, ConfigError
from .answers import Masked, Reader
from .bgv import BGV_ENCODINGS, BGVCiphertext, Flooded, MaskedCoefficients, lookup_bgv
from .ciphertexts import ENCODINGS
from .multikey import MaskedBits, lookup_multikey
from .question import Question
from .request import digest, values
from .sets import Kind, lookup

_SEED_SIZE = 32  # of a private key
_ML_KEM, _X25519 = 1184, 32  # bytes of the parts of a public key
_PRIVATE, _PUBLIC = "LODGE RECIPIENT PRIVATE KEY", "LODGE RECIPIENT PUBLIC KEY"
_FORMAT = "lodge threshold answers 1"
_MAX_FILE = 256 << 20


@dataclass(frozen=True)
class SealedRequest:
    """A request to a quorum, and the sealed answers of its parties."""

    question: Question
    parts: tuple[bytes, ...]
    ciphertexts: bytes = b""  #: encodings of BGV ciphertexts, which are needed to turn answers into messages
    places: tuple[int, ...] = ()  #: of bits under several parties' keys, among all bits


@dataclass(frozen=True)
class SealedAnswers:
    """The quorums' answers for a recipient, in a form that all clients read."""

    params: str
    threshold: int
    encoding: str
    messages: int  #: in use
    each: int  #: messages in use of each BGV ciphertext
    requests: tuple[SealedRequest, ...]
    known: str = ""  #: bits under several parties' keys: 0 and 1 of those that everybody can read, ? of the others

    def encode(self) -> bytes:
        """Return the file as JSON, in the format of ``lodge decrypt --recipient``."""
        q = self.requests[0].question
        out: dict[str, Any] = {
            "format": _FORMAT,
            "epoch": q.epoch,
            "params": self.params,
            "keys": q.keys.hex(),
            "threshold": self.threshold,
            "encoding": self.encoding,
            "messages": self.messages,
            "recipient": _base64(q.recipient),
        }
        if q.form == "bgv":
            out["each"] = self.each
        if self.known:
            out["known"] = self.known
        out["requests"] = [_record(r) for r in self.requests]
        return json.dumps(out, indent=2).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes) -> SealedAnswers:
        """Read the output of encode or of the Go client."""
        try:
            return _answers(json.loads(data))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise ConfigError(f"not sealed answers: {error}", "`lodge decrypt --recipient` writes them") from error

    def write(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_bytes(self.encode())

    @classmethod
    def read(cls, path: str | Path) -> SealedAnswers:
        """Read a file."""
        try:
            with Path(path).open("rb") as file:
                data = file.read(_MAX_FILE + 1)
        except OSError as error:
            raise ConfigError(f"not sealed answers: {error}") from error
        if len(data) > _MAX_FILE:
            raise ConfigError(f"{path} has more than {_MAX_FILE} bytes")
        return cls.decode(data)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _record(r: SealedRequest) -> dict[str, Any]:
    q = r.question
    out: dict[str, Any] = {
        "id": q.id.hex(),
        "quorum": list(q.quorum),
        "form": q.form,
        "count": q.count,
        "coefficients": q.each,
        "masks": q.masks,
        "ciphertexts": q.ciphertexts.hex(),
    }
    if q.level:
        out["level"] = q.level
    if r.ciphertexts:
        out["encoded"] = _base64(r.ciphertexts)
    if q.form == "multikey":
        out["owners"] = [{"key": key.hex(), "owner": owner} for key, owner in q.multikey]
        out["places"] = list(r.places)
    return {**out, "parts": [_base64(p) for p in r.parts]}


def _fields(data: Any, known: Mapping[str, type], optional: Mapping[str, type]) -> dict[str, Any]:
    """Return an object that must have exactly these fields."""
    both = {**known, **optional}
    if not isinstance(data, dict) or not known.keys() <= data.keys() <= both.keys():
        raise ValueError("the fields are not those of such files")
    for name, value in data.items():
        if type(value) is not both[name] or (isinstance(value, int) and not 0 <= value < 1 << 63):
            raise ValueError(f"{name} is {value!r:.80}")
    return data


def _answers(data: Any) -> SealedAnswers:
    numbers, texts = ("epoch", "threshold", "messages"), ("format", "params", "keys", "encoding", "recipient")
    known = {**dict.fromkeys(numbers, int), **dict.fromkeys(texts, str), "requests": list}
    r = _fields(data, known, {"each": int, "known": str})
    s = lookup_bgv(r["params"])
    encodings, each = (ENCODINGS, 0) if s is None else (BGV_ENCODINGS, r.get("each", 0))
    if r["format"] != _FORMAT or r["messages"] < 1 or not r["requests"] or r["encoding"] not in encodings:
        raise ValueError(f"format {r['format']!r:.80}, {r['messages']} messages, encoding {r['encoding']!r:.80}")
    if s is not None and not 1 <= each <= s.n:
        raise ValueError(f"{each} values of each ciphertext")
    requests = tuple(_request(r, x) for x in r["requests"])
    if lookup_multikey(r["params"]) is not None:
        if r["messages"] != len(r.get("known", "")) or r["encoding"] != "plain" or "each" in r:
            raise ValueError(f"{r['messages']} bits in the encoding {r['encoding']!r:.80}")
        return sealed_bits(r["params"], r["threshold"], r["known"], requests)
    if "known" in r:
        raise ValueError(f"known bits of set {r['params']!r:.80}")
    return SealedAnswers(r["params"], r["threshold"], r["encoding"], r["messages"], each, requests)


def sealed_bits(params: str, threshold: int, known: str, requests: Sequence[SealedRequest]) -> SealedAnswers:
    """Read answers for bits under several parties' keys. Each bit is known or at one place of one request.

    Raises:
        ValueError: the answers are invalid.
    """
    if not set(known) <= set("01?"):
        raise ValueError(f"known bits {known!r:.80}")
    if any(r.question.count != len(r.places) for r in requests):
        raise ValueError("the number of places is not that of the bits")
    missing = [i for i, bit in enumerate(known) if bit == "?"]
    if sorted(at for r in requests for at in r.places) != missing:
        raise ValueError("a bit is in no answer, or in several")
    return SealedAnswers(params, threshold, "plain", len(known), 0, tuple(requests), known)


def _owners(data: Sequence[Any], quorum: Sequence[int]) -> tuple[tuple[bytes, int], ...]:
    """Read the keys, which must be in ascending order, with owners that have answered."""
    records = [_fields(x, {"key": str, "owner": int}, {}) for x in data]
    out = tuple((bytes.fromhex(x["key"]), int(x["owner"])) for x in records)
    names = [key for key, _ in out]
    if not out or names != sorted(set(names)) or any(len(k) != 32 or owner not in quorum for k, owner in out):
        raise ValueError("an owner has not answered, or the keys are not in ascending order")
    return out


def _request(of: Mapping[str, Any], data: Any) -> SealedRequest:
    lists, texts = ("quorum", "parts"), ("id", "form", "masks", "ciphertexts")
    known = {**dict.fromkeys(lists, list), **dict.fromkeys(texts, str), "count": int, "coefficients": int}
    bgv, multikey = lookup_bgv(of["params"]) is not None, lookup_multikey(of["params"]) is not None
    optional = {"owners": list, "places": list} if multikey else {"level": int, "encoded": str}
    x = _fields(data, known, optional)
    if x["form"] not in (("bgv",) if bgv else ("multikey",) if multikey else ("lwe", "ring")):
        raise ValueError(f"form {x['form']!r:.80} of set {of['params']!r:.80}")
    if x["masks"] not in (("exact", "flooding") if bgv else ("exact",) if multikey else ("exact", "paper")):
        raise ValueError(f"masks {x['masks']!r:.80}")
    right = len(x["quorum"]) >= 2 if multikey else len(x["quorum"]) == of["threshold"] + 1
    if not right or len(x["parts"]) != len(x["quorum"]):
        raise ValueError(f"{len(x['parts'])} answers of a quorum of {len(x['quorum'])}")
    if not all(type(p) is int and 0 <= p < 1 << 32 for p in x["quorum"]) or min(x["count"], x["coefficients"]) < 1:
        raise ValueError(f"{x['count']} ciphertexts of {x['coefficients']} messages, quorum {x['quorum']!r:.80}")
    parts = tuple(base64.b64decode(p, validate=True) for p in x["parts"])
    if any(x["count"] * x["coefficients"] > 8 * len(p) for p in parts):  # a message has at least one bit
        raise ValueError("answers that are too short")
    places = tuple(x.get("places", ()))
    if any(type(at) is not int for at in places) or (multikey and x["coefficients"] != 1):
        raise ValueError(f"{x['coefficients']} messages of each, at places {places!r:.80}")
    q = Question(
        id=bytes.fromhex(x["id"]),
        epoch=of["epoch"],
        keys=bytes.fromhex(of["keys"]),
        quorum=tuple(x["quorum"]),
        form=x["form"],
        count=x["count"],
        each=x["coefficients"],
        ciphertexts=bytes.fromhex(x["ciphertexts"]),
        masks=x["masks"],
        level=x.get("level", 0),
        recipient=base64.b64decode(of["recipient"], validate=True),
        multikey=_owners(x.get("owners", ()), x["quorum"]) if multikey else (),
    )
    return SealedRequest(q, parts, base64.b64decode(x.get("encoded", ""), validate=True), places)


def _reader(answers: SealedAnswers, r: SealedRequest) -> Reader:
    """Return the reader for opened answers."""
    q, s = r.question, lookup_bgv(answers.params)
    if (m := lookup_multikey(answers.params)) is not None:
        return MaskedBits(Masked(m.kind(len(q.quorum)), q.count))
    if s is None:
        return Masked(Kind.of(lookup(answers.params), answers.threshold, q.masks), q.count * q.each)
    flooding = q.masks == "flooding"
    if q.level > s.max_level or q.each > s.n or (flooding and (q.each != s.n or not 0 <= s.flood_level <= q.level)):
        raise ConfigError(f"ciphertexts of level {q.level}, of which {q.each} coefficients are opened")
    size = s.ciphertext_size(q.level)
    if len(r.ciphertexts) != q.count * size or digest(r.ciphertexts, q.count) != q.ciphertexts:
        raise ConfigError("the answers come without their ciphertexts")
    list_ = [BGVCiphertext.decode(s, r.ciphertexts[at : at + size]) for at in range(0, len(r.ciphertexts), size)]
    if any(c.level != q.level for c in list_):
        raise ConfigError(f"ciphertexts that are not all of level {q.level}")
    if flooding:
        return Flooded(list_)
    return MaskedCoefficients(list_, Masked(s.kind(answers.threshold), q.count * q.each))


def check_public(key: bytes) -> None:
    """Raise an error unless key has the form of a recipient's public key."""
    if len(key) != _ML_KEM + _X25519:
        raise ConfigError(f"{len(key)} bytes are not a recipient's public key", f"it has {_ML_KEM + _X25519}")


class Recipient:
    """A key pair. Parties seal answers to its public key, so that no client or party in between sees a plaintext.

    Args:
        private: 32 bytes, as returned by ``private``. Anyone who has them can read all answers.

    Raises:
        ConfigError: the package ``cryptography`` is missing or too old.
    """

    def __init__(self, private: bytes) -> None:
        if len(private) != _SEED_SIZE:
            raise ConfigError(f"{len(private)} bytes are not a recipient's private key", f"it has {_SEED_SIZE}")
        self.private = private
        self._open, self.public = _key_pair(private)

    def __repr__(self) -> str:
        return f"Recipient(public={self.public[-4:].hex()}...)"

    @classmethod
    def generate(cls) -> Recipient:
        """Generate a key pair."""
        return cls(secrets.token_bytes(_SEED_SIZE))

    @classmethod
    def read(cls, path: str | Path) -> Recipient:
        """Read a private key in the format of ``lodge decrypt recipient``."""
        return cls(_read_pem(path, _PRIVATE))

    def write(self, path: str | Path) -> None:
        """Write the private key to a new file that only its owner can read."""
        file = Path(path)
        try:
            file.touch(mode=0o600, exist_ok=False)
            file.write_text(_pem(_PRIVATE, self.private), encoding="ascii")
        except OSError as error:
            raise ConfigError(f"the private key cannot be written: {error}") from error

    def write_public(self, path: str | Path) -> None:
        """Write the public key, for clients that request decryption for this recipient."""
        Path(path).write_text(_pem(_PUBLIC, self.public), encoding="ascii")

    def open(self, answers: SealedAnswers) -> list[int]:
        """Return the messages of answers, in the encoding of their ciphertexts.

        Raises:
            BadAnswersError: the answers are sealed to another recipient, belong to another request, or do not add up
                to valid messages.
        """
        out: list[int] = []
        bits = [int(bit == "1") for bit in answers.known]
        for r in answers.requests:
            q, reader = r.question, _reader(answers, r)
            parts = [self._open(p, q.info(party)) for party, p in zip(q.quorum, r.parts, strict=True)]
            opened, each = reader.messages(parts), q.each
            if bits:
                for at, bit in zip(r.places, opened, strict=True):
                    bits[at] = bit
                continue
            if q.form == "bgv":
                opened, each = values(answers.params, answers.encoding, each, opened), min(answers.each, each)
            out += [v for at in range(0, len(opened), q.each) for v in opened[at : at + each]]
        if bits:
            return bits
        if len(out) < answers.messages:
            raise BadAnswersError(f"{len(out)} messages, but the file states {answers.messages}")
        used, bgv = out[: answers.messages], answers.encoding in BGV_ENCODINGS
        return used if bgv else values(answers.params, answers.encoding, 1, used)


def read_recipient(path: str | Path) -> bytes:
    """Read a recipient's public key from a file in the format of ``lodge decrypt recipient``."""
    public = _read_pem(path, _PUBLIC)
    check_public(public)
    return public


Opener = Callable[[bytes, bytes], bytes]


def _key_pair(private: bytes) -> tuple[Opener, bytes]:
    """Return the function that opens answers, and the public key: MLKEM768-X25519 expands its keys from a seed
    (X-Wing).
    """
    try:
        from cryptography.exceptions import InvalidTag, UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives import hpke  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import mlkem, x25519  # noqa: PLC0415
    except ImportError as error:
        raise ConfigError(
            f"sealed answers need the package cryptography, version 48 or later: {error}",
            "pip install 'lodge-mpc[sealed]', or open them with `lodge decrypt open`",
        ) from error
    seed = hashlib.shake_256(private).digest(96)
    try:
        first = mlkem.MLKEM768PrivateKey.from_seed_bytes(seed[:64])
        second = x25519.X25519PrivateKey.from_private_bytes(seed[64:])
        key = hpke.MLKEM768X25519PrivateKey(first, second)
        suite = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
    except UnsupportedAlgorithm as error:
        raise ConfigError(f"the OpenSSL of cryptography has no ML-KEM: {error}", "install a wheel of it") from error

    def opened(sealed: bytes, info: bytes) -> bytes:
        try:
            return bytes(suite.decrypt(sealed, key, info))
        except (InvalidTag, ValueError) as error:
            raise BadAnswersError(
                "an answer is not sealed to this recipient, or not for this request", "ask who it is for"
            ) from error

    return opened, bytes(first.public_key().public_bytes_raw() + second.public_key().public_bytes_raw())


def _pem(kind: str, data: bytes) -> str:
    text = _base64(data)
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def _read_pem(path: str | Path, kind: str) -> bytes:
    """Return the content of a file of one block of a kind."""
    try:
        text = Path(path).read_text(encoding="ascii")
        lines: Sequence[str] = text.split()
        data = base64.b64decode("".join(lines[len(kind.split()) + 1 : -len(kind.split()) - 1]), validate=True)
        if text != _pem(kind, data):
            raise ValueError(f"it is not a block of {kind}")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{path}: {error}", "`lodge decrypt recipient` writes a private key and a public one"
        ) from error
    return data
