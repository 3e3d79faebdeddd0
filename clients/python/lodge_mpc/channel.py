"""Connections over mutual TLS, and calls with retries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from .config import Config, Server
from .errors import LodgeError, from_rpc
from .pin import Pin, fetch_pin

MAX_MESSAGE = (4 << 20) + (64 << 10)  # bytes, as on the servers
STALL_TIME = 30.0  # longest time without data on a stream, in seconds
CALL_TIME = 25.0  # seconds for one attempt of a call that does not stream; less than the servers' limit

T = TypeVar("T")


class Service:
    """Calls of one gRPC service at one server, by name."""

    def __init__(self, server: Server, config: Config, service: ServiceDescriptor) -> None:
        self._server, self._config, self._service = server, config, service
        self._lock = threading.Lock()
        self._pin: Pin | None = None
        self._channel: Any = None
        self._suspect = True  # whether the server's certificate may have changed since it was pinned
        self._closed = False

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._channel is not None:
                self._channel.close()

    def call(self, method: str, request: Message, timeout: float, *, wait: bool = False) -> Any:
        """Makes one attempt of a unary call. It takes at most timeout seconds, including the wait for a connection."""
        end = time.monotonic() + timeout
        with self.errors(lambda: time.monotonic() >= end):
            call = self._multicallable("unary_unary", method)
            return call(request, timeout=timeout, metadata=self._headers(), wait_for_ready=wait)

    def stream(self, method: str, request: Message, timeout: float | None) -> Any:
        """Makes one attempt of a call with streamed responses, within errors_of it. The result has cancel()."""
        with self.errors():
            return self._multicallable("unary_stream", method)(request, timeout=timeout, metadata=self._headers())

    def exchange(self, method: str, requests: Iterator[Message], timeout: float | None) -> Any:
        """Makes one attempt of a call with streamed requests, otherwise like stream."""
        with self.errors():
            return self._multicallable("stream_stream", method)(requests, timeout=timeout, metadata=self._headers())

    @contextmanager
    def errors(self, over: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Converts gRPC's errors to Lodge's. The deadline of a call may have passed by then."""
        try:
            yield
        except grpc.RpcError as error:
            out = from_rpc(error)
            if out.code == "unavailable":
                self._suspect = True
            # A server resets a call after its deadline, possibly before this side has noticed that the deadline has
            # passed.
            if out.code == "cancelled" and not self._closed and over():
                out = LodgeError("timed_out", "deadline exceeded")
            raise out from None

    def errors_of(self, call: Any) -> AbstractContextManager[None]:
        """Converts the errors of a streaming call."""
        return self.errors(lambda: call.time_remaining() == 0)

    def _multicallable(self, kind: str, method: str) -> Any:
        m = self._service.methods_by_name[method]
        path = f"/{self._service.full_name}/{method}"
        return getattr(self._connected(), kind)(path, _serialize, GetMessageClass(m.output_type).FromString)

    def _headers(self) -> list[tuple[str, str]]:
        """Reads the bearer token, again for every call."""
        if not self._server.token_file:
            return []
        try:
            token = Path(self._server.token_file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise LodgeError("unauthenticated", f"token: {error}") from error
        if not token or any(c <= " " or c > "~" for c in token):
            raise LodgeError("unauthenticated", f"{self._server.token_file} does not hold one token")
        return [("authorization", f"Bearer {token}")]

    def _connected(self) -> Any:
        """Returns the channel, pinned to the server's current certificate."""
        with self._lock:
            if self._closed:
                raise LodgeError("cancelled", "the client is closed")
            if self._suspect:
                pin = fetch_pin(self._server, self._config)
                if pin != self._pin:
                    self._channel, self._pin = self._connect(pin), pin
                self._suspect = False
            return self._channel

    def _connect(self, pin: Pin) -> Any:
        chain = key = None
        if self._config.certificate:
            chain, key = Path(self._config.certificate).read_bytes(), Path(self._config.key).read_bytes()
        credentials = grpc.ssl_channel_credentials(pin.certificate, key, chain)
        options = [
            ("grpc.ssl_target_name_override", pin.name),
            ("grpc.max_receive_message_length", MAX_MESSAGE),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 3000),
            ("grpc.keepalive_time_ms", 10000),
            ("grpc.keepalive_timeout_ms", 5000),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
        ]
        return grpc.secure_channel(self._server.address, credentials, options=options)


def _serialize(message: Message) -> bytes:
    data: bytes = message.SerializeToString()
    return data


class Patience:
    """Controls how long to retry, with increasing delays."""

    def __init__(self, seconds: float, deadline: float | None) -> None:
        self.seconds, self.deadline = seconds, deadline
        self.renew()

    def renew(self) -> None:
        """Resets the delay after data has arrived."""
        self._pause, self._until = 0.1, time.monotonic() + self.seconds

    def left(self) -> float | None:
        """Seconds until the deadline; None without a deadline."""
        return None if self.deadline is None else self.deadline - time.monotonic()

    def attempt(self) -> float:
        """Seconds for one attempt."""
        left = self.left()
        if left is not None and left <= 0:
            raise LodgeError("timed_out", "the deadline passed")
        return CALL_TIME if left is None else min(CALL_TIME, left)

    def after(self, error: LodgeError) -> None:
        """Waits after a failure, or raises it if a further attempt is useless."""
        pause = self._pause * random.uniform(0.5, 1.5)
        end = self._until if self.deadline is None else min(self._until, self.deadline)
        if not error.retry or time.monotonic() + pause > end:
            raise error
        self._pause = min(2 * self._pause, 3.0)
        time.sleep(pause)


def retried(patience: Patience, attempt: Callable[[float], T]) -> T:
    """Returns the result of the first successful attempt."""
    while True:
        try:
            return attempt(patience.attempt())
        except LodgeError as error:
            patience.after(error)


class Watch:
    """Ends a stream that has received no data for some seconds."""

    def __init__(self, call: Any, seconds: float) -> None:
        self._call, self._seconds, self.stalled = call, seconds, False
        self._timer = self._started()

    def moved(self) -> None:
        """Restarts the time limit after data has arrived."""
        self.stop()
        self._timer = self._started()

    def stop(self) -> None:
        self._timer.cancel()

    def _started(self) -> threading.Timer:
        timer = threading.Timer(self._seconds, self._end)
        timer.daemon = True
        timer.start()
        return timer

    def _end(self) -> None:
        self.stalled = True
        self._call.cancel()
