"""Connections between the parties' programs: mutual TLS, and messages in the order of a program's steps."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import ssl
import struct
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ..config import Config
from ..errors import ConfigError, LodgeError
from .errors import PeerError

VERSION = 1
CLOSE_TIME = 5.0  # seconds
_HEAD = struct.Struct("<BIQ")  # channel, step, length of the body
_STEP, _NOTE, _STOP = 1, 2, 3  # channels: steps of the program, reservations, the end with an error
_NOTE_LIMIT = _STOP_LIMIT = 1000  # bytes


@dataclass(frozen=True)
class Peer:
    """Where a party's program listens, and the identity in its certificate."""

    address: str  #: host:port
    identity: str  #: a URI, such as spiffe://lodge/client/p0


class Link:
    """The connection to one peer."""

    def __init__(self, peer: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peer, self._reader, self._writer = peer, reader, writer
        self._notes: asyncio.Queue[bytes] = asyncio.Queue()
        self._steps: asyncio.Queue[bytes] = asyncio.Queue()
        self._expected: dict[int, int] = {}  # the lengths of the next messages, by step
        self._may = asyncio.Event()  # set while a message of a step is expected
        self._at = 0
        self._error: LodgeError | None = None
        self.sent = self.received = 0  # bytes
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._read())

    async def hello(self, mine: bytes, limit: float) -> bytes:
        """Sends the first message, and returns the peer's, which has the same length."""
        self._writer.write(mine)
        try:
            return await asyncio.wait_for(self._reader.readexactly(len(mine)), limit)
        except (OSError, EOFError, asyncio.TimeoutError) as error:
            raise PeerError(self.peer, "unavailable", f"ended the handshake: {error}", "compare versions") from error

    async def send(self, step: int, body: bytes) -> None:
        await self._send(_STEP, step, body)

    async def note(self, number: int, body: bytes) -> None:
        await self._send(_NOTE, number, body)

    async def _send(self, channel: int, step: int, body: bytes) -> None:
        try:
            self._writer.write(_HEAD.pack(channel, step, len(body)) + body)
            self.sent += _HEAD.size + len(body)
            await self._writer.drain()
        except OSError as error:
            raise self._error or PeerError(self.peer, "unavailable", f"closed the connection: {error}") from error

    async def receive(self, step: int, length: int, limit: float) -> bytes:
        """Returns the peer's message of a step. Every step has one, in order."""
        self._expected[step] = length
        self._may.set()
        return await self._next(self._steps, f"step {step}", limit)

    async def noted(self, limit: float) -> bytes:
        return await self._next(self._notes, "a reservation", limit)

    async def _next(self, queue: asyncio.Queue[bytes], what: str, limit: float) -> bytes:
        assert self._task is not None
        if queue.empty():
            getter = asyncio.ensure_future(queue.get())
            await asyncio.wait({getter, self._task}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if getter.done():
                return getter.result()
            getter.cancel()
        if not queue.empty():  # the message may have arrived before the peer ended
            return queue.get_nowait()
        if self._error is not None:
            raise self._error
        raise PeerError(self.peer, "timed_out", f"sent nothing for {what} in {limit:g} s", "look at its log")

    async def _read(self) -> None:
        """Receives until the connection ends. A message is read only when the program expects its length."""
        try:
            while True:
                channel, step, length = _HEAD.unpack(await self._reader.readexactly(_HEAD.size))
                if channel == _STEP:
                    await self._read_step(step, length)
                elif channel == _NOTE and length <= _NOTE_LIMIT and self._notes.qsize() < _NOTE_LIMIT:
                    self._notes.put_nowait(await self._reader.readexactly(length))
                elif channel == _STOP and length <= _STOP_LIMIT:
                    why = (await self._reader.readexactly(length)).decode("utf-8", "replace")
                    why = "".join(c for c in why if c.isprintable())
                    self._error = PeerError(self.peer, "unavailable", f"stopped: {why}", "look at its log")
                    return
                else:
                    self._error = PeerError(self.peer, "bad_answers", "sent a message that the protocol does not have")
                    return
                self.received += _HEAD.size + length
        except (OSError, EOFError):
            self._error = self._error or PeerError(self.peer, "unavailable", "closed the connection", "look at its log")

    async def _read_step(self, step: int, length: int) -> None:
        if step != self._at:
            self._error = PeerError(
                self.peer, "bad_answers", f"sent step {step} instead of step {self._at}", "run the same program"
            )
            raise EOFError
        while step not in self._expected:
            self._may.clear()
            await self._may.wait()
        if length != (want := self._expected.pop(step)):
            self._error = PeerError(
                self.peer,
                "bad_answers",
                f"sent {length} bytes in step {step} instead of {want}",
                "run the same program",
            )
            raise EOFError
        body = await self._reader.readexactly(length)
        self._at += 1
        self._steps.put_nowait(body)

    async def close(self, why: LodgeError | None = None) -> None:
        if why is not None:
            body = str(why).encode()[:_STOP_LIMIT]
            self._writer.write(_HEAD.pack(_STOP, 0, len(body)) + body)
        with suppress(OSError, asyncio.TimeoutError):
            await asyncio.wait_for(self._writer.drain(), CLOSE_TIME)
        self._writer.close()
        if self._task is not None:
            self._task.cancel()


class Mesh:
    """The connections of this program to all others, and the hash of all broadcasts."""

    def __init__(self, config: Config, peers: Sequence[Peer], own: int, limit: float) -> None:
        self._config, self._peers, self.own, self._limit = config, peers, own, limit
        self.links: dict[int, Link] = {}
        self.step = 0
        self.session = b""
        self._transcript = hashlib.sha256()

    @property
    def others(self) -> list[int]:
        return [i for i in range(len(self._peers)) if i != self.own]

    async def connect(self, terms: bytes, limit: float) -> None:
        """Connects to all peers, within limit seconds, and compares the terms of the session with theirs.

        Parties dial those with a smaller index, and accept those with a larger one.
        """
        waiting: dict[int, asyncio.Future[Link]] = {
            i: asyncio.get_running_loop().create_future() for i in self.others if i > self.own
        }

        async def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            identities = _identities(writer)
            for i, future in waiting.items():
                if self._peers[i].identity in identities and not future.done():
                    future.set_result(Link(i, reader, writer))
                    return
            writer.close()  # not a peer, or a second connection of one

        host, port = _split(self._peers[self.own].address)
        try:
            server = await asyncio.start_server(accepted, host, port, ssl=_context(self._config, server=True))
        except OSError as error:
            raise ConfigError(f"cannot listen on {host}:{port}: {error}", "change the address of this party") from error
        try:
            dialled = [self._dial(i, limit) for i in self.others if i < self.own]
            accepted_links = [self._accept(i, future, limit) for i, future in waiting.items()]
            links = await asyncio.gather(*dialled, *accepted_links)
        finally:
            server.close()
        self.links = {link.peer: link for link in links}
        await self._greet(terms, limit)
        for link in links:
            link.start()

    async def _accept(self, i: int, future: asyncio.Future[Link], limit: float) -> Link:
        try:
            return await asyncio.wait_for(future, limit)
        except asyncio.TimeoutError as error:
            raise PeerError(i, "unavailable", f"did not connect within {limit:g} s", "start it") from error

    async def _dial(self, i: int, limit: float) -> Link:
        host, port = _split(self._peers[i].address)
        context = _context(self._config, server=False)
        loop = asyncio.get_running_loop()
        end = loop.time() + limit
        while True:
            try:
                opening = asyncio.open_connection(host, port, ssl=context)
                reader, writer = await asyncio.wait_for(opening, max(0.1, end - loop.time()))
                break
            except ssl.SSLError as error:
                raise PeerError(i, "unauthenticated", f"has a bad certificate: {error}", "see tls.ca") from error
            except (OSError, asyncio.TimeoutError) as error:
                if loop.time() >= end:
                    raise PeerError(
                        i, "unavailable", f"cannot be reached at {host}:{port}: {error}", "start it"
                    ) from error
                await asyncio.sleep(0.1)
        if self._peers[i].identity not in (found := _identities(writer)):
            writer.close()
            raise PeerError(i, "unauthenticated", f"has a certificate of {found}, not {self._peers[i].identity}")
        return Link(i, reader, writer)

    async def _greet(self, terms: bytes, limit: float) -> None:
        """Sends and receives the version, a hash of the terms, and a nonce. All nonces make the session's id."""
        digest = hashlib.sha256(terms).digest()
        mine = struct.pack("<HH", VERSION, self.own) + digest + secrets.token_bytes(32)
        heard = dict(
            zip(self.links, await asyncio.gather(*(k.hello(mine, limit) for k in self.links.values())), strict=True)
        )
        heard[self.own] = mine
        for i in self.others:
            version, index = struct.unpack_from("<HH", heard[i])
            if version != VERSION:
                raise PeerError(i, "pin_mismatch", f"speaks version {version}, not {VERSION}", "use the same release")
            if index != i or heard[i][4:36] != digest:
                raise PeerError(i, "conflict", "has other peers, another field or other settings", "compare them")
        nonces = b"".join(heard[i] for i in range(len(self._peers)))
        self.session = hashlib.sha256(b"lodge online session" + nonces).digest()
        self._transcript = hashlib.sha256(self.session)

    async def broadcast(self, body: bytes, lengths: Sequence[int] | None = None) -> list[bytes]:
        """Sends a message of the next step to all peers, and returns every party's, in order.

        Messages have the length of this one, or lengths by party. They enter the transcript.
        """
        step, self.step = self.step, self.step + 1
        length = [len(body)] * len(self._peers) if lengths is None else lengths
        received, _ = await asyncio.gather(
            asyncio.gather(*(k.receive(step, length[i], self._limit) for i, k in self.links.items())),
            asyncio.gather(*(k.send(step, body) for k in self.links.values())),
        )
        out = dict(zip(self.links, received, strict=True)) | {self.own: body}
        for i in range(len(self._peers)):
            self._transcript.update(struct.pack("<IIQ", step, i, len(out[i])) + out[i])
        return [out[i] for i in range(len(self._peers))]

    def transcript(self) -> bytes:
        """A hash of all broadcasts so far, the same at all programs that received the same."""
        return self._transcript.digest()

    async def close(self, why: LodgeError | None = None) -> None:
        await asyncio.gather(*(link.close(why) for link in self.links.values()))


def _split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise ConfigError(f"{address!r} is not host:port")
    return host.strip("[]"), int(port)


def _context(config: Config, *, server: bool) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the identity is compared instead; the chain is verified
    context.verify_mode = ssl.CERT_REQUIRED
    try:
        context.load_verify_locations(cafile=config.ca)
        context.load_cert_chain(config.certificate, config.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificate, key or authority: {error}", "see tls in the configuration") from error
    return context


def _identities(writer: asyncio.StreamWriter) -> list[str]:
    certificate: dict[str, Any] = writer.get_extra_info("peercert") or {}
    return [str(value) for kind, value in certificate.get("subjectAltName", ()) if kind == "URI"]
