"""Messages to a party that multiplies, and its responses."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from google.protobuf.message import Message

from .._proto.lodge.linear.v1 import linear_pb2
from ..channel import Service
from ..errors import BadAnswersError, ConfigError, LodgeError
from .fixed import Fixed, RangeError, words
from .plans import BatchPlan, ProductPlan, VectorPlan
from .residues import Words, pack, size, unpack

_CHUNK = 1 << 20  # bytes in one request, at most


@dataclass(frozen=True)
class Progress:
    """The progress of a product."""

    sent: int  #: bytes
    to_send: int
    answers: int  #: that have come
    expected: int


class Told:
    """The header of a call, and the party's terms."""

    def __init__(
        self,
        party: str,
        plan: VectorPlan | BatchPlan | ProductPlan,
        progress: Callable[[Progress], None] | None,
        to_send: int,
    ) -> None:
        self.party, self.plan, self._progress, self._to_send = party, plan, progress, to_send
        self.up = self.down = self._sent = self._answers = 0
        self.log_distance, self.security = 0.0, "passive"
        if plan.params.proof is not None:
            self.security = "passive_evaluator"

    def begin(self) -> None:
        """Prepares another attempt."""
        self._sent = 0

    def sent(self, count: int) -> None:
        self._sent += count
        self.up += count
        self._tell()

    def answered(self, done: int) -> None:
        self._answers = done
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(Progress(self._sent, self._to_send, self._answers, self.plan.answers))

    def bad(self, what: str) -> BadAnswersError:
        return BadAnswersError(f"party {self.party}: {what}", "tell its operator")

    def named(self, error: LodgeError) -> LodgeError:
        """Return the error of a call of the party."""
        if isinstance(error, ConfigError) or error.what.startswith("party "):
            return error
        if isinstance(error, BadAnswersError):
            return self.bad(error.what)
        return LodgeError(error.code, f"party {self.party}: {error.what}", error.next)

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            yield
        except LodgeError as error:
            raise self.named(error) from None

    def check(self, terms: linear_pb2.Terms) -> None:
        """Compare the party's terms of a product with the plan."""
        want = (self.plan.answers, self.plan.answer_size, self.security)
        said = (terms.answers, terms.answer_bytes, terms.security)
        if said != want:
            raise self.bad("it plans {} answers of {} bytes with security {!r}".format(*said)
                           + ", but this client plans {} of {} bytes, {}".format(*want))  # fmt: skip
        self.log_distance = terms.log_distance


class Pieces:
    """Splits received data into pieces of known sizes."""

    def __init__(self, size_of: Callable[[int], int], take: Callable[[int, bytes], None], most: int) -> None:
        self._size_of, self._take, self._most = size_of, take, most
        self._held = bytearray()
        self.done = 0

    def restart(self) -> None:
        """Reports whether the next data starts a new piece."""
        self._held.clear()

    def add(self, chunk: bytes) -> None:
        self._held += chunk
        while self._held:
            if self.done == self._most:
                raise BadAnswersError("more answers than expected")
            need = self._size_of(self.done)
            if len(self._held) < need:
                return
            piece = bytes(self._held[:need])
            del self._held[:need]
            self._take(self.done, piece)
            self.done += 1


class Line:
    """Rows of a matrix, of residues or encoded as residues: an array, or single rows in order."""

    def __init__(
        self, rows: Any, t: int, what: str, *, encoding: Fixed | None = None, shape: tuple[int, int] | None = None
    ) -> None:
        if encoding is not None and encoding.t != t:
            raise ConfigError(f"an encoding modulo {encoding.t}, but the set has {t}", "use an encoding of the set")
        self._rows, self._t, self._what, self._encoding = rows, t, what, encoding
        self._count: int
        self._width: int
        self._count, self._width = rows.shape if shape is None else shape

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self._count * size(self._width, self._t)

    def packed(self) -> Iterator[bytes]:
        """Yields each row."""
        found = 0
        for found, row in enumerate(self._rows, 1):
            if found > self._count:
                break
            yield pack(self._row(found - 1, row), self._t)
        if found != self._count:
            raise ConfigError(f"{self._what} of {found} rows or more, not {self._count}", "give all, and no more")

    def _row(self, i: int, row: npt.ArrayLike) -> Words:
        a = np.asarray(row)
        if a.shape != (self._width,):
            raise ConfigError(f"row {i} of the {self._what} has the shape {a.shape}", f"give {self._width} entries")
        try:
            return words(a, self._t, "entry") if self._encoding is None else self._encoding.encode(a)
        except RangeError as error:
            raise RangeError(f"entry of the {self._what}", (i, *error.index), error.low, error.high) from None


def chunks(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Yields the same bytes in chunks of at most 1 MiB."""
    held = bytearray()
    for part in parts:
        held += part
        while len(held) >= _CHUNK:
            yield bytes(held[:_CHUNK])
            del held[:_CHUNK]
    if held:
        yield bytes(held)


class _Upload:
    """Requests, which gRPC reads from another thread. An exception there ends the call and is stored."""

    def __init__(self, told: Told, header: Message, parts: Iterable[bytes], request: Callable[..., Message]) -> None:
        self._told, self._header, self._parts, self._request = told, header, parts, request
        self.error: Exception | None = None
        self.call: Any = None
        self.begun = threading.Event()  # set once there is a call, or there will be none
        self.end = threading.Event()  # set when this side may end after sending everything

    def __iter__(self) -> Iterator[Message]:
        try:
            yield self._request(header=self._header)
            for chunk in chunks(self._parts):
                yield self._request(chunk=chunk)
                self._told.sent(len(chunk))
        except Exception as error:  # from the caller's rows or progress callback
            self.error = error
            self.begun.wait()
            if self.call is not None:
                self.call.cancel()
        else:
            self.end.wait()


@contextmanager
def _called(service: Service, method: str, upload: _Upload, timeout: float | None) -> Iterator[Any]:
    """A running call, which ends with the block. An error in the caller's input takes precedence over the call's
    error.
    """
    try:
        upload.call = service.exchange(method, iter(upload), timeout)
        upload.begun.set()
        with service.errors_of(upload.call):
            yield upload.call
    except Exception:
        if upload.error is not None:
            raise upload.error from None
        raise
    finally:
        upload.begun.set()
        upload.end.set()
        if upload.call is not None:
            upload.call.cancel()


def _first(told: Told, responses: Any) -> None:
    first = next(responses, None)
    told.check(first.terms if first is not None else linear_pb2.Terms())


def multiplying(
    service: Service, told: Told, header: Message, *, parts: list[bytes], pieces: Pieces, timeout: float | None
) -> None:
    """Makes one attempt of a product of encrypted matrices."""
    upload = _Upload(told, header, parts, linear_pb2.MultiplyRequest)
    upload.end.set()  # this side ends after sending everything
    told.begin()
    pieces.restart()
    with _called(service, "Multiply", upload, timeout) as responses:
        _first(told, responses)
        for r in responses:
            told.down += len(r.chunk)
            pieces.add(r.chunk)
            told.answered(pieces.done)
    if pieces.done != told.plan.answers:
        raise told.bad(f"its answers end after {pieces.done} of {told.plan.answers}")


def asking(
    service: Service, told: Told, header: Message, *, parts: list[bytes], pieces: Pieces, timeout: float | None
) -> None:
    """Runs the end with the key. It closes its side when it has received everything, which tells the party so."""
    upload = _Upload(told, header, parts, linear_pb2.AskRequest)
    with _called(service, "Ask", upload, timeout) as responses:
        _receive(told, responses, pieces, upload.end.set)


def answering(
    service: Service,
    told: Told,
    header: Message,
    *,
    lines: list[Line],
    out: Words,
    timeout: float | None,
) -> None:
    """Runs the end with the matrix."""
    plan, t = told.plan, told.plan.params.t
    assert not isinstance(plan, ProductPlan)

    def take(g: int, data: bytes) -> None:
        try:
            shares = unpack(data, plan.results(g), t)
        except ValueError as error:
            raise BadAnswersError(f"shares of which {error}") from None
        plan.put(g, shares, out)

    pieces = Pieces(lambda g: size(plan.results(g), t), take, plan.answers)
    upload = _Upload(told, header, (b for line in lines for b in line.packed()), linear_pb2.AnswerRequest)
    upload.end.set()
    with _called(service, "Answer", upload, timeout) as responses:
        _receive(told, responses, pieces, lambda: None)


def _receive(told: Told, responses: Any, pieces: Pieces, done: Callable[[], None]) -> None:
    """Receives terms and answers until the run is complete."""
    _first(told, responses)
    complete = False
    for r in responses:
        if complete:
            raise told.bad("it sends more after the end")
        told.down += len(r.chunk)
        pieces.add(r.chunk)
        told.answered(pieces.done)
        complete = r.complete
        if complete and (pieces.done != told.plan.answers):
            raise told.bad(f"its answers end after {pieces.done} of {told.plan.answers}")
        if complete:
            done()
    if not complete:
        raise told.bad("it ends before the run is complete")
