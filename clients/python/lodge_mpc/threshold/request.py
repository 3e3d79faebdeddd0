"""Requests for decryption."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .._proto.lodge.threshold.v1 import threshold_pb2
from ..channel import Service
from ..errors import BadAnswersError, ConfigError
from .answers import Masked, Reader
from .bgv import BGVCiphertext, BGVSet, Flooded, MaskedCoefficients, check_bgv_encoding, lookup_bgv
from .ciphertexts import LWECiphertext, RingCiphertext, check_encoding, decoded
from .keys import FORMS, Key
from .multikey import MaskedBits, MultikeyCiphertext, MultikeySet, checked
from .question import Question
from .sets import Kind, ParameterSet, lookup

UPLOAD = 1 << 20  # bytes of ciphertexts in one request
_SEAL = 2048  # maximal number of bytes that sealing adds to an answer

Ciphertexts = (
    Sequence[RingCiphertext] | Sequence[LWECiphertext] | Sequence[BGVCiphertext] | Sequence[MultikeyCiphertext]
)


@dataclass(frozen=True)
class Provenance:
    """An attester's statement on the origin of ciphertexts, for policies that require it.

    The signature is Ed25519 over ``statement``. This package does not sign, because that needs a package on which it
    does not depend.
    """

    attester: str  #: as in the parties' policies
    circuit: str  #: name of the computation, for the audit log: at most 200 bytes
    signature: bytes


def statement(
    key: Key,
    ciphertexts: Ciphertexts,
    circuit: str,
    *,
    coefficients: int | None = None,
    encoding: str | None = None,
    flooding: bool = False,
) -> bytes:
    """Return the message that an attester signs on the origin of ciphertexts that are decrypted in an encoding.

    For ring and BGV ciphertexts it states how many coefficients of each may be opened. It also states whether BGV
    ciphertexts are decrypted with flooding.
    """
    request = Request(key, ciphertexts, encoding, coefficients=coefficients, flooding=flooding)
    return request.question(()).statement(circuit)


def values(params: str, encoding: str, each: int, opened: Sequence[int]) -> list[int]:
    """Return the values of opened messages, the same number for each ciphertext, in an encoding."""
    if encoding == "bits":
        return list(opened)
    if (s := lookup_bgv(params)) is not None:
        return s.values(opened, each, encoding)
    return decoded(lookup(params), opened, encoding)


def encoded(s: ParameterSet, ciphertexts: Sequence[RingCiphertext] | Sequence[LWECiphertext], encoding: str) -> bytes:
    """Return the concatenated encodings of ciphertexts. Padded ones are doubled, because decryption opens plain
    ones.
    """
    check_encoding(encoding)
    if any(c.params != s for c in ciphertexts):
        raise ConfigError(f"the ciphertexts are not under {s.name}")
    return b"".join(c.doubled().encode() if encoding == "padded" else c.encode() for c in ciphertexts)


def digest(data: bytes, count: int) -> bytes:
    """Return the name of ciphertexts, given by their concatenated encodings: the SHA-256 of the SHA-256 of each."""
    size = len(data) // count
    view = memoryview(data)
    each = (hashlib.sha256(view[at : at + size]).digest() for at in range(0, len(data), size))
    return hashlib.sha256(b"".join(each)).digest()


class Request:
    """A request for decryption, as sent to the parties."""

    def __init__(
        self,
        key: Key,
        ciphertexts: Ciphertexts,
        encoding: str | None,
        *,
        coefficients: int | None,
        flooding: bool = False,
        masks: str = "exact",
        provenance: Provenance | None = None,
        recipient: bytes = b"",
        owners: Mapping[bytes, int] | None = None,
    ) -> None:
        self.multikey: list[tuple[bytes, int]] = []
        self.key, self.masks, self.provenance, self.recipient = key, masks, provenance, recipient
        self.flooding, self.count, self.level = flooding, len(ciphertexts), 0
        self.reader: Reader
        if key.multikey is not None:
            if coefficients is not None or flooding or masks != "exact" or encoding:
                raise ConfigError("multi-key ciphertexts have exact masks and nothing else to choose", "leave it out")
            self._multikey(key.multikey, ciphertexts, owners or {})
        elif key.bgv is not None:
            self._bgv(key.bgv, ciphertexts, encoding or "coefficients", coefficients)
        else:
            self._lwe(key.set, ciphertexts, encoding or "plain", coefficients)
        self.digest = digest(self.data, self.count)

    def _lwe(self, s: ParameterSet, ciphertexts: Ciphertexts, encoding: str, coefficients: int | None) -> None:
        """Check and encode LWE or ring ciphertexts."""
        kind, ring = Kind.of(s, self.key.threshold, self.masks), all(isinstance(c, RingCiphertext) for c in ciphertexts)
        if not ciphertexts or not (ring or all(isinstance(c, LWECiphertext) for c in ciphertexts)):
            raise ConfigError("these are neither LWE ciphertexts nor ring ciphertexts", "give ciphertexts of one kind")
        if self.flooding:
            raise ConfigError("LWE and ring ciphertexts are decrypted without flooding", "leave it out")
        if ring != (coefficients is not None):
            raise ConfigError("only ring ciphertexts are decrypted by coefficients", "give their number for each")
        if coefficients is not None and not 1 <= coefficients <= s.n:
            raise ConfigError(f"{coefficients} coefficients", f"from 1 to {s.n} of each can be opened")
        self.form, self.encoding, self.each = "ring" if ring else "lwe", encoding, coefficients or 1
        self.data = encoded(s, cast(Sequence[RingCiphertext], ciphertexts), encoding)
        self.reader = Masked(kind, self.count * self.each)

    def _multikey(self, s: MultikeySet, ciphertexts: Ciphertexts, owners: Mapping[bytes, int]) -> None:
        """Check and encode multi-key ciphertexts."""
        list_, self.multikey = checked(s, ciphertexts, owners)
        self.form, self.encoding, self.each = "multikey", "bits", 1
        self.data = b"".join(c.encode() for c in list_)
        self.reader = MaskedBits(Masked(s.kind(2), self.count))  # for the chosen quorum, set later

    def _bgv(self, s: BGVSet, ciphertexts: Ciphertexts, encoding: str, coefficients: int | None) -> None:
        """Check and encode BGV ciphertexts."""
        check_bgv_encoding(encoding)
        list_ = [c for c in ciphertexts if isinstance(c, BGVCiphertext) and c.params == s]
        if not list_ or len(list_) < len(ciphertexts) or len({c.level for c in list_}) > 1:
            raise ConfigError(f"not BGV ciphertexts under {s.name} of one level", "split the request by level")
        self.level = list_[0].level
        if self.masks != "exact":
            raise ConfigError(f"BGV does not support {self.masks} masks", "use exact masks")
        if self.flooding and (coefficients is not None or not 0 <= s.flood_level <= self.level):
            raise ConfigError(
                f"flooding decrypts whole ciphertexts of level {s.flood_level} or more",
                "leave out coefficients, or open some under masks",
            )
        if not self.flooding and (coefficients is None or not 1 <= coefficients <= s.n):
            raise ConfigError(f"{coefficients} coefficients", f"from 1 to {s.n} can be opened, or all by flooding")
        self.form, self.encoding, self.each = "bgv", encoding, coefficients or s.n
        if encoding == "slots" and self.each < s.n:
            raise ConfigError(f"{self.each} coefficients have no slots", f"open all {s.n}")
        self.data = b"".join(c.encode() for c in list_)
        if self.flooding:
            self.reader = Flooded(list_)
        else:
            masked = Masked(s.kind(self.key.threshold), self.count * self.each)
            self.reader = MaskedCoefficients(list_, masked)

    def question(self, quorum: Sequence[int]) -> Question:
        """Return the request to a quorum, with its own id, the same for all its parties."""
        masks = "flooding" if self.flooding else self.masks
        if (s := self.key.multikey) is not None:
            self.reader = MaskedBits(Masked(s.kind(len(quorum)), self.count))
        return Question(
            id=secrets.token_bytes(16),
            epoch=self.key.epoch,
            keys=self.key.digest,
            quorum=tuple(quorum),
            form=self.form,
            count=self.count,
            each=self.each,
            ciphertexts=self.digest,
            masks=masks,
            level=self.level,
            recipient=self.recipient,
            multikey=tuple(self.multikey),
        )

    def header(self, q: Question) -> threshold_pb2.DecryptHeader:
        """Return the question in the form in which it is sent."""
        form = {
            "lwe": threshold_pb2.CIPHERTEXT_FORM_LWE,
            "ring": threshold_pb2.CIPHERTEXT_FORM_RING,
            "bgv": threshold_pb2.CIPHERTEXT_FORM_BGV,
            "multikey": threshold_pb2.CIPHERTEXT_FORM_MULTIKEY,
        }[q.form]
        header = threshold_pb2.DecryptHeader(
            request_id=q.id,
            epoch=q.epoch,
            keys_digest=q.keys,
            quorum=q.quorum,
            form=form,
            count=q.count,
            coefficients=0 if q.form in ("lwe", "multikey") or self.flooding else q.each,
            masks=None if self.flooding else FORMS[self.masks],
            ciphertexts_digest=q.ciphertexts,
            level=q.level,
            flooding=self.flooding,
            recipient=q.recipient,
            multikey=[threshold_pb2.KeyOwner(key=key, owner=owner) for key, owner in q.multikey],
        )
        if (p := self.provenance) is not None:
            header.provenance.CopyFrom(
                threshold_pb2.Provenance(attester=p.attester, circuit=p.circuit, signature=p.signature)
            )
        return header

    def opened(self, parts: Sequence[bytes]) -> list[int]:
        """Return the messages from the answers of a quorum, in their encoding."""
        return values(self.key.params, self.encoding, self.each, self.reader.messages(parts))

    def messages(self, header: threshold_pb2.DecryptHeader) -> Iterator[threshold_pb2.DecryptRequest]:
        yield threshold_pb2.DecryptRequest(header=header)
        for at in range(0, len(self.data), UPLOAD):
            yield threshold_pb2.DecryptRequest(ciphertexts=self.data[at : at + UPLOAD])


class Call:
    """A request to one party, which another thread may cancel."""

    def __init__(self, service: Service) -> None:
        self._service, self._lock = service, threading.Lock()
        self._call: Any = None
        self._cancelled = False

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            if self._call is not None:
                self._call.cancel()

    def run(self, request: Request, header: threshold_pb2.DecryptHeader, timeout: float | None) -> bytes:
        call = self._service.exchange("Decrypt", request.messages(header), timeout)
        with self._lock:
            self._call = call
            if self._cancelled:
                call.cancel()
        answer, most = bytearray(), request.reader.most + (_SEAL if request.recipient else 0)
        try:
            with self._service.errors_of(call):
                for message in call:
                    answer += message.chunk
                    if len(answer) > most:
                        raise BadAnswersError(f"an answer of more than {most} bytes")
        finally:
            call.cancel()
        if not request.recipient:
            request.reader.check(bytes(answer))
        return bytes(answer)
