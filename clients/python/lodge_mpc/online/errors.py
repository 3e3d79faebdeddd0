"""The errors of an online phase. Each names its code, as all errors of this package do."""

from __future__ import annotations

from ..errors import LodgeError


class PeerError(LodgeError):
    """A peer's program cannot be reached, stopped, or sent something that the protocol does not allow.

    Attributes:
        peer: index of the peer's party.
    """

    def __init__(self, peer: int, code: str, what: str, next: str = "") -> None:
        super().__init__(code, f"party {peer}'s program {what}", next)
        self.peer = peer


class CheckFailedError(LodgeError):
    """An opened value did not match its MAC: some program sent a wrong share, and nobody can tell which.

    No value that depends on the wrong share was returned by ``open``, and the check reveals nothing about the MAC key.
    """

    def __init__(self) -> None:
        super().__init__(
            "check_failed",
            "the MAC check failed: a program sent a wrong share of an opened value",
            "ask the operators of the other parties; results that were returned before are right",
        )


class InconsistentError(LodgeError):
    """The programs received different broadcasts: one sent different values to different peers, or
    reported broadcasts that it did not receive.

    Attributes:
        peer: index of the party whose program reported other broadcasts than this one received.
    """

    def __init__(self, peer: int) -> None:
        super().__init__(
            "check_failed",
            f"party {peer}'s program received other messages than this one: some program sent different ones",
            "compare the programs' logs with the other parties",
        )
        self.peer = peer
