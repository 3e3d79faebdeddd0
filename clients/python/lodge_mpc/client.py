"""Reserves and draws tuples."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType

from ._proto.lodge.stock.v1 import stock_pb2
from ._proto.lodge.tuples.v1 import tuples_pb2
from .channel import Patience, Service, retried
from .config import Config
from .errors import ConfigError, LodgeError
from .fields import modulus
from .kinds import TABLE
from .reservation import KINDS, Class, Convolution, Reservation, Stock
from .shares import Download, Shares


class Client:
    """A client of the coordinator and of one party.

    Calls are retried while the server is unavailable, busy or limits the rate, until no data has arrived for
    ``patience`` seconds or the call's own ``timeout`` (seconds, from its start) has passed. Calls raise LodgeError.
    A client may be used by several threads concurrently. Use it in a ``with`` statement, or close it.
    """

    def __init__(self, config: Config, *, patience: float = 30.0) -> None:
        self.config = config
        self.patience = patience
        self._coordinator = self._party = None
        if config.coordinator is not None:
            service = stock_pb2.DESCRIPTOR.services_by_name["StockService"]
            self._coordinator = Service(config.coordinator, config, service)
        if config.own is not None:
            service = tuples_pb2.DESCRIPTOR.services_by_name["TuplesService"]
            self._party = Service(config.parties[config.own], config, service)

    @classmethod
    def from_config(cls, path: str | Path, *, patience: float = 30.0) -> Client:
        """Create a client from a file such as those that ``lodge init`` writes to clients/."""
        return cls(Config.load(path), patience=patience)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end all calls."""
        for service in (self._coordinator, self._party):
            if service is not None:
                service.close()

    def reserve(
        self,
        kind: str,
        *,
        field: str,
        count: int,
        params: str | None = None,
        tenant: str | None = None,
        shape: tuple[int, int, int] | None = None,
        input_party: int | None = None,
        no_sacrifice: bool = False,
        convolution: Convolution | None = None,
        epoch: int = 0,
        lease: timedelta | None = None,
        clients: Sequence[str] = (),
        key: str | None = None,
        wait: bool = False,
        timeout: float | None = None,
    ) -> Reservation:
        """Reserve count tuples at all parties.

        Args:
            kind: one of KINDS.
            field: such as ``p128``, the field with a prime of 128 bits.
            count: number of tuples.
            params: parameter set; the default is the configuration's.
            tenant: the default is the configuration's.
            shape: (rows, inner, columns) for matrices: a is rows x inner, b is inner x columns.
            input_party: for input masks, the index of the party that knows the values.
            convolution: shape of convolutions, such as ``Convolution((3, 32, 32), 16, (3, 3), padding=(1, 1))``.
            no_sacrifice: only products that were made without a sacrifice.
            epoch: key epoch; 0 means the newest that has enough tuples.
            lease: how long the tuples are reserved; default 10 minutes.
            clients: names of the clients that may fetch. Empty means any client of the tenant, the
                first one at each party. Give one name for all parties, or one for each.
            key: idempotency key of up to 64 characters; the same key yields the same reservation. By default
                a key is generated, so that retries reserve once.
            wait: wait until there are enough tuples, at most for timeout.
            timeout: seconds.

        Raises:
            LodgeError: ``out_of_stock``, ``over_quota``, ``forbidden``, ``conflict`` (the key was used for another
                reservation), or an error that may be retried.
        """
        if kind not in KINDS:
            raise ConfigError(f"{kind!r} is not a kind of tuples", f"write one of {', '.join(KINDS)}")
        form = TABLE[kind].form
        if (shape is not None) != (form == "matrices") or (input_party is not None) != TABLE[kind].owned:
            raise ConfigError("only matrices have a shape, and only input masks have an input_party")
        if (convolution is not None) != (form == "convolutions"):
            raise ConfigError("only convolutions have the shape of one", "give convolution=Convolution(...)")
        params, tenant = params or self.config.params, tenant or self.config.tenant
        try:
            tuples = Class(kind, field, params, tenant, shape, input_party, no_sacrifice, convolution)
            request = stock_pb2.ReserveRequest(count=count, epoch=epoch, clients=clients, wait=wait)
            getattr(request, "class").CopyFrom(tuples.wire())
            if lease is not None:
                request.lease.FromTimedelta(lease)
        except (ValueError, TypeError) as error:
            raise ConfigError(str(error)) from error
        request.idempotency_key = key or secrets.token_hex(16)
        patience = self._patience(timeout)
        while True:
            try:
                answer = retried(patience, lambda limit: self._at_coordinator().call("Reserve", request, limit))
                return Reservation.of(answer.reservation)
            except LodgeError as error:
                left = patience.left()
                if not wait or error.code not in ("out_of_stock", "timed_out") or (left is not None and left <= 0):
                    raise
            time.sleep(0.1)  # the server has waited as long as it allows one call
            patience.renew()

    def fetch(self, reservation: Reservation | str, *, timeout: float | None = None) -> Shares:
        """Draw this party's shares of a reservation, given by its id or as returned by reserve.

        The party gives them to one client only; the same client may draw them again while the lease lasts, and gets
        the same bytes. A broken stream is resumed where it ended, even after a restart of the party. The data of each
        stream is compared with the party's SHA-256.

        Raises:
            LodgeError: ``not_found``, ``already_delivered`` (to another client), ``expired``, ``erased``, ``burnt``,
                ``conflict`` (a peer has different data for that id, or it was released), or one that may be retried.
            BadSharesError: the received data is not the announced data.
        """
        return Download(self._at_party(), _id(reservation), self.config.own, self._patience(timeout)).run()

    def reservation(self, reservation: Reservation | str, *, timeout: float | None = None) -> Reservation:
        """Return a reservation as this client's party recorded it. Its ``fetched_by`` says who has drawn it there.

        Raises:
            LodgeError: ``not_found``, ``forbidden``, or one that may be retried.
        """
        request = tuples_pb2.GetReservationRequest(id=_id(reservation))
        patience = self._patience(timeout)
        answer = retried(patience, lambda limit: self._at_party().call("GetReservation", request, limit))
        return Reservation.of(answer.reservation)

    def release(self, reservation: Reservation | str, *, timeout: float | None = None) -> bool:
        """End a reservation of this client. Returns True if no party had delivered it and its tuples are back in
        stock, and False if every party erases its shares.
        """
        request = stock_pb2.ReleaseRequest(id=_id(reservation))
        patience = self._patience(timeout)
        return bool(retried(patience, lambda limit: self._at_coordinator().call("Release", request, limit)).returned)

    def stock(self, epoch: int = 0, *, timeout: float | None = None) -> Stock:
        """Return the stock of each class and epoch, for all epochs or one: a sequence of StockLevel.

        Its as_of is the time of the counts, and its away lists the parties that the coordinator cannot reach. If the
        coordinator has not heard from all parties since it started, as_of and the levels' counts are None.
        """
        request = stock_pb2.GetStockRequest(epoch=epoch)
        patience = self._patience(timeout)
        answer = retried(patience, lambda limit: self._at_coordinator().call("GetStock", request, limit))
        return Stock.of(answer)

    def mac_key_share(self, key: Reservation | str, *, pool: bool = False, timeout: float | None = None) -> int:
        """Return this party's share of a MAC key, given by its id or by a reservation: a number below the prime.

        The parties' shares add up to alpha, modulo the prime.

        With pool the share is for pooling with the other parties' shares, to check tuples. The sum allows forgeries, so
        the party burns the key and retires its epoch, including all tuples left under it, before it releases the share.
        """
        purpose = tuples_pb2.PURPOSE_VERIFY if pool else tuples_pb2.PURPOSE_ONLINE
        request = tuples_pb2.DrawMacKeyRequest(mac_key_id=_mac_key(key), purpose=purpose)
        patience = self._patience(timeout)
        answer = retried(patience, lambda limit: self._at_party().call("DrawMacKey", request, limit))
        share = int.from_bytes(answer.share, "little")
        if share >= modulus(answer.params, answer.key.field):
            raise LodgeError("bad_shares", "the MAC-key share is not below the prime")
        return share

    def report_failed_check(self, key: Reservation | str, reason: str = "", *, timeout: float | None = None) -> int:
        """Burn a MAC key and all tuples under it at this party, because a failed online check reveals the key.

        Returns the number of revoked batches. The reason, of up to 1000 bytes, is written to the party's log.
        """
        request = tuples_pb2.ReportFailedCheckRequest(mac_key_id=_mac_key(key), reason=reason)
        patience = self._patience(timeout)
        answer = retried(patience, lambda limit: self._at_party().call("ReportFailedCheck", request, limit))
        return int(answer.batches)

    def _patience(self, timeout: float | None) -> Patience:
        return Patience(self.patience, None if timeout is None else time.monotonic() + timeout)

    def _at_coordinator(self) -> Service:
        if self._coordinator is None:
            raise ConfigError("the configuration has no coordinator", "add it to the configuration")
        return self._coordinator

    def _at_party(self) -> Service:
        if self._party is None:
            raise ConfigError("the configuration names no party to draw shares from", "set party in the configuration")
        return self._party


def _id(reservation: Reservation | str) -> str:
    return reservation if isinstance(reservation, str) else reservation.id


def _mac_key(key: Reservation | str) -> str:
    return key if isinstance(key, str) else key.mac_key_id
