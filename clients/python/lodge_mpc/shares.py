"""One party's shares of a reservation, as numpy arrays."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ._proto.lodge.tuples.v1 import tuples_pb2
from .channel import Patience, Service
from .errors import BadSharesError, LodgeError
from .fields import layout, modulus
from .reservation import Reservation

Limbs = npt.NDArray[np.uint64]
Values = npt.NDArray[Any]


class Shares:
    """This party's additive shares of ``len(self)`` tuples: all parties' shares of a value add up to it mod modulus.

    A value and its MAC share are attributes, by the kind of the tuples:

    =========== ==================== ================================================================
    kind        values               relation of the sums over the parties
    =========== ==================== ================================================================
    scalar      ``a``, ``b``, ``c``  c = a b
    matrix      ``a``, ``b``, ``c``  the same, as matrices
    convolution ``x``, ``w``, ``y``  y is the convolution of the image x with the kernels w
    square      ``a``, ``a2``        a2 = a a
    inverse     ``a``, ``a_inv``     a a_inv = 1
    random      ``a``
    bit         ``a``                a is 0 or 1
    input       ``a``                at the owning party, ``clear`` is the plaintext value, not a share
    =========== ==================== ================================================================

    For each value ``x`` there is ``mac_x``, a share of alpha x with the MAC key alpha (``Client.mac_key_share``).

    Shapes: ``(n,)``; for matrices ``(n, rows, columns)``; for convolutions, images are ``(n, channels, height,
    width)``, kernels ``(n, outputs, channels, height, width)`` and results ``(n, outputs, height, width)``. Elements
    are below the modulus. In fields of 64 bits the arrays are uint64 and views of the received bytes; convert with
    ``.astype(object)`` before you add or multiply. In larger fields they are arrays of Python's ints (dtype object),
    created on first use. ``raw`` returns uint64 limbs without a copy in every field.

    Shares are secret, and printing this object reveals none.
    """

    reservation: Reservation
    modulus: int

    def __init__(self, reservation: Reservation, own: int | None, tuple_bytes: int) -> None:
        c = reservation.tuples
        self.reservation = reservation
        self.modulus = modulus(c.params, c.field)
        self._layout = layout(c.kind, c.shape, c.input_party is not None and c.input_party == own, c.convolution)
        self._limbs = math.ceil(self.modulus.bit_length() / 64)
        elements = sum(math.prod(shape) for shape in self._layout.values())
        if tuple_bytes != 8 * self._limbs * elements:
            raise BadSharesError(f"a {c.kind} tuple has {8 * self._limbs * elements} bytes, not {tuple_bytes}")
        if reservation.count == 0:
            raise BadSharesError("the reservation has no tuples")
        self._words: Limbs = np.empty((reservation.count, elements, self._limbs), dtype="<u8")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the values and MACs."""
        return tuple(self._layout)

    def __len__(self) -> int:
        return self.reservation.count

    def __repr__(self) -> str:
        r = self.reservation
        return (
            f"<{r.count} {r.tuples.kind} tuples over {r.tuples.field} of reservation {r.id}: {', '.join(self.names)}>"
        )

    def __getattr__(self, name: str) -> Values:
        if name.startswith("_") or name not in self._layout:
            raise AttributeError(f"{self.reservation.tuples.kind} tuples have no {name}" if name[0] != "_" else name)
        words = self.raw(name)
        values: Values = words[..., 0] if self._limbs == 1 else _integers(words)
        self.__dict__[name] = values
        return values

    def __getitem__(self, name: str) -> Values:
        value: Values = getattr(self, name)
        return value

    def raw(self, name: str) -> Limbs:
        """Limbs of a value's shares, least significant first: uint64 of shape (n, limbs), or for matrices (n, rows,
        columns, limbs). The result is a view of the received bytes; nothing is copied.
        """
        at = 0
        for key, shape in self._layout.items():
            size = math.prod(shape)
            if key == name:
                return self._words[:, at : at + size].reshape((len(self), *shape, self._limbs))
            at += size
        raise KeyError(name)

    def wipe(self) -> None:
        """Overwrite the shares in this object with zeros. Python's ints created from them are not overwritten."""
        for name in self._layout:
            self.__dict__.pop(name, None)
        self._words.fill(0)


def _integers(words: Limbs) -> Values:
    """Return Python's ints from little-endian limbs along the last axis."""
    size = 8 * words.shape[-1]
    data = np.ascontiguousarray(words).tobytes()
    out = np.empty(len(data) // size, dtype=object)
    out[:] = [int.from_bytes(data[i : i + size], "little") for i in range(0, len(data), size)]
    return out.reshape(words.shape[:-1])


class Download:
    """Draws a reservation into memory, and resumes broken streams."""

    def __init__(self, party: Service, reservation: str, own: int | None, patience: Patience) -> None:
        self._party, self._id, self._own, self._patience = party, reservation, own, patience
        self._shares: Shares | None = None
        self._digest = b""
        self._tuple_bytes = 0
        self._data = memoryview(b"")
        self._got = 0  # bytes

    def run(self) -> Shares:
        while True:
            try:
                return self._stream()
            except LodgeError as error:
                self._patience.after(error)

    def _stream(self) -> Shares:
        start, skip = 0, 0
        if self._shares is not None:
            # If all bytes have been received but not their sum, the last tuple is requested again.
            start = min(self._got // self._tuple_bytes, len(self._shares) - 1)
            skip = self._got - start * self._tuple_bytes
        request = tuples_pb2.FetchRequest(reservation_id=self._id, **{"from": start})
        self._patience.attempt()
        call = self._party.stream("Fetch", request, self._patience.left())
        try:
            with self._party.errors_of(call):
                return self._receive(call, skip)
        finally:
            call.cancel()

    def _receive(self, call: Any, skip: int) -> Shares:
        shares, total = None, hashlib.sha256()
        for message in call:
            if shares is None:
                shares = self._begin(message)
                continue
            chunk = memoryview(message.chunk)
            total.update(chunk)
            again = min(skip, len(chunk))
            skip, chunk = skip - again, chunk[again:]
            end = self._got + len(chunk)
            if end > len(self._data):
                raise BadSharesError(f"the party sends more than {len(self._data)} bytes")
            self._data[self._got : end] = chunk
            if len(chunk) > 0:
                self._got = end
                self._patience.renew()
            if message.sha256:
                if message.sha256 != total.digest():
                    raise BadSharesError("the shares differ from their checksum")
                if self._got != len(self._data):
                    raise BadSharesError(f"the party sent {self._got} bytes of {len(self._data)}")
                return shares
        raise LodgeError("unavailable", "the stream ended without its checksum")

    def _begin(self, head: tuples_pb2.FetchResponse) -> Shares:
        if head.reservation.id != self._id:
            raise BadSharesError(f"the party sends reservation {head.reservation.id!r}")
        if self._shares is None:
            self._shares = Shares(Reservation.of(head.reservation), self._own, head.tuple_bytes)
            self._tuple_bytes, self._digest = head.tuple_bytes, head.reservation.digest
            self._data = self._shares._words.reshape(-1).view(np.uint8).data
        elif head.reservation.digest != self._digest or head.tuple_bytes != self._tuple_bytes:
            raise BadSharesError(f"the party changed reservation {self._id} between two streams")
        return self._shares
