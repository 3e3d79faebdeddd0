"""The configuration of a client: its identity and the addresses of its services."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from .errors import ConfigError


@dataclass(frozen=True)
class Server:
    """A coordinator or a party."""

    address: str  #: host:port
    identity: str  #: URI or DNS name that the server's certificate must carry; the address plays no part
    name: str = ""
    token_file: str | Path = ""  #: holds a bearer token for this server, instead of a certificate or beside one


@dataclass(frozen=True)
class Config:
    """The content of the file that ``lodge init`` writes as clients/NAME.yaml."""

    certificate: str | Path  #: PEM file: the client's chain, leaf first; empty if there is a token for every server
    key: str | Path  #: PEM file
    ca: str | Path  #: PEM file: authority of the coordinator's and the parties' certificates
    coordinator: Server | None = None
    parties: Sequence[Server] = field(default_factory=tuple)  #: in the order of the roster
    party: str = ""  #: name of the party whose shares this client draws
    name: str = ""
    tenant: str = ""  #: where a call names none
    params: str = ""  #: parameter set, where a call names none

    def __post_init__(self) -> None:
        if self.party and self.own is None:
            raise ConfigError(f"the configuration names no party {self.party!r}", "name one of parties")
        if not self.party and self.coordinator is None:
            raise ConfigError("the configuration names neither a coordinator nor a party", "name one or both")
        called = [self.coordinator] if self.coordinator else []
        called += [self.parties[self.own]] if self.own is not None else []
        if not self.certificate and not all(s.token_file for s in called):
            raise ConfigError("neither a certificate nor a token for every server", "name a certificate and its key")

    @property
    def own(self) -> int | None:
        """Index of the client's party; None if there is none."""
        return next((i for i, p in enumerate(self.parties) if p.name == self.party), None) if self.party else None

    @classmethod
    def load(cls, path: str | Path) -> Config:
        """Read a file strictly: unknown keys are errors. Paths in it are relative to its directory."""
        path = Path(path)
        try:
            data = _mapping(yaml.safe_load(path.read_text(encoding="utf-8")), str(path))
            tls = _mapping(data.pop("tls", None), "tls")
            certificate, key = (_path(path, tls.pop(k, "")) for k in ("certificate", "key"))
            ca = _path(path, tls.pop("ca"))
            _nothing_left(tls)
            coordinator = _server(path, data.pop("coordinator", None), "coordinator")
            parties = tuple(_server(path, p, "parties") for p in data.pop("parties", None) or ())
            name, tenant, params, party = (str(data.pop(k, "")) for k in ("name", "tenant", "params", "party"))
            _nothing_left(data)
        except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
            raise ConfigError(f"configuration {path}: {error}", "`lodge init` writes one for every client") from error
        known = coordinator if coordinator.address else None
        return cls(certificate, key, ca, known, parties, party, name, tenant, params)

    def with_changes(self, **changes: Any) -> Config:
        """Return a copy with other values."""
        unknown = set(changes) - {f.name for f in fields(self)}
        if unknown:
            raise ConfigError(f"a configuration has no {', '.join(sorted(unknown))}")
        return replace(self, **changes)


def _mapping(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{what} is not a mapping")
    return dict(value)


def _nothing_left(value: Mapping[str, Any]) -> None:
    if value:
        raise TypeError(f"unknown key {next(iter(value))!r}")


def _path(file: Path, value: object) -> str | Path:
    return file.parent / str(value) if value else ""


def _server(file: Path, value: object, what: str) -> Server:
    if value is None:
        return Server("", "")
    data = _mapping(value, what)
    address, identity, name = str(data.pop("address")), str(data.pop("identity")), str(data.pop("name", ""))
    server = Server(address, identity, name, _path(file, data.pop("token_file", "")))
    _nothing_left(data)
    return server
