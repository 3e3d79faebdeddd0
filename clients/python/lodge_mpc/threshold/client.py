"""The client of the holders of threshold keys."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from .._proto.lodge.threshold.v1 import threshold_pb2
from ..channel import Service
from ..config import Config
from ..errors import BadAnswersError, BadKeysError, ConfigError, LodgeError
from ..reservation import AwayParty
from .answers import RunsDifferError
from .bgv import BGVPublicKey
from .ciphertexts import PublicKey
from .download import KeyDownload, KeyStream, Progress
from .keys import Key, Keys, Masks, merged
from .question import Question
from .recipient import SealedAnswers, SealedRequest, check_public, sealed_bits
from .request import Call, Ciphertexts, Provenance, Request

T = TypeVar("T")

ATTEMPTS = 8  # quorums that are asked at most
MOST_REFUSED = 64  # and others that refuse as a ciphertext has its quorum already
PAUSE = 0.2  # seconds by which each attempt is waited for longer than the one before
GRACE = 0.3  # seconds for which the parties' own accounts of a failure are waited for

# Errors after which another quorum, or the same one later, may answer.
_WORTH_ANOTHER = {"unavailable", "timed_out", "out_of_stock", "busy", "quarantined", "stopped", "excluded"}
_WORTH_ANOTHER |= {"mask_spent", "bad_answers"}


@dataclass(frozen=True)
class Decryption:
    """What came of a request."""

    messages: list[int]  #: of each ciphertext in turn; of BGV ciphertexts values in the encoding
    quorum: tuple[int, ...]


class ThresholdClient:
    """A client of all parties.

    Calls raise LodgeError. A client may be used by several threads at once; use it in a ``with`` statement, or close
    it.

    Args:
        config: of a client that may have ciphertexts decrypted, with all parties in the order of the roster.
        patience: seconds in which a party must say that it is there, before others are asked instead.
    """

    def __init__(self, config: Config, *, patience: float = 3.0) -> None:
        if not config.parties:
            raise ConfigError("the configuration names no parties", "`lodge init` writes configurations of clients")
        if not config.certificate and not all(p.token_file for p in config.parties):
            raise ConfigError("neither a certificate nor a token for every party", "name a certificate and its key")
        self.config = config
        self.patience = patience
        service = threshold_pb2.DESCRIPTOR.services_by_name["ThresholdService"]
        self._names = [p.name or str(i) for i, p in enumerate(config.parties)]
        self._parties = [Service(p, config, service) for p in config.parties]

    @classmethod
    def from_config(cls, path: str | Path, *, patience: float = 3.0) -> ThresholdClient:
        """A client by a file such as ``clients/app.yaml``, which ``lodge init`` writes."""
        return cls(Config.load(path), patience=patience)

    def __enter__(self) -> ThresholdClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End the connections, and with them all calls."""
        for service in self._parties:
            service.close()

    def keys(self) -> Keys:
        """The threshold keys that the parties know, by epoch.

        Parties that cannot be reached are in its ``away``, and epochs of which parties say different things in its
        ``disputes``.
        """
        said, errors = self._ask_all(self._list)
        if not said:
            raise self._failed(0, errors[0])
        away = (AwayParty(i, self._names[i], f"{e.code}: {e.what}") for i, e in errors.items())
        keys, disputes = merged(said, self._names)
        return Keys(keys, tuple(away), disputes)

    def key(self, epoch: int = 0) -> Key:
        """The keys of an epoch; 0 is the newest that is active. More than threshold of the holders must say the same.

        Raises:
            LodgeError: ``not_found``; ``unavailable`` if too few of the holders are up; ``conflict`` if parties say
                different things.
        """
        return self.keys().find(epoch)

    def public_key(self, key: Key, *, timeout: float | None = None) -> PublicKey:
        """The public key of an epoch, from one of the holders.

        Raises:
            BadKeysError: the last holder that was asked sent another key than the holders agree on.
        """
        s, (chunk, digest, header, digests) = key.set, self._public(key, timeout)
        return PublicKey.received(s, digest, header, digests, chunk)

    def _public(self, key: Key, timeout: float | None) -> tuple[bytes, bytes, bytes, list[bytes]]:
        """Chunk 0 of the keys, their digest, the header, and the digests of all chunks, held against each other."""
        end = _end(timeout)

        def fetch(service: Service) -> tuple[bytes, bytes, bytes, list[bytes]]:
            chunk: list[bytes] = []
            stream = KeyStream(service, key, 0, 1, _left(end))
            stream.chunks(chunk.append)
            return chunk[0], key.digest, stream.header, stream.chunk_digests

        return self._from_a_holder(key, fetch)

    def fetch_keys(
        self,
        key: Key,
        path: str | Path,
        *,
        evaluation: bool = True,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> None:
        """Download the public keys of an epoch into a file, as ``lodge keys fetch`` does.

        What is not complete is in a file whose name ends in ``.part``, and the next call goes on with it. When a holder
        fails, the next one is asked for what is missing. Every chunk is compared with its digest.

        Args:
            key: as key or keys gave it.
            path: of the file. It is for programs that compute with ciphertexts; ``read_public_key`` reads the public
                key in it.
            evaluation: with the evaluation keys, which are large; otherwise the public key alone.
            progress: hears how many chunks there are, and of how many.
            timeout: seconds.
        """
        download, end = KeyDownload(key, path, evaluation, progress), _end(timeout)
        if download.missing:
            self._from_a_holder(key, lambda service: download.take_from(service, _left(end)))
        download.finish()

    def bgv_public_key(self, key: Key, *, timeout: float | None = None) -> BGVPublicKey:
        """The public key of an epoch of BGV keys, from one of the holders.

        Raises:
            BadKeysError: the last holder that was asked sent another key than the holders agree on.
        """
        s = key.bgv
        if s is None:
            raise ConfigError(f"{key.params} is no set of BGV", "ask for its public_key")
        chunk, digest, header, digests = self._public(key, timeout)
        return BGVPublicKey.received(
            s, layout=key.layout, digest=digest, header=header, chunk_digests=digests, first=chunk
        )

    def decrypt(
        self,
        key: Key,
        ciphertexts: Ciphertexts,
        *,
        coefficients: int | None = None,
        flooding: bool = False,
        encoding: str | None = None,
        masks: str = "exact",
        quorum: Sequence[int] | None = None,
        provenance: Provenance | None = None,
        owners: Mapping[bytes, int] | None = None,
        timeout: float | None = None,
    ) -> Decryption:
        """Have a quorum decrypt.

        If one of its parties cannot be reached, or its masks run out, the next quorum is asked. Asked again, the
        parties of a quorum give the same answers for the same ciphertexts, to the same client.

        Args:
            key: as key or keys gave it.
            ciphertexts: LWE ciphertexts, of one message each, ring ciphertexts, or BGV ciphertexts of one level.
            coefficients: of ring and BGV ciphertexts, and only they: how many messages of each are opened, from the
                first.
            flooding: have whole BGV ciphertexts decrypted with noise added in place of masks, where the parties' rules
                allow it. A ciphertext is decrypted so by one quorum for ever, which the client finds.
            encoding: of the messages, "plain" unless it is another. Padded ciphertexts are doubled, which makes them
                plain ones; of boolean ones the messages are 0 and 1. Of BGV ciphertexts "coefficients" or "slots".
            masks: "exact", or "paper" for masks that cost less and fail with a small probability.
            quorum: who decrypts, by their places in the roster; default one of those that are up and have masks.
            provenance: where the ciphertexts come from, for policies that ask.
            owners: of keys, by their names, places in the roster: where key is a group, and the ciphertexts are
                multi-key ciphertexts under the same keys. ``MultikeyClient.decrypt`` finds groups and owners.
            timeout: seconds.

        Raises:
            LodgeError: ``out_of_stock`` (masks), ``unavailable``, ``policy_refused``, ``approval_needed``,
                ``already_delivered`` (to another client), ``foreign_ciphertext`` and others that the parties give.
            BadAnswersError: what the parties have answered adds up to no messages.
        """
        request = Request(
            key, ciphertexts, encoding, coefficients=coefficients, flooding=flooding, masks=masks,
            provenance=provenance, owners=owners)  # fmt: skip
        return self._attempts(request, quorum, timeout, lambda q, parts: Decryption(request.opened(parts), q.quorum))

    def decrypt_for(
        self,
        recipient: bytes,
        key: Key,
        ciphertexts: Ciphertexts,
        *,
        coefficients: int | None = None,
        flooding: bool = False,
        encoding: str | None = None,
        masks: str = "exact",
        quorum: Sequence[int] | None = None,
        provenance: Provenance | None = None,
        owners: Mapping[bytes, int] | None = None,
        timeout: float | None = None,
    ) -> SealedAnswers:
        """Have a quorum decrypt for somebody else, to whose public key the parties seal their answers.

        This client learns no message. The recipient has them by ``Recipient.open``, or ``lodge decrypt open``.

        Args:
            recipient: public key, as ``Recipient.public`` or ``read_recipient`` gives it.
            key: and the others, as of decrypt.
        """
        check_public(recipient)
        request = Request(
            key, ciphertexts, encoding, coefficients=coefficients, flooding=flooding, masks=masks,
            provenance=provenance, recipient=recipient, owners=owners)  # fmt: skip

        def sealed(q: Question, parts: Sequence[bytes]) -> SealedAnswers:
            data = request.data if q.form == "bgv" else b""
            if q.form == "multikey":
                several = SealedRequest(q, tuple(parts), places=tuple(range(q.count)))
                return sealed_bits(key.params, key.threshold, "?" * q.count, [several])
            one = SealedRequest(q, tuple(parts), data)
            return SealedAnswers(key.params, key.threshold, request.encoding, q.count * q.each, q.each, (one,))

        return self._attempts(request, quorum, timeout, sealed)

    def _attempts(
        self,
        request: Request,
        quorum: Sequence[int] | None,
        timeout: float | None,
        finish: Callable[[Question, Sequence[bytes]], T],
    ) -> T:
        """Asks quorums until one has answered, and gives what finish makes of the answers."""
        key, end, failures, empty = request.key, _end(timeout), Counter[int](), set[tuple[int, ...]]()
        attempt = 0
        while True:
            last: LodgeError
            try:
                chosen = tuple(quorum) if quorum is not None else _choose(key, request, failures, empty)
                return finish(*self._ask_quorum(request, chosen, end))
            except _PartyError as failed:
                failures[failed.party] += 1
                last = self._failed(failed.party, failed.error)
                again = last.code in _WORTH_ANOTHER
                if last.code == "out_of_stock":  # for so many messages, whatever it has
                    again = quorum is None
                    empty.add(chosen)
                if last.code == "wrong_quorum" and request.flooding and quorum is None and len(empty) < MOST_REFUSED:
                    empty.add(chosen)  # perhaps the next is the one that has the ciphertext
                    if _flooding(key, failures, empty) is not None:
                        continue
            except LodgeError as error:
                last = error
                # A party that is down may be back, and with it masks.
                waits = error.code == "out_of_stock" and len(key.up) < len(key.holders)
                again = waits or isinstance(error, RunsDifferError)
            pause, attempt = attempt * PAUSE, attempt + 1
            if not again or attempt == ATTEMPTS or (end is not None and time.monotonic() + pause >= end):
                raise last
            time.sleep(pause)
            try:
                key = self.key(key.epoch)  # what is in stock, and who is up, has changed
            except LodgeError as error:
                raise error from last

    def _failed(self, party: int, error: LodgeError) -> LodgeError:
        """The error of a call of a party."""
        for kind in (BadKeysError, BadAnswersError):
            if isinstance(error, kind):
                return kind(f"party {self._names[party]}: {error.what}")
        return LodgeError(error.code, f"party {self._names[party]}: {error.what}", error.next)

    def _list(self, service: Service, end: float) -> threshold_pb2.ListKeysResponse:
        request = threshold_pb2.ListKeysRequest()
        try:
            answer = service.call("ListKeys", request, max(0.0, end - time.monotonic()))
        except LodgeError as error:
            if error.code != "unavailable":
                raise
            # It may be back, and nobody has tried.
            answer = service.call("ListKeys", request, max(0.0, end - time.monotonic()), wait=True)
        assert isinstance(answer, threshold_pb2.ListKeysResponse)
        return answer

    def _ask_all(self, ask: Callable[[Service, float], T]) -> tuple[dict[int, T], dict[int, LodgeError]]:
        """What each party answers within the patience, and the errors of the others."""
        end = time.monotonic() + self.patience
        pool = ThreadPoolExecutor(len(self._parties))
        futures = [pool.submit(ask, service, end) for service in self._parties]
        wait(futures, timeout=self.patience)
        pool.shutdown(wait=False, cancel_futures=True)
        errors = _errors(futures, LodgeError("timed_out", f"no answer within {self.patience} s"))
        return {i: f.result() for i, f in enumerate(futures) if i not in errors}, errors

    def _from_a_holder(self, key: Key, fetch: Callable[[Service], T]) -> T:
        """What the first holder gives that can, of those that are up."""
        last = LodgeError("unavailable", "no holder can be reached")
        for party in key.up:
            try:
                return fetch(self._parties[party])
            except LodgeError as error:
                last = self._failed(party, error)
        raise last

    def _ask_quorum(self, request: Request, quorum: Sequence[int], end: float | None) -> tuple[Question, list[bytes]]:
        """Asks all parties of a quorum at the same time. When one fails the others are not waited for."""
        if any(not 0 <= p < len(self._parties) for p in quorum):
            raise ConfigError(f"a quorum of {list(quorum)} among {len(self._parties)} parties", "parties count from 0")
        question = request.question(quorum)
        header = request.header(question)
        calls = [Call(self._parties[p]) for p in quorum]
        pool = ThreadPoolExecutor(len(calls))
        futures = [pool.submit(call.run, request, header, _left(end)) for call in calls]
        if any(f.exception() for f in wait(futures, return_when=FIRST_EXCEPTION).done):
            wait(futures, timeout=GRACE)  # others may know better why
            for call in calls:
                call.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        errors = _errors(futures, LodgeError("cancelled", "another party has failed"))
        if errors:
            worst = max(errors, key=lambda i: _weight(errors[i]))
            raise _PartyError(quorum[worst], errors[worst])
        return question, [f.result() for f in futures]


class _PartyError(Exception):
    """A party's failure, which says most of those of a quorum."""

    def __init__(self, party: int, error: LodgeError) -> None:
        super().__init__(str(error))
        self.party, self.error = party, error


def _errors(futures: Sequence[Future[T]], late: LodgeError) -> dict[int, LodgeError]:
    """The errors of those that have failed, or are not done."""
    out = {}
    for i, future in enumerate(futures):
        if not future.done() or future.cancelled():
            out[i] = late
        elif isinstance(error := future.exception(), LodgeError):
            out[i] = error
    return out


def _weight(error: LodgeError) -> int:
    """Orders errors by how much they say about the cause."""
    return {"cancelled": 0, "timed_out": 1, "unavailable": 2}.get(error.code, 3)


def _end(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def _choose(key: Key, request: Request, failures: Counter[int], empty: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Of the quorums whose members are up one whose members have failed least, and of these the one with most masks.

    Where none has masks, it is one that has not been asked yet and may have answered before: a repeat takes none.
    """

    if request.multikey:
        return _choose_owners(key, request, failures, empty)
    if request.flooding:
        found = _flooding(key, failures, empty)
        if found is None:
            raise LodgeError("unavailable", f"no other quorum of epoch {key.epoch} is up {list(key.up)}", "start them")
        return found

    def rank(m: Masks) -> tuple[int, int]:
        return -max(failures[p] for p in m.quorum), m.free

    stocked = [m for m in key.masks if m.form == request.masks and m.free > 0 and m.quorum not in empty]
    if not stocked and any(key.decrypted.get(p) for p in key.up):
        for quorum in combinations(sorted(key.up), key.threshold + 1):
            if quorum not in empty:
                return quorum
    if not stocked:
        raise LodgeError(
            "out_of_stock",
            f"no quorum of epoch {key.epoch} whose parties are up {list(key.up)} has enough {request.masks} masks",
            f"`lodge keys masks {key.epoch}` makes some",
        )
    return max(stocked, key=rank).quorum


def _choose_owners(key: Key, request: Request, failures: Counter[int], empty: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Of the quorums with all owners of the keys in them, and with masks, the smallest.

    Where none has masks it is the owners, who may have answered before, with another party if there is one owner.
    """
    owners = sorted({owner for _, owner in request.multikey})
    for p in owners:
        what = f"party {p}, whose keys the ciphertexts are under, "
        if p not in key.holders:
            raise LodgeError("wrong_quorum", f"{what}is not in the group of epoch {key.epoch}", "make a group with it")
        if p not in key.up:
            raise LodgeError("unavailable", f"{what}cannot be reached", "ask again when it is up: nobody else can")
    fit = [m for m in key.masks if m.form == "exact" and m.free > 0 and set(owners) <= set(m.quorum)]
    stocked = [m for m in fit if m.quorum not in empty]
    if stocked:
        return min(stocked, key=lambda m: (len(m.quorum), max(failures[p] for p in m.quorum), -m.free)).quorum
    others = [p for p in sorted(key.up) if p not in owners]
    quorum = tuple(sorted(owners + others[: max(0, 2 - len(owners))]))
    if len(quorum) < 2 or quorum in empty:
        raise LodgeError(
            "out_of_stock",
            f"no quorum of epoch {key.epoch} that is up and has the owners {owners} in it has masks",
            f"`lodge keys masks {key.epoch} --quorum` makes some",
        )
    return quorum


def _flooding(key: Key, failures: Counter[int], refused: set[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Of the quorums that may and have not refused, the first one whose members have failed least.

    Where nothing fails it is always the same, for a ciphertext stays with its quorum. Where too few may, the parties of
    another say so.
    """
    among = key.flooders if len(key.flooders) > key.threshold else key.up
    others = [q for q in combinations(sorted(among), key.threshold + 1) if q not in refused]
    return min(others, key=lambda q: max(failures[p] for p in q), default=None)
