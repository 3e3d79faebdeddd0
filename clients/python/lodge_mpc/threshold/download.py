"""Public keys in a file, in the format of ``lodge keys fetch``, and downloads to such files."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from .._proto.lodge.threshold.v1 import threshold_pb2
from ..channel import Service
from ..errors import BadKeysError, ConfigError, LodgeError
from .bgv import BGVPublicKey, lookup_bgv
from .ciphertexts import PublicKey
from .keys import Key
from .sets import KeyLayout, lookup

# A file consists of this line, a line of JSON, the header of the keys, the SHA-256 of every chunk, and the chunks:
# the first one, which contains the public key, or all of them, including the evaluation keys.
_MAGIC = b"lodge threshold keys 1\n"
_MAX_LINE = 4096

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Start:
    """The part of a file before the chunks."""

    epoch: int
    params: str
    digest: bytes
    chunks: int
    header: bytes
    chunk_digests: Sequence[bytes]
    galois: tuple[int, ...] = ()  #: automorphisms of BGV keys

    @property
    def layout(self) -> KeyLayout:
        s = lookup_bgv(self.params)
        return lookup(self.params).layout if s is None else s.layout(self.galois)

    def encode(self) -> bytes:
        fields: dict[str, Any] = {"epoch": self.epoch, "params": self.params}
        fields |= {"digest": self.digest.hex(), "chunks": self.chunks}
        if self.galois:
            fields["galois"] = list(self.galois)
        line = json.dumps(fields, separators=(",", ":")).encode() + b"\n"
        return _MAGIC + line + self.header + b"".join(self.chunk_digests)

    @classmethod
    def read(cls, file: BinaryIO) -> Start:
        """Read it from a file.

        Raises:
            ValueError: it is missing or not in canonical form.
        """
        if file.read(len(_MAGIC)) != _MAGIC:
            raise ValueError("its first line is not that of a key file")
        line = file.readline(_MAX_LINE)
        data = json.loads(line)
        if not isinstance(data, dict) or sorted(data.keys() - {"galois"}) != ["chunks", "digest", "epoch", "params"]:
            raise ValueError("its second line does not describe keys")
        name, galois = str(data["params"]), tuple(data.get("galois", ()))
        empty = cls(data["epoch"], name, bytes.fromhex(data["digest"]), data["chunks"], b"", (), galois)
        layout = empty.layout
        header, digests = file.read(layout.header_size), file.read(32 * layout.chunks)
        start = replace(empty, header=header, chunk_digests=[digests[i : i + 32] for i in range(0, len(digests), 32)])
        layout.check(start.digest, header, start.chunk_digests)
        if not start.encode().startswith(_MAGIC + line) or start.chunks not in (1, layout.chunks) or start.epoch < 1:
            raise ValueError("its second line is not in canonical form")
        return start


def read_public_key(path: str | Path) -> tuple[Start, PublicKey]:
    """Read the public key from a file of keys for LWE and ring ciphertexts, with the file's description of the
    keys.
    """
    start, first = _first_chunk(path)
    if lookup_bgv(start.params) is not None:
        raise ConfigError(f"{path} holds BGV keys", "read it with read_bgv_public_key")
    s = lookup(start.params)
    return start, PublicKey.received(s, start.digest, start.header, start.chunk_digests, first)


def read_bgv_public_key(path: str | Path) -> tuple[Start, BGVPublicKey]:
    """Read the public key from a file of BGV keys, with the file's description of the keys."""
    start, first = _first_chunk(path)
    s = lookup_bgv(start.params)
    if s is None:
        raise ConfigError(f"{path} does not hold BGV keys", "read it with read_public_key")
    return start, BGVPublicKey.received(
        s,
        layout=start.layout,
        digest=start.digest,
        header=start.header,
        chunk_digests=start.chunk_digests,
        first=first,
    )


def _first_chunk(path: str | Path) -> tuple[Start, bytes]:
    """Return the beginning of a file of keys."""
    try:
        with Path(path).open("rb") as file:
            start = Start.read(file)
            return start, file.read(start.layout.chunk_sizes[0])
    except (OSError, ValueError, TypeError, AttributeError, struct.error) as error:
        raise ConfigError(
            f"{path} is not a file of public threshold keys: {error}", "`lodge keys fetch` writes such files"
        ) from error


class KeyStream:
    """Downloads chunks of the keys of an epoch from one holder, from first on, and compares each with its digest."""

    def __init__(self, service: Service, key: Key, first: int, count: int, timeout: float | None) -> None:
        self._service, self._first, self._count = service, first, count
        request = threshold_pb2.GetKeysRequest(epoch=key.epoch, first=first, count=count)
        self._call = service.stream("GetKeys", request, timeout)
        with service.errors_of(self._call):
            head = next(iter(self._call), None)
        if head is None or head.digest != key.digest:
            self._call.cancel()
            raise BadKeysError("its keys differ from those on which the holders agree")
        self.header, self.chunk_digests = head.header, list(head.chunk_digests)
        try:
            key.layout.check(key.digest, self.header, self.chunk_digests)
        except LodgeError:
            self._call.cancel()
            raise

    def chunks(self, take: Callable[[bytes], Any]) -> None:
        """Yield the requested chunks in order."""
        at = self._first
        try:
            with self._service.errors_of(self._call):
                for message in self._call:
                    if at == self._first + self._count:
                        raise BadKeysError("it sends more chunks than requested")
                    if message.index != at or hashlib.sha256(message.chunk).digest() != self.chunk_digests[at]:
                        raise BadKeysError(f"chunk {at} does not match its digest")
                    take(message.chunk)
                    at += 1
        finally:
            self._call.cancel()
        if at < self._first + self._count:
            raise LodgeError("unavailable", f"{self._first + self._count - at} chunks were not received")


class KeyDownload:
    """Downloads keys to a file with the suffix .part until it is complete, and resumes earlier downloads."""

    def __init__(self, key: Key, path: str | Path, evaluation: bool, progress: Progress | None) -> None:
        self._key, self._progress, self._layout = key, progress, key.layout
        self._path, self._part = Path(path), Path(f"{path}.part")
        self._chunks = self._layout.chunks if evaluation else 1
        self._start: Start | None = None
        self._have = 0
        self._part.touch()
        with self._part.open("r+b") as file:
            file.truncate(self._resume(file))

    @property
    def missing(self) -> bool:
        return self._have < self._chunks

    def take_from(self, service: Service, timeout: float | None) -> None:
        """Download the missing chunks from a holder."""
        stream = KeyStream(service, self._key, self._have, self._chunks - self._have, timeout)
        with self._part.open("ab") as file:
            if self._start is None:
                self._start = self._wanted(stream.header, stream.chunk_digests)
                file.write(self._start.encode())

            def take(chunk: bytes) -> None:
                file.write(chunk)
                self._have += 1
                if self._progress is not None:
                    self._progress(self._have, self._chunks)

            stream.chunks(take)
            file.flush()
            os.fsync(file.fileno())

    def finish(self) -> None:
        """Rename the complete file."""
        self._part.replace(self._path)

    def _wanted(self, header: bytes, digests: Sequence[bytes]) -> Start:
        k = self._key
        return Start(k.epoch, k.params, k.digest, self._chunks, header, digests, k.galois)

    def _resume(self, file: BinaryIO) -> int:
        """Return the end of the valid part of an earlier download."""
        try:
            start = Start.read(file)
        except (LodgeError, ValueError, TypeError, AttributeError, struct.error):
            return 0
        if start != self._wanted(start.header, start.chunk_digests):
            return 0
        self._start, end = start, file.tell()
        while self.missing:
            chunk = file.read(self._layout.chunk_sizes[self._have])
            if hashlib.sha256(chunk).digest() != start.chunk_digests[self._have]:
                break
            self._have, end = self._have + 1, end + len(chunk)
        return end
