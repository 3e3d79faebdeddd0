"""The errors of this package."""

from __future__ import annotations

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from ._proto.lodge.status.v1.status_pb2 import ErrorDetail

RETRYABLE = frozenset({"unavailable", "timed_out", "busy", "rate_limited"})

# Codes for errors from gRPC itself.
_OF_GRPC = {
    grpc.StatusCode.UNAUTHENTICATED: "unauthenticated",
    grpc.StatusCode.PERMISSION_DENIED: "forbidden",
    grpc.StatusCode.INVALID_ARGUMENT: "invalid_request",
    grpc.StatusCode.RESOURCE_EXHAUSTED: "too_large",
    grpc.StatusCode.NOT_FOUND: "not_found",
    grpc.StatusCode.FAILED_PRECONDITION: "conflict",
    grpc.StatusCode.UNAVAILABLE: "unavailable",
    grpc.StatusCode.DEADLINE_EXCEEDED: "timed_out",
    grpc.StatusCode.CANCELLED: "cancelled",
}


class LodgeError(Exception):
    """The error of a failed call to Lodge.

    Attributes:
        code: stable name for programs, such as ``out_of_stock``, ``forbidden``, ``expired`` or ``already_delivered``.
        what: what happened, for people. It contains no secrets.
        next: what to do about it, or empty.
        retry: whether the same call may succeed later. The client has already retried for its patience.
    """

    def __init__(self, code: str, what: str, next: str = "") -> None:
        super().__init__(f"{code}: {what}" + (f" ({next})" if next else ""))
        self.code = code
        self.what = what
        self.next = next

    @property
    def retry(self) -> bool:
        return self.code in RETRYABLE


class ConfigError(LodgeError):
    """The configuration or the arguments are invalid; nothing was sent."""

    def __init__(self, what: str, next: str = "") -> None:
        super().__init__("invalid_request", what, next)


class BadSharesError(LodgeError):
    """The received shares differ from the party's description. They must not be used; draw them again."""

    def __init__(self, what: str) -> None:
        super().__init__("bad_shares", what, "draw the reservation again")


class BadKeysError(LodgeError):
    """The received keys are not those on which their holders agree. Encrypt nothing with them."""

    def __init__(self, what: str) -> None:
        super().__init__("bad_keys", what, "ask another holder, and tell the parties' operators")


class BadAnswersError(LodgeError):
    """The parties' answers are inconsistent or invalid."""

    def __init__(self, what: str, next: str = "ask another quorum, and tell the operators") -> None:
        super().__init__("bad_answers", what, next)


def from_rpc(error: grpc.RpcError) -> LodgeError:
    """Return the LodgeError for a failed call."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            detail = _detail(value)
            if detail is not None:
                return LodgeError(detail.code, detail.what, detail.next)
    return LodgeError(_OF_GRPC.get(error.code(), "internal"), error.details() or "the server gave no reason")


def _detail(status: bytes) -> ErrorDetail | None:
    """Return Lodge's detail in a google.rpc.Status, whose third field is a list of Any."""
    message = Empty.FromString(status)
    for field in UnknownFieldSet(message):
        if field.field_number == 3 and field.wire_type == 2:
            detail, packed = ErrorDetail(), Any.FromString(field.data)
            if packed.Unpack(detail) and detail.code:
                return detail
    return None
