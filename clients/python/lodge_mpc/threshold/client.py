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

ATTEMPTS = 8  # maximal number of quorums to try
MOST_REFUSED = 64  # additional quorums that may refuse because the ciphertext already has one
PAUSE = 0.2  # increase of the delay from one attempt to the next, in seconds
GRACE = 0.3  # seconds to wait for other parties' errors after a failure

# Errors after which another quorum, or the same one later, may succeed.
_WORTH_ANOTHER = {"unavailable", "timed_out", "out_of_stock", "busy", "quarantined", "stopped", "excluded"}
_WORTH_ANOTHER |= {"mask_spent", "bad_answers"}


@dataclass(frozen=True)
class Decryption:
    """The result of a request."""

    messages: list[int]  #: of each ciphertext in turn; of BGV ciphertexts values in the encoding
    quorum: tuple[int, ...]


class ThresholdClient:
    """A client connected to all parties.

    Calls raise LodgeError. A client may be used by several threads concurrently. Use it in a ``with`` statement, or
    close it.

    Args:
        config: configuration of a client that may decrypt, with all parties in the order of the roster.
        patience: seconds in which a party must respond before others are used instead.
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
        """Create a client from a file such as ``clients/app.yaml``, which ``lodge init`` writes."""
        return cls(Config.load(path), patience=patience)

    def __enter__(self) -> ThresholdClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end all calls."""
        for service in self._parties:
            service.close()

    def keys(self) -> Keys:
        """Return the threshold keys that the parties know, by epoch.

        The result lists unreachable parties in ``away``, and epochs about which parties disagree in
        ``disputes``.
        """
        said, errors = self._ask_all(self._list)
        if not said:
            raise self._failed(0, errors[0])
        away = (AwayParty(i, self._names[i], f"{e.code}: {e.what}") for i, e in errors.items())
        keys, disputes = merged(said, self._names)
        return Keys(keys, tuple(away), disputes)

    def key(self, epoch: int = 0) -> Key:
        """Return the keys of an epoch; 0 is the newest active one. More than threshold of the holders must agree.

        Raises:
            LodgeError: ``not_found``; ``unavailable`` if too few of the holders are up; ``conflict`` if parties
                disagree.
        """
        return self.keys().find(epoch)

    def public_key(self, key: Key, *, timeout: float | None = None) -> PublicKey:
        """Download the public key of an epoch from one of the holders.

        Raises:
            BadKeysError: the last holder sent a key other than that on which the holders agree.
        """
        s, (chunk, digest, header, digests) = key.set, self._public(key, timeout)
        return PublicKey.received(s, digest, header, digests, chunk)

    def _public(self, key: Key, timeout: float | None) -> tuple[bytes, bytes, bytes, list[bytes]]:
        """Download chunk 0 of the keys, their digest, the header, and the digests of all chunks, and compare them."""
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

        Incomplete data is kept in a file with the suffix ``.part``, and the next call continues with it. If a holder
        fails, the next one is used for the missing chunks. Every chunk is compared with its digest.

        Args:
            key: as returned by key or keys.
                path: path of the file. It is for programs that compute with ciphertexts; ``read_public_key`` reads its
                public key.
            evaluation: include the evaluation keys, which are large; otherwise only the public key.
            progress: called with the number of chunks received, and their total.
            timeout: seconds.
        """
        download, end = KeyDownload(key, path, evaluation, progress), _end(timeout)
        if download.missing:
            self._from_a_holder(key, lambda service: download.take_from(service, _left(end)))
        download.finish()

    def bgv_public_key(self, key: Key, *, timeout: float | None = None) -> BGVPublicKey:
        """Download the public key of an epoch of BGV keys from one of the holders.

        Raises:
            BadKeysError: the last holder sent a key other than that on which the holders agree.
        """
        s = key.bgv
        if s is None:
            raise ConfigError(f"{key.params} is not a set of BGV", "ask for its public_key")
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

        If one of its parties cannot be reached, or its masks run out, another quorum is tried. The parties of a quorum
        give the same answers to a repeated request of the same client for the same ciphertexts.

        Args:
            key: as returned by key or keys.
            ciphertexts: LWE ciphertexts, of one message each, ring ciphertexts, or BGV ciphertexts of one level.
            coefficients: only for ring and BGV ciphertexts: the number of messages of each to open, from the first
                one.
            flooding: decrypt whole BGV ciphertexts with added noise instead of masks, where the parties' policies
                allow it. A ciphertext stays with one quorum forever, which the client finds.
            encoding: encoding of the messages, by default "plain". Padded ciphertexts are doubled, which makes them
                plain ones; messages of boolean ones are 0 and 1. For BGV ciphertexts "coefficients" or "slots".
            masks: "exact", or "paper" for masks that cost less and fail with a small probability.
            quorum: the parties that decrypt, by place in the roster; by default one that is up and has masks.
            provenance: the origin of the ciphertexts, for policies that require it.
            owners: the place in the roster of each key's owner, by key name: if key is a group, and the ciphertexts
                are multi-key ciphertexts under the same keys. ``MultikeyClient.decrypt`` finds groups and owners.
            timeout: seconds.

        Raises:
            LodgeError: ``out_of_stock`` (masks), ``unavailable``, ``policy_refused``, ``approval_needed``,
                ``already_delivered`` (to another client), ``foreign_ciphertext`` and other errors of the parties.
            BadAnswersError: the parties' answers do not add up to valid messages.
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
        """Have a quorum decrypt for a recipient, to whose public key the parties seal their answers.

        This client learns no message. The recipient opens them with ``Recipient.open``, or ``lodge decrypt open``.

        Args:
            recipient: public key, as returned by ``Recipient.public`` or ``read_recipient``.
            key: this and the other arguments are those of decrypt.
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
        """Try quorums until one has answered, and return the result of finish."""
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
                if last.code == "out_of_stock":  # no quorum has masks for this many messages
                    again = quorum is None
                    empty.add(chosen)
                if last.code == "wrong_quorum" and request.flooding and quorum is None and len(empty) < MOST_REFUSED:
                    empty.add(chosen)  # the next quorum may be the one that has the ciphertext
                    if _flooding(key, failures, empty) is not None:
                        continue
            except LodgeError as error:
                last = error
                # A party that is down may come back, with its masks.
                waits = error.code == "out_of_stock" and len(key.up) < len(key.holders)
                again = waits or isinstance(error, RunsDifferError)
            pause, attempt = attempt * PAUSE, attempt + 1
            if not again or attempt == ATTEMPTS or (end is not None and time.monotonic() + pause >= end):
                raise last
            time.sleep(pause)
            try:
                key = self.key(key.epoch)  # the stock, and the parties that are up, have changed
            except LodgeError as error:
                raise error from last

    def _failed(self, party: int, error: LodgeError) -> LodgeError:
        """Return the error of a call of a party."""
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
            # The party may be back without having been tried.
            answer = service.call("ListKeys", request, max(0.0, end - time.monotonic()), wait=True)
        assert isinstance(answer, threshold_pb2.ListKeysResponse)
        return answer

    def _ask_all(self, ask: Callable[[Service, float], T]) -> tuple[dict[int, T], dict[int, LodgeError]]:
        """Return the responses that arrive within the patience, and the errors of the other parties."""
        end = time.monotonic() + self.patience
        pool = ThreadPoolExecutor(len(self._parties))
        futures = [pool.submit(ask, service, end) for service in self._parties]
        wait(futures, timeout=self.patience)
        pool.shutdown(wait=False, cancel_futures=True)
        errors = _errors(futures, LodgeError("timed_out", f"no answer within {self.patience} s"))
        return {i: f.result() for i, f in enumerate(futures) if i not in errors}, errors

    def _from_a_holder(self, key: Key, fetch: Callable[[Service], T]) -> T:
        """Return the result of the first holder, among those that are up, that succeeds."""
        last = LodgeError("unavailable", "no holder can be reached")
        for party in key.up:
            try:
                return fetch(self._parties[party])
            except LodgeError as error:
                last = self._failed(party, error)
        raise last

    def _ask_quorum(self, request: Request, quorum: Sequence[int], end: float | None) -> tuple[Question, list[bytes]]:
        """Send a request to all parties of a quorum concurrently. If one fails, do not wait for the others."""
        if any(not 0 <= p < len(self._parties) for p in quorum):
            raise ConfigError(f"a quorum of {list(quorum)} among {len(self._parties)} parties", "parties count from 0")
        question = request.question(quorum)
        header = request.header(question)
        calls = [Call(self._parties[p]) for p in quorum]
        pool = ThreadPoolExecutor(len(calls))
        futures = [pool.submit(call.run, request, header, _left(end)) for call in calls]
        if any(f.exception() for f in wait(futures, return_when=FIRST_EXCEPTION).done):
            wait(futures, timeout=GRACE)  # other parties may know the cause
            for call in calls:
                call.cancel()
        pool.shutdown(wait=False, cancel_futures=True)
        errors = _errors(futures, LodgeError("cancelled", "another party has failed"))
        if errors:
            worst = max(errors, key=lambda i: _weight(errors[i]))
            raise _PartyError(quorum[worst], errors[worst])
        return question, [f.result() for f in futures]


class _PartyError(Exception):
    """The most informative failure of a quorum's parties."""

    def __init__(self, party: int, error: LodgeError) -> None:
        super().__init__(str(error))
        self.party, self.error = party, error


def _errors(futures: Sequence[Future[T]], late: LodgeError) -> dict[int, LodgeError]:
    """Return the errors of the calls that failed or are not done."""
    out = {}
    for i, future in enumerate(futures):
        if not future.done() or future.cancelled():
            out[i] = late
        elif isinstance(error := future.exception(), LodgeError):
            out[i] = error
    return out


def _weight(error: LodgeError) -> int:
    """Rank errors by how informative they are about the cause."""
    return {"cancelled": 0, "timed_out": 1, "unavailable": 2}.get(error.code, 3)


def _end(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(end: float | None) -> float | None:
    return None if end is None else max(0.0, end - time.monotonic())


def _choose(key: Key, request: Request, failures: Counter[int], empty: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Choose, among the quorums that are up, one whose members failed least, and of these the one with most masks.

    If no quorum has masks, choose one that has not been tried yet and may have answered before: repeated answers
    need no masks.
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
            f"create masks with `lodge keys masks {key.epoch}`",
        )
    return max(stocked, key=rank).quorum


def _choose_owners(key: Key, request: Request, failures: Counter[int], empty: set[tuple[int, ...]]) -> tuple[int, ...]:
    """Choose, among the quorums with masks that include all owners of the keys, the smallest.

    If no quorum has masks, choose the owners, who may have answered before, plus another party if there is only one
    owner.
    """
    owners = sorted({owner for _, owner in request.multikey})
    for p in owners:
        what = f"party {p}, an owner of the ciphertexts' keys, "
        if p not in key.holders:
            raise LodgeError("wrong_quorum", f"{what}is not in the group of epoch {key.epoch}", "create another")
        if p not in key.up:
            raise LodgeError("unavailable", f"{what}cannot be reached", "retry when it is up: it is needed")
    fit = [m for m in key.masks if m.form == "exact" and m.free > 0 and set(owners) <= set(m.quorum)]
    stocked = [m for m in fit if m.quorum not in empty]
    if stocked:
        return min(stocked, key=lambda m: (len(m.quorum), max(failures[p] for p in m.quorum), -m.free)).quorum
    others = [p for p in sorted(key.up) if p not in owners]
    quorum = tuple(sorted(owners + others[: max(0, 2 - len(owners))]))
    if len(quorum) < 2 or quorum in empty:
        raise LodgeError(
            "out_of_stock",
            f"no quorum of epoch {key.epoch} that is up and includes the owners {owners} has masks",
            f"create masks with `lodge keys masks {key.epoch} --quorum`",
        )
    return quorum


def _flooding(key: Key, failures: Counter[int], refused: set[tuple[int, ...]]) -> tuple[int, ...] | None:
    """Choose, among the permitted quorums that have not refused, the first one whose members failed least.

    Without failures it is always the same quorum, because a ciphertext stays with its quorum. If too few holders are
    permitted, the parties of another quorum report it.
    """
    among = key.flooders if len(key.flooders) > key.threshold else key.up
    others = [q for q in combinations(sorted(among), key.threshold + 1) if q not in refused]
    return min(others, key=lambda q: max(failures[p] for p in q), default=None)
