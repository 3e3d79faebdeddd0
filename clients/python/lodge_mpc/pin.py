"""Verification of a server's certificate.

gRPC for Python compares the dialled host name with a certificate, and cannot compare a URI. So this module first
fetches the certificate over a separate TLS connection, verifies its chain, and compares its names with the identity in
the configuration. Then gRPC is configured to accept exactly that certificate.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from .config import Config, Server
from .errors import ConfigError, LodgeError

PROBE_TIME = 5.0  # seconds


@dataclass(frozen=True)
class Pin:
    """A server's certificate, verified."""

    certificate: bytes  #: PEM
    name: str  #: a DNS name or an address in it, for gRPC's own comparison


def fetch_pin(server: Server, config: Config) -> Pin:
    """Connect, and return the verified certificate.

    Raises:
        LodgeError: ``unavailable``; ``unauthenticated`` if the server does not have the configured identity.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the identity is compared below instead; the chain is verified
    context.set_alpn_protocols(["h2"])
    try:
        context.load_verify_locations(cafile=config.ca)
        if config.certificate:
            context.load_cert_chain(config.certificate, config.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"certificate, key or authority: {error}", "see tls in the configuration") from error
    host, _, port = server.address.rpartition(":")
    try:
        with (
            socket.create_connection((host.strip("[]"), int(port)), timeout=PROBE_TIME) as plain,
            context.wrap_socket(plain) as tls,
        ):
            names = list(_names(tls.getpeercert() or {}))
            leaf = tls.getpeercert(binary_form=True)
    except ssl.SSLCertVerificationError as error:
        raise LodgeError("unauthenticated", f"the certificate of {server.address}: {error.verify_message}") from error
    except ValueError as error:
        raise ConfigError(f"{server.address!r} is not host:port") from error
    except OSError as error:
        raise LodgeError("unavailable", f"{server.address}: {error}", "check that it runs and listens there") from error
    # A DNS name that looks like a URI is ignored: an authority may let anyone choose a DNS name.
    identities = [value for kind, value in names if kind == "URI" or (kind == "DNS" and not set(value) & set(":/"))]
    if server.identity not in identities:
        raise LodgeError(
            "unauthenticated", f"the certificate of {server.address} names {identities}, not {server.identity}"
        )
    hosts = [value for kind, value in names if kind in ("DNS", "IP Address") and "*" not in value]
    if not hosts or leaf is None:
        raise LodgeError(
            "unauthenticated",
            f"the certificate of {server.address} has no DNS name and no address, which gRPC for Python needs",
            "issue the server a certificate with its URI and a DNS name",
        )
    return Pin(ssl.DER_cert_to_PEM_cert(leaf).encode(), hosts[0])


def _names(certificate: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Return the alternative names, each with its kind."""
    for kind, value in certificate.get("subjectAltName", ()):
        yield str(kind), str(value)
