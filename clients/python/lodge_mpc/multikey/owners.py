"""Whose multi-key keys are whose, as parties say."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import LodgeError


def owners_of(wanted: set[bytes], names: Sequence[str], keys: Callable[[int], set[bytes]]) -> dict[bytes, int]:
    """The places of those who say that keys are theirs: one of each that is wanted.

    Raises:
        LodgeError: nobody does, or several do.
    """
    owners, disputed, away = dict[bytes, int](), dict[bytes, int](), list[str]()
    for party, name in enumerate(names):
        try:
            for own in keys(party):
                if owners.setdefault(own, party) != party:
                    disputed[own] = party
        except LodgeError as error:
            away.append(f"{name} ({error.code})")
    for k in sorted(wanted & set(disputed)):
        raise LodgeError(
            "conflict",
            f"several parties say that the keys {k[:4].hex()} are theirs: {names[owners[k]]}, {names[disputed[k]]}",
            "ask their operators: `lodge mk registry list` shows at every party whose they are",
        )
    for k in sorted(wanted - set(owners)):
        if away:
            raise LodgeError(
                "unavailable",
                f"the keys {k[:4].hex()} are those of no party that answers; no answer of {', '.join(away)}",
                "ask again when all parties are up: without their owner nobody decrypts what is under keys",
            )
        raise LodgeError("unknown_key", f"the keys {k[:4].hex()} are those of no party", "have it encrypted anew")
    return owners
