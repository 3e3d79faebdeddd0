"""The client of parties with their own keys."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from google.protobuf.message import Message

from .._proto.lodge.multikey.v1 import evaluation_pb2, keys_pb2, registry_pb2
from ..channel import Patience, Service, retried
from ..config import Config
from ..errors import BadAnswersError, BadKeysError, ConfigError, LodgeError
from ..threshold.client import ThresholdClient
from ..threshold.multikey import Batch, MultikeyCiphertext, MultikeySet, lookup_multikey
from ..threshold.recipient import SealedRequest, sealed_bits
from .download import KeysDownload, Progress
from .file import read_inputs, write_inputs
from .messages import (
    Cost,
    Evaluation,
    Inputs,
    OpenedBits,
    OwnKeys,
    PublishedKeys,
    Result,
    cost,
    decoded,
    evaluation,
    groups,
    own,
    result_digest,
    size,
)
from .netlist import checked
from .owners import owners_of

T = TypeVar("T")

MAX_BITS = 1 << 18  # maximal number of bits per call
_UPLOAD = 1 << 20  # bytes in one request


class MultikeyClient:
    """A client of all parties, for bits under their own keys.

    Calls raise LodgeError, and identify parties by their places in the roster. A client may be used by several threads
    concurrently. Use it in a ``with`` statement, or close it.

    Args:
        config: with all parties in the order of the roster.
        patience: seconds in which a party must respond.
    """

    def __init__(self, config: Config, *, patience: float = 3.0) -> None:
        self.threshold = ThresholdClient(config, patience=patience)  #: the same client, for groups and their masks
        self.patience = patience
        self._names = [p.name or str(i) for i, p in enumerate(config.parties)]

        def services(module: Any, name: str) -> list[Service]:
            return [Service(p, config, module.DESCRIPTOR.services_by_name[name]) for p in config.parties]

        self._keys = services(keys_pb2, "KeysService")
        self._registry = services(registry_pb2, "RegistryService")
        self._evaluation = services(evaluation_pb2, "EvaluationService")
        self._contexts: dict[int, tuple[MultikeySet, bytes]] = {}

    @classmethod
    def from_config(cls, path: str | Path, *, patience: float = 3.0) -> MultikeyClient:
        """Create a client from a file such as ``clients/app.yaml``, which ``lodge init`` writes."""
        return cls(Config.load(path), patience=patience)

    def __enter__(self) -> MultikeyClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end all calls."""
        self.threshold.close()
        for service in self._keys + self._registry + self._evaluation:
            service.close()

    def parameter_set(self, party: int) -> MultikeySet:
        """Return the set that a party's roster pins."""
        return self._context(party)[0]

    def keys(self, party: int) -> list[OwnKeys]:
        """Return a party's own keys by version, including retired ones."""
        return [own(k) for k in self._call(self._keys, party, "ListKeys", keys_pb2.ListKeysRequest()).keys]

    def make_keys(self, party: int, *, timeout: float = 300.0) -> OwnKeys:
        """Make a party generate keys of its own, which takes seconds. Needs the permission ``operate``."""
        request = keys_pb2.MakeKeysRequest(request_id=secrets.token_bytes(16))
        answer = self._call(self._keys, party, "MakeKeys", request, patience=timeout, timeout=timeout)
        return own(answer.keys)

    def encrypt(self, party: int, bits: Sequence[int], *, version: int = 0) -> Batch:
        """Have a party encrypt bits under its keys, by default those of the newest version.

        The party sees the bits. Needs the permission ``encrypt``. The call is not retried automatically.
        """
        if not 1 <= len(bits) <= MAX_BITS or any(b not in (0, 1) for b in bits):
            raise ConfigError(f"{len(bits)} bits", f"give 1 to {MAX_BITS} of 0 and 1")
        packed = sum(int(b) << i for i, b in enumerate(bits)).to_bytes((len(bits) + 7) // 8, "little")
        request = keys_pb2.EncryptRequest(version=version, count=len(bits), bits=packed)
        answer = self._once(self._keys, party, "Encrypt", request)
        s = lookup_multikey(answer.keys.params)
        if s is None:
            raise ConfigError(f"this client does not know the set {answer.keys.params}", "use one of their release")
        batch = self._read(party, lambda: Batch.decode(s, answer.batch))
        if len(batch) != len(bits) or batch.key != answer.keys.key:
            raise BadAnswersError(f"party {self._names[party]} returned a batch of other bits or keys")
        return batch

    def published(self, party: int) -> list[PublishedKeys]:
        """Return the keys of all parties that one of them knows."""
        answer = self._call(self._registry, party, "ListPublished", registry_pb2.ListPublishedRequest())
        return [PublishedKeys(k.owner, k.name, k.version, k.key, k.state, k.present, k.weak_owner) for k in answer.keys]

    def fetch_keys(
        self,
        key: bytes | PublishedKeys,
        path: str | Path,
        *,
        progress: Progress | None = None,
        timeout: float | None = None,
    ) -> None:
        """Download public keys into a file, as ``lodge mk registry fetch`` does.

        If a party fails or sends different data, the next one is used for the missing chunks. Incomplete data is kept
        in a file with the suffix ``.part``, and the next call continues with it. Keys already in the file are not
        downloaded again. Every chunk is compared with its digest, and the digests with the name of the keys.

        Args:
            key: the name of the keys, as in ciphertexts, or an entry of published, whose owner is tried first.
            path: path of the file.
            progress: called with the number of chunks received, and their total.
            timeout: seconds.

        Raises:
            BadKeysError: all parties that respond send different data.
            LodgeError: ``unknown_key``, ``retired_key``, ``unavailable``.
        """
        order = list(range(len(self._names)))
        if isinstance(key, PublishedKeys):
            order.sort(key=key.owner.__ne__)
            key = key.key
        if len(key) != 32:
            raise ConfigError(f"{len(key)} bytes are not a key name", "published lists them")
        download, waiting = KeysDownload(key, path, progress), self._patience(timeout)
        if download.complete:
            return
        while download.missing:
            errors = list[LodgeError]()
            for party in list(order):
                try:
                    context, left = self._context(party), waiting.left()
                    download.take_from(self._registry[party], *context, left, lambda have, of: waiting.renew())
                    break
                except LodgeError as error:
                    errors.append(self._named(party, error))
                    if isinstance(error, BadKeysError):
                        order.remove(party)
            else:
                waiting.attempt()
                waiting.after(next((e for e in errors if e.retry), errors[0]))
        download.finish()

    def estimate(self, party: int, netlist: str, inputs: Inputs) -> Cost:
        """Return the cost of an evaluation; no inputs are sent."""
        text = checked(netlist, inputs)
        header = self._header(party, secrets.token_bytes(16), text, inputs)

        def messages() -> Iterator[Message]:
            yield evaluation_pb2.EstimateRequest(header=header)
            for at in range(0, len(text), _UPLOAD):
                yield evaluation_pb2.EstimateRequest(chunk=text[at : at + _UPLOAD])

        return cost(self._send(party, "Estimate", messages).cost)

    def submit(self, party: int, netlist: str, inputs: Inputs, *, request_id: bytes = b"") -> Evaluation:
        """Have a party compute a netlist, without waiting for the result. Needs the permission ``evaluate``.

        Args:
            party: place in the roster.
            netlist: in Bristol Fashion, as described in docs/guides/multikey.md. It is validated before it is sent.
            inputs: all input bits in order: batches, and ciphertexts such as those of other results.
            request_id: 16 bytes; a request with the same id returns the same job.
        """
        text = checked(netlist, inputs)
        body = text + b"".join(x.encode() for x in inputs)
        header = self._header(party, request_id or secrets.token_bytes(16), text, inputs)

        def messages() -> Iterator[Message]:
            yield evaluation_pb2.SubmitRequest(header=header)
            for at in range(0, len(body), _UPLOAD):
                yield evaluation_pb2.SubmitRequest(chunk=body[at : at + _UPLOAD])

        return evaluation(self._send(party, "Submit", messages).job)

    def jobs(self, party: int) -> list[Evaluation]:
        """Return the client's evaluations at a party, latest first."""
        answer = self._call(self._evaluation, party, "ListJobs", evaluation_pb2.ListJobsRequest())
        return [evaluation(j) for j in answer.jobs]

    def job(self, party: int, request_id: bytes) -> Evaluation:
        """Return one of the client's evaluations."""
        request = evaluation_pb2.GetJobRequest(request_id=request_id)
        return evaluation(self._call(self._evaluation, party, "GetJob", request).job)

    def read(self, party: int, path: str | Path) -> list[Batch | MultikeyCiphertext]:
        """Read the inputs in a file of ``lodge mk`` or of write, which must be of a party's set and reference
        string.
        """
        f, (s, crs) = read_inputs(path), self._context(party)
        if f.params != s or f.crs != crs:
            raise ConfigError(
                f"{path}: ciphertexts of the set {f.params.name} and another reference string than the party's",
                f"party {self._names[party]} has the set {s.name}; have the bits encrypted by its cluster",
            )
        return f.inputs

    def write(self, party: int, path: str | Path, inputs: Inputs) -> None:
        """Write batches and ciphertexts of a party's set to a new file, which ``lodge mk`` can read."""
        s, crs = self._context(party)
        if any(x.params != s for x in inputs):
            raise ConfigError(f"inputs that are not of {s.name}", "write those of one set to a file")
        write_inputs(path, crs, inputs)

    def cancel(self, party: int, request_id: bytes) -> Evaluation:
        """Cancel a running evaluation."""
        request = evaluation_pb2.CancelJobRequest(request_id=request_id)
        return evaluation(self._call(self._evaluation, party, "CancelJob", request).job)

    def watch(self, party: int, request_id: bytes, *, timeout: float | None = None) -> Iterator[Evaluation]:
        """Yield an evaluation, about once a second when it has changed, until it ends. Resumes after broken
        connections.
        """
        waiting = self._patience(timeout)
        while True:
            try:
                request = evaluation_pb2.WatchJobRequest(request_id=request_id)
                stream = self._evaluation[self._place(party)].stream("WatchJob", request, waiting.left())
                try:
                    with self._evaluation[party].errors_of(stream):
                        for message in stream:
                            waiting.renew()
                            j = evaluation(message.job)
                            yield j
                            if j.ended:
                                return
                finally:
                    stream.cancel()
            except LodgeError as error:
                waiting.attempt()
                waiting.after(self._named(party, error))
            else:
                time.sleep(0.1)  # it ended without a result, for example because the party stopped

    def wait(
        self,
        party: int,
        request_id: bytes,
        *,
        progress: Callable[[Evaluation], None] | None = None,
        timeout: float | None = None,
    ) -> Evaluation:
        """Wait until an evaluation is done.

        Raises:
            LodgeError: the error of the evaluation, or ``cancelled``.
        """
        last = None
        for last in self.watch(party, request_id, timeout=timeout):
            if progress is not None:
                progress(last)
        assert last is not None
        if last.error is not None:
            raise self._named(party, last.error)
        return last

    def result(self, party: int, job: Evaluation, *, timeout: float | None = None) -> Result:
        """Download the result of a finished evaluation and verify its digest.

        Interrupted downloads are resumed.

        Raises:
            BadAnswersError: the ciphertexts do not match the digest.
        """
        if job.state != "done":
            raise ConfigError(f"the evaluation is {job.state}", "wait until it is done")
        s, data = self.parameter_set(party), bytearray()
        sizes = [size(s, *group) for group in job.groups]
        want, waiting = sum(sizes), self._patience(timeout)
        while len(data) < want:
            try:
                self._some(party, job.result_digest, data, want, waiting)
            except LodgeError as error:
                waiting.attempt()
                waiting.after(self._named(party, error))
        ciphertexts: list[MultikeyCiphertext] = []
        at = 0
        for (form, count, keys), length in zip(job.groups, sizes, strict=True):
            part = bytes(data[at : at + length])
            found = self._read(party, partial(decoded, s, form, count, part))
            if any(c.keys != keys for c in found):
                raise BadAnswersError(f"party {self._names[party]} sends ciphertexts under undeclared keys")
            ciphertexts, at = ciphertexts + found, at + length
        if result_digest(ciphertexts) != job.result_digest:
            raise BadAnswersError(f"party {self._names[party]} sends ciphertexts with a different digest")
        return Result(ciphertexts, job.result_digest, job)

    def evaluate(
        self,
        party: int,
        netlist: str,
        inputs: Inputs,
        *,
        progress: Callable[[Evaluation], None] | None = None,
        timeout: float | None = None,
    ) -> Result:
        """Have a party compute a netlist, wait, and download the result."""
        j = self.submit(party, netlist, inputs)
        return self.result(party, self.wait(party, j.request_id, progress=progress, timeout=timeout))

    def decrypt(
        self,
        ciphertexts: Sequence[MultikeyCiphertext],
        *,
        epoch: int = 0,
        quorum: Sequence[int] | None = None,
        recipient: bytes = b"",
        timeout: float | None = None,
    ) -> OpenedBits:
        """Have the owners of the keys decrypt, with one request for all ciphertexts under the same keys.

        Args:
            ciphertexts: results, or ``Batch.ciphertexts``.
            epoch: epoch of the group; 0 is the newest active one.
            quorum: the parties that decrypt, including the owners; default the smallest that has masks.
            recipient: public key to which the parties seal their answers, from ``read_recipient``. This client
                then learns no bits: ``sealed`` holds them, for ``Recipient.open`` and ``lodge decrypt open``.
            timeout: seconds, for each set of keys.

        Raises:
            LodgeError: ``unknown_key``, ``retired_key``, ``unavailable`` (an owner is down), ``out_of_stock`` (masks),
                ``policy_refused``, ``approval_needed`` and other errors of the parties.
        """
        bits, quorums, used = [0] * len(ciphertexts), list[tuple[int, ...]](), 0
        by_keys: dict[tuple[bytes, ...], list[int]] = {}
        for i, c in enumerate(ciphertexts):
            by_keys.setdefault(c.keys, []).append(i)
        for i in by_keys.pop((), []):
            bits[i] = ciphertexts[i].bit or 0
        if recipient and not by_keys:
            raise ConfigError("these bits are public", "decrypt them without a recipient")
        known, sealed, threshold = ["?" if c.keys else str(c.bit) for c in ciphertexts], list[SealedRequest](), 0
        owners = self._owners({k for keys in by_keys for k in keys}) if by_keys else {}
        for places in by_keys.values():
            group = self.threshold.keys().find_group(used if recipient and used else epoch)
            some, used = [ciphertexts[i] for i in places], group.epoch
            if recipient:
                said = self.threshold.decrypt_for(recipient, group, some, quorum=quorum, owners=owners, timeout=timeout)
                (r,) = said.requests
                sealed.append(replace(r, places=tuple(places)))
                params, threshold = group.params, group.threshold
                quorums.append(r.question.quorum)
                continue
            opened = self.threshold.decrypt(group, some, quorum=quorum, owners=owners, timeout=timeout)
            for i, bit in zip(places, opened.messages, strict=True):
                bits[i] = bit
            quorums.append(opened.quorum)
        if recipient:
            return OpenedBits([], quorums, used, sealed_bits(params, threshold, "".join(known), sealed))
        return OpenedBits(bits, quorums, used)

    def _owners(self, wanted: set[bytes]) -> dict[bytes, int]:
        return owners_of(wanted, self._names, lambda party: {k.key for k in self.keys(party)})

    def _context(self, party: int) -> tuple[MultikeySet, bytes]:
        """Return the set and the digest of the reference string that a party's roster pins."""
        if party not in self._contexts:
            answer = self._call(self._registry, party, "ListPublished", registry_pb2.ListPublishedRequest())
            s = lookup_multikey(answer.params)
            if s is None or s.hash() != answer.params_hash:
                raise ConfigError(
                    f"this client does not know the set {answer.params!r} as the parties define it",
                    "use the client of their release",
                )
            self._contexts[party] = s, answer.crs_digest
        return self._contexts[party]

    def _header(self, party: int, request_id: bytes, text: bytes, inputs: Inputs) -> evaluation_pb2.EvaluationHeader:
        s, crs = self._context(party)
        if any(x.params != s for x in inputs):
            raise ConfigError(f"inputs that are not of {s.name}", f"party {self._names[party]} computes with no others")
        return evaluation_pb2.EvaluationHeader(
            request_id=request_id, params_hash=s.hash(), crs_digest=crs, netlist_bytes=len(text), inputs=groups(inputs)
        )

    def _some(self, party: int, name: bytes, data: bytearray, want: int, waiting: Patience) -> None:
        """Download the missing part of a result."""
        service = self._evaluation[self._place(party)]
        request = evaluation_pb2.GetResultRequest(result_digest=name, offset=len(data))
        stream = service.stream("GetResult", request, waiting.left())
        try:
            with service.errors_of(stream):
                head = next(stream, None)
                if head is None or head.bytes != want:
                    raise BadAnswersError(f"party {self._names[party]} sends a different result than announced")
                for message in stream:
                    waiting.renew()
                    data += message.chunk
                    if len(data) > want:
                        raise BadAnswersError(f"party {self._names[party]} sends more than {want} bytes")
        finally:
            stream.cancel()
        if len(data) < want:
            raise LodgeError("unavailable", "the result ended too early", "retry")

    def _send(self, party: int, method: str, messages: Callable[[], Iterator[Message]]) -> Any:
        """Return the response to streamed requests; such calls are idempotent."""
        service = self._evaluation[self._place(party)]

        def attempt(timeout: float) -> Any:
            call = service.exchange(method, messages(), timeout)
            with service.errors_of(call):
                for answer in call:
                    return answer
            raise BadAnswersError(f"party {self._names[party]} does not answer")

        try:
            return retried(self._patience(None), attempt)
        except LodgeError as error:
            raise self._named(party, error) from None

    def _call(
        self,
        services: list[Service],
        party: int,
        method: str,
        request: Message,
        *,
        patience: float | None = None,
        timeout: float | None = None,
    ) -> Any:
        """Return the response to an idempotent call."""
        service, waiting = services[self._place(party)], self._patience(timeout, patience)
        try:
            return retried(waiting, lambda t: service.call(method, request, t))
        except LodgeError as error:
            raise self._named(party, error) from None

    def _once(self, services: list[Service], party: int, method: str, request: Message) -> Any:
        try:
            return services[self._place(party)].call(method, request, 25.0, wait=True)
        except LodgeError as error:
            raise self._named(party, error) from None

    def _patience(self, timeout: float | None, seconds: float | None = None) -> Patience:
        end = None if timeout is None else time.monotonic() + timeout
        return Patience(self.patience if seconds is None else seconds, end)

    def _place(self, party: int) -> int:
        if not 0 <= party < len(self._names):
            raise ConfigError(f"party {party} of {len(self._names)}", "parties count from 0")
        return party

    def _named(self, party: int, error: LodgeError) -> LodgeError:
        """Return the error of a call of a party."""
        if isinstance(error, BadKeysError):
            return BadKeysError(f"party {self._names[party]}: {error.what}")
        if isinstance(error, (BadAnswersError, ConfigError)) or error.what.startswith("party "):
            return error
        return LodgeError(error.code, f"party {self._names[party]}: {error.what}", error.next)

    def _read(self, party: int, read: Callable[[], T]) -> T:
        try:
            return read()
        except ConfigError as error:
            raise BadAnswersError(f"party {self._names[party]} sends {error.what}") from None
