"""Public keys for multi-key ciphertexts in a file, as ``lodge mk registry fetch`` writes them, chunk by chunk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from .._proto.lodge.multikey.v1 import registry_pb2
from ..channel import STALL_TIME, Service, Watch
from ..errors import BadKeysError, ConfigError, LodgeError
from ..threshold.multikey import MultikeySet, lookup_multikey_hash

# A file consists of the header of the keys, the SHA-256 of every chunk, and the chunks. The header consists of the
# hash of the set, the digest of the reference string, the owner's number and a seed.
_HEADER = 32 + 32 + 4 + 32

Progress = Callable[[int, int], None]


def keys_digest(header: bytes, chunk_digests: bytes) -> bytes:
    """Return the name of keys: a digest of the header and of the chunk digests, so that each chunk can be verified
    alone.
    """
    return hashlib.sha256(b"lodge multikey keys 1" + header + chunk_digests).digest()


class KeysDownload:
    """Keys in a file with the suffix .part until they are complete. Only one chunk at a time is in memory."""

    def __init__(self, key: bytes, path: str | Path, progress: Progress | None) -> None:
        self._key, self._progress = key, progress
        self._path, self._part = Path(path), Path(f"{path}.part")
        self._sizes: tuple[int, ...] = ()
        self._digests = b""
        self._have = 0
        try:
            self.complete = self._path.exists()
            if self.complete:
                self._cached()
                return
            self._part.touch()
            with self._part.open("r+b") as file:
                file.truncate(self._resume(file))
        except OSError as error:
            raise ConfigError(f"the keys cannot be written: {error}", "name another file") from error

    @property
    def missing(self) -> bool:
        return not self._sizes or self._have < len(self._sizes)

    def take_from(self, service: Service, s: MultikeySet, crs: bytes, timeout: float | None, came: Progress) -> None:
        """Downloads the missing chunks from a party whose roster pins this set and reference string.

        Raises:
            BadKeysError: the party sends data other than these keys.
        """
        stream = service.stream(
            "GetPublished", registry_pb2.GetPublishedRequest(key=self._key, first=self._have), timeout
        )
        watch = Watch(stream, STALL_TIME)
        try:
            with service.errors_of(stream), self._part.open("ab") as file:
                head = next(stream, None)
                if head is None:
                    raise LodgeError("unavailable", "the keys were not received", "retry")
                self._begin(file, head.header, list(head.chunk_digests), s, crs)
                watch.moved()
                for message in stream:
                    self._take(file, message.index, message.chunk)
                    watch.moved()
                    came(self._have, len(self._sizes))
                    if self._progress is not None:
                        self._progress(self._have, len(self._sizes))
                file.flush()
                os.fsync(file.fileno())
        except LodgeError:
            if watch.stalled:
                raise LodgeError("unavailable", f"no data received for {STALL_TIME:.0f} s", "retry") from None
            raise
        finally:
            watch.stop()
            stream.cancel()
        if self.missing:
            raise LodgeError("unavailable", f"{len(self._sizes) - self._have} chunks were not received", "retry")

    def finish(self) -> None:
        """Renames the complete file."""
        self._part.replace(self._path)

    def _begin(self, file: BinaryIO, header: bytes, digests: list[bytes], s: MultikeySet, crs: bytes) -> None:
        sizes, joined = s.chunk_sizes(), b"".join(digests)
        if len(header) != _HEADER or len(digests) != len(sizes) or any(len(d) != 32 for d in digests):
            raise BadKeysError("it sends an invalid header of keys")
        if keys_digest(header, joined) != self._key:
            raise BadKeysError("it sends keys other than the requested ones")
        if header[:32] != s.hash() or header[32:64] != crs:
            raise BadKeysError("it sends keys whose set or reference string its roster does not pin")
        if not self._sizes:
            file.write(header + joined)
            self._sizes, self._digests = sizes, joined

    def _take(self, file: BinaryIO, index: int, chunk: bytes) -> None:
        if not self.missing:
            raise BadKeysError("it sends more chunks than the keys have")
        if index != self._have or not self._right(chunk):
            raise BadKeysError(f"chunk {self._have} does not match its digest")
        file.write(chunk)
        self._have += 1

    def _right(self, chunk: bytes) -> bool:
        at = 32 * self._have
        right = hashlib.sha256(chunk).digest() == self._digests[at : at + 32]
        return right and len(chunk) == self._sizes[self._have]

    def _cached(self) -> None:
        """Raises an error if the file exists with different content."""
        with self._path.open("rb") as file:
            self._resume(file)
            if self.missing or file.read(1):
                raise ConfigError(f"{self._path} does not hold these keys", "remove it, or name another file")

    def _resume(self, file: BinaryIO) -> int:
        """Returns the end of the valid part of a file, reading its chunks in order."""
        header = file.read(_HEADER)
        s = lookup_multikey_hash(header[:32])
        if s is None:
            return 0
        sizes = s.chunk_sizes()
        digests = file.read(32 * len(sizes))
        if keys_digest(header, digests) != self._key:
            return 0
        self._sizes, self._digests, end = sizes, digests, file.tell()
        while self.missing:
            chunk = file.read(sizes[self._have])
            if not self._right(chunk):
                break
            self._have, end = self._have + 1, end + len(chunk)
        file.seek(end)
        return end
