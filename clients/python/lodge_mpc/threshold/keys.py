"""Threshold keys as described by their holders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TypeVar, overload

from .._proto.lodge.job.v1 import job_pb2
from .._proto.lodge.threshold.v1 import threshold_pb2
from ..errors import ConfigError, LodgeError
from ..reservation import AwayParty
from .bgv import BGVSet, lookup_bgv
from .multikey import MultikeySet, lookup_multikey
from .sets import MASKS, KeyLayout, ParameterSet, lookup

S = TypeVar("S", ParameterSet, BGVSet, MultikeySet)

FORMS = {name: getattr(job_pb2, f"MASK_FORM_{name.upper()}") for name in MASKS}


@dataclass(frozen=True)
class Masks:
    """The stock of masks of a quorum whose members are all up: the smallest number that one of them has."""

    quorum: tuple[int, ...]  #: places in the roster
    form: str  #: one of MASKS
    free: int
    failure_probability: float  #: of a decryption, with masks of the paper's form
    noise_bound: float  #: the largest noise for which that holds, as a part of the modulus


@dataclass(frozen=True)
class Key:
    """The reachable holders' common description of the keys of an epoch."""

    epoch: int
    state: str  #: locked, active, draining or retired
    params: str
    digest: bytes  #: of the public keys
    threshold: int  #: any threshold + 1 of the holders decrypt
    holders: tuple[int, ...]  #: places in the roster, by the number of their share; -1 for one that has left
    security: str  #: of key generation
    created: datetime  #: UTC
    key_bytes: int  #: of all public keys
    up: tuple[int, ...]  #: holders that have answered
    decrypted: Mapping[int, int]  #: by party: messages that it has answered for
    masks: tuple[Masks, ...]
    params_hash: bytes
    galois: tuple[int, ...] = ()  #: automorphisms that BGV keys have evaluation keys for
    flooded: Mapping[int, int] = field(default_factory=dict)  #: by party: BGV ciphertexts it has begun with flooding
    flooding_limit: Mapping[int, int] = field(default_factory=dict)  #: by party: how many of them it may; 0 is none

    @property
    def set(self) -> ParameterSet:
        """Return the parameter set of keys for LWE and ring ciphertexts.

        Raises:
            ConfigError: this client does not know the set, or the parties have a different one under its name.
        """
        if lookup_multikey(self.params) is not None:
            raise ConfigError(f"{self.params} is a set for multi-key ciphertexts", "use MultikeyClient")
        if lookup_bgv(self.params) is not None:
            raise ConfigError(f"{self.params} is a set of BGV", "use the calls for BGV")
        return self._same(lookup(self.params))

    @property
    def bgv(self) -> BGVSet | None:
        """Return the parameter set if it is one of BGV and BFV, and None otherwise.

        Raises:
            ConfigError: the parties have another one under its name.
        """
        s = lookup_bgv(self.params)
        return None if s is None else self._same(s)

    @property
    def multikey(self) -> MultikeySet | None:
        """Return the parameter set of a group for multi-key ciphertexts, which has masks and no keys, or None.

        Raises:
            ConfigError: the parties have another one under its name.
        """
        s = lookup_multikey(self.params)
        return None if s is None else self._same(s)

    @property
    def flooders(self) -> tuple[int, ...]:
        """Holders that are up and may flood. Holders of new shares may not if they held no share at first."""
        return tuple(p for p in self.up if self.flooding_limit.get(p))

    @property
    def layout(self) -> KeyLayout:
        """The division of the public keys into chunks."""
        return self.set.layout if self.bgv is None else self.bgv.layout(self.galois)

    def _same(self, s: S) -> S:
        if s.hash() != self.params_hash:
            raise ConfigError(
                f"the parties have different parameters under the name {self.params}", "use the client of their release"
            )
        return s


@dataclass(frozen=True)
class Keys(Sequence[Key]):
    """The threshold keys that parties know, by epoch: a sequence that also lists the unreachable parties."""

    keys: tuple[Key, ...]
    away: tuple[AwayParty, ...]
    disputes: Mapping[int, LodgeError] = field(default_factory=dict)  #: epochs of which parties say different things

    @overload
    def __getitem__(self, index: int) -> Key: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Key, ...]: ...
    def __getitem__(self, index: int | slice) -> Key | tuple[Key, ...]:
        return self.keys[index]

    def __len__(self) -> int:
        return len(self.keys)

    def find(self, epoch: int) -> Key:
        """Return the keys of an epoch, or with 0 the newest active keys, except groups.

        More than threshold of the holders must agree, so that at least one of them is honest.
        """
        return self._find(epoch, "threshold keys", group=False)

    def find_group(self, epoch: int = 0) -> Key:
        """Return the group for multi-key ciphertexts of an epoch, or with 0 the newest active one."""
        return self._find(epoch, "group for multi-key ciphertexts", group=True)

    def _find(self, epoch: int, what: str, *, group: bool) -> Key:
        if epoch in self.disputes:
            raise self.disputes[epoch]
        of = [k for k in self.keys if epoch or (lookup_multikey(k.params) is not None) == group]
        found = [k for k in of if k.epoch == epoch or (not epoch and k.state == "active")]
        if not found:
            raise LodgeError("not_found", f"no reachable party has such {what}{self._missing()}")
        key = found[-1]
        if len(key.up) <= key.threshold:
            raise LodgeError(
                "unavailable",
                f"{len(key.up)} of the holders of epoch {key.epoch} can be reached, but {key.threshold + 1} must "
                f"decrypt{self._missing()}",
                "start them again",
            )
        if key.multikey is None:
            _ = key.layout  # checks that this client knows the set
        return key

    def _missing(self) -> str:
        return "".join(f"; party {a.name}: {a.reason}" for a in self.away)


Said = Mapping[int, threshold_pb2.ListKeysResponse]


def merged(said: Said, names: Sequence[str]) -> tuple[tuple[Key, ...], dict[int, LodgeError]]:
    """Combine the parties' descriptions of keys, by their places in the roster.

    The second result lists the epochs about which parties disagree or give implausible descriptions. They may agree
    about the others.
    """
    by_epoch: dict[int, list[tuple[int, threshold_pb2.ThresholdKey]]] = {}
    for party, answer in sorted(said.items()):
        for k in answer.keys:
            by_epoch.setdefault(k.epoch, []).append((party, k))
    keys, disputes = [], {}
    for epoch, by in sorted(by_epoch.items()):
        try:
            if len({party for party, _ in by}) < len(by):
                raise _conflict(f"a party lists the keys of epoch {epoch} twice")
            keys.append(_merge(dict(by), names))
        except LodgeError as error:
            disputes[epoch] = error
    return tuple(keys), disputes


def _living(by: Mapping[int, threshold_pb2.ThresholdKey]) -> Mapping[int, threshold_pb2.ThresholdKey]:
    """Remove descriptions of erased keys if other parties have different keys under the same number."""
    digest = next((k.digest for k in by.values() if k.state != "retired"), None)
    return {p: k for p, k in by.items() if k.state != "retired" or digest is None or k.digest == digest}


def _merge(by: Mapping[int, threshold_pb2.ThresholdKey], names: Sequence[str]) -> Key:
    by = _living(by)
    first_party, first = next(iter(by.items()))
    for party, k in by.items():
        _check(k, party, names)
        if _identity(k) != _identity(first):
            raise _conflict(
                f"party {names[party]} disagrees about the keys of epoch {k.epoch} with party "
                f"{names[first_party]}: keys {k.digest[:8].hex()}, and keys {first.digest[:8].hex()}"
            )
    states = [k.state for k in by.values() if k.state != "active"]
    return Key(
        epoch=first.epoch,
        state=states[-1] if states else "active",
        params=first.params,
        digest=first.digest,
        threshold=first.threshold,
        holders=tuple(first.holders),
        security=first.keygen_security,
        created=first.created.ToDatetime(timezone.utc),
        key_bytes=first.key_bytes,
        up=tuple(by),
        decrypted={party: k.decrypted for party, k in by.items()},
        masks=_stock(by),
        params_hash=first.params_hash,
        galois=tuple(first.galois),
        flooded={party: k.flooded for party, k in by.items()},
        flooding_limit={party: k.flooding_limit for party, k in by.items()},
    )


def _identity(k: threshold_pb2.ThresholdKey) -> tuple[object, ...]:
    return k.params, k.params_hash, k.digest, k.threshold, tuple(k.holders), tuple(k.galois)


def _check(k: threshold_pb2.ThresholdKey, party: int, names: Sequence[str]) -> None:
    """Raise an error for descriptions with which a few parties could pass for more than threshold of the holders."""
    present = [p for p in k.holders if p >= 0]
    if any(p < -1 or p >= len(names) for p in k.holders):
        raise LodgeError(
            "conflict",
            f"party {names[party]} names holders that this client does not know",
            "check that the configuration lists the parties of the roster in order",
        )
    if party not in present:
        raise _conflict(f"party {names[party]} lists the keys of epoch {k.epoch}, although it holds no share of them")
    group = lookup_multikey(k.params) is not None  # no party holds another's secrets there
    bad = k.threshold != 1 or len(k.holders) < 2 if group else k.threshold < 1 or 2 * k.threshold >= len(k.holders)
    if bad or k.any_quorum != group or len(set(present)) < len(present):
        raise _conflict(
            f"party {names[party]} lists keys of epoch {k.epoch} with the threshold {k.threshold} among "
            f"{len(k.holders)} holders"
        )


def _conflict(what: str) -> LodgeError:
    return LodgeError("conflict", what, "ask the parties' operators; encrypt nothing until they agree")


def _stock(by: Mapping[int, threshold_pb2.ThresholdKey]) -> tuple[Masks, ...]:
    found: dict[tuple[tuple[int, ...], int], dict[int, threshold_pb2.MaskStock]] = {}
    for party, k in by.items():
        for m in k.masks:
            found.setdefault((tuple(m.quorum), m.form), {})[party] = m
    names = {form: name for name, form in FORMS.items()}
    out = []
    for (quorum, form), members in sorted(found.items(), key=lambda x: x[0]):
        if form in names and set(quorum) == set(members):  # all of its members have responded
            m, free = next(iter(members.values())), min(m.free for m in members.values())
            out.append(Masks(quorum, names[form], free, m.failure_probability, m.noise_bound))
    return tuple(out)
