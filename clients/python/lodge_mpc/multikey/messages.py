"""The parties' messages about keys for multi-key ciphertexts, and about evaluations of netlists."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from .._proto.lodge.multikey.v1 import evaluation_pb2, keys_pb2
from ..errors import BadAnswersError, LodgeError
from ..threshold import SealedAnswers
from ..threshold.multikey import Batch, MultikeyCiphertext, MultikeySet

_STATES = {
    evaluation_pb2.EVALUATION_STATE_WAITING: "waiting",
    evaluation_pb2.EVALUATION_STATE_RUNNING: "running",
    evaluation_pb2.EVALUATION_STATE_DONE: "done",
    evaluation_pb2.EVALUATION_STATE_FAILED: "failed",
    evaluation_pb2.EVALUATION_STATE_CANCELLED: "cancelled",
}

Inputs = Sequence[Batch | MultikeyCiphertext]


@dataclass(frozen=True)
class OwnKeys:
    """A version of a party's own keys, as reported by the party."""

    version: int
    state: str  #: active or retired
    key: bytes  #: the name, which ciphertexts have
    params: str
    created: datetime  #: UTC
    pinned: bool  #: of the set and reference string that the party's roster pins
    reason: str  #: why they were retired


@dataclass(frozen=True)
class PublishedKeys:
    """A version of an owner's keys, as known by the party that listed it."""

    owner: int  #: place in the roster
    name: str
    version: int
    key: bytes
    state: str  #: current, superseded or revoked
    present: bool  #: whether that party has the keys themselves
    weak_owner: bool = False  #: bound to 32 bits of the owner's signing key only; the owner should make other keys


@dataclass(frozen=True)
class Cost:
    """The cost of an evaluation."""

    gates: int
    levels: int
    bootstraps: int
    rotations: int
    memory_bytes: int
    result_bytes: int
    seconds: float  #: at that party, once it has begun; 0 where it has not measured yet


@dataclass(frozen=True)
class Evaluation:
    """An evaluation of a netlist at a party."""

    request_id: bytes
    state: str  #: waiting, running, done, failed or cancelled
    done: int  #: gates
    cost: Cost
    netlist_digest: bytes
    result_digest: bytes  #: of one that is done
    groups: tuple[tuple[str, int, tuple[bytes, ...]], ...]  #: of the result: form, count and names of keys
    error: LodgeError | None  #: of one that has failed, or was cancelled

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True)
class Result:
    """Output bits of a netlist, each under the keys of the inputs it depends on."""

    ciphertexts: list[MultikeyCiphertext]
    digest: bytes  #: as the party has said, and as these have
    evaluation: Evaluation


@dataclass(frozen=True)
class OpenedBits:
    """The result of a decryption."""

    bits: list[int]  #: none where they are sealed
    quorums: list[tuple[int, ...]]  #: who has decrypted, of each set of keys
    epoch: int  #: of the group; 0 where everybody could read the bits
    sealed: SealedAnswers | None = None  #: for the recipient, who reads them with Recipient.open


def result_digest(ciphertexts: Sequence[MultikeyCiphertext]) -> bytes:
    """Return the digest by which results and decryption requests name ciphertexts: SHA-256 over the SHA-256 of
    each.
    """
    return hashlib.sha256(b"".join(hashlib.sha256(c.encode()).digest() for c in ciphertexts)).digest()


def own(k: keys_pb2.MultikeyKeys) -> OwnKeys:
    created = k.created.ToDatetime(timezone.utc)
    return OwnKeys(k.version, k.state, k.key, k.params, created, k.pinned, k.reason)


def cost(c: evaluation_pb2.EvaluationCost) -> Cost:
    return Cost(c.gates, c.levels, c.bootstraps, c.rotations, c.memory_bytes, c.result_bytes, c.seconds)


def evaluation(j: evaluation_pb2.EvaluationJob) -> Evaluation:
    state = _STATES.get(j.state, "waiting")
    error = None
    if state == "failed":
        error = LodgeError(j.code or "internal", j.what, j.next)
    elif state == "cancelled":
        error = LodgeError("cancelled", "the evaluation was cancelled", "submit it again")
    results = tuple(
        ("batch" if g.form == evaluation_pb2.INPUT_FORM_BATCH else "ciphertexts", g.count, tuple(g.keys))
        for g in j.results
    )
    return Evaluation(j.request_id, state, j.done, cost(j.cost), j.netlist_digest, j.result_digest, results, error)


def groups(inputs: Inputs) -> list[evaluation_pb2.InputGroup]:
    """Return descriptions of the inputs: each batch alone, and consecutive ciphertexts together."""
    out = list[evaluation_pb2.InputGroup]()
    for x in inputs:
        batch = isinstance(x, Batch)
        form = evaluation_pb2.INPUT_FORM_BATCH if batch else evaluation_pb2.INPUT_FORM_CIPHERTEXTS
        if not batch and out and out[-1].form == form and tuple(out[-1].keys) == x.keys:
            out[-1].count += 1
        else:
            out.append(evaluation_pb2.InputGroup(form=form, count=len(x), keys=x.keys))
    return out


def size(s: MultikeySet, form: str, count: int, keys: tuple[bytes, ...]) -> int:
    """Return the size of a group of a result."""
    if len(keys) > s.parties:
        raise BadAnswersError(f"a result under {len(keys)} keys")
    return s.batch_size(count) if form == "batch" else count * s.ciphertext_size(len(keys))


def decoded(s: MultikeySet, form: str, count: int, data: bytes) -> list[MultikeyCiphertext]:
    """Return the ciphertexts of a group of a result."""
    if form == "batch":
        return Batch.decode(s, data).ciphertexts()
    each = max(1, len(data) // max(1, count))
    return [MultikeyCiphertext.decode(s, data[at : at + each]) for at in range(0, len(data), each)]
