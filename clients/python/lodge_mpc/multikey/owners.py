"""The owners of multi-key keys, as claimed by the parties."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..errors import LodgeError


def owners_of(wanted: set[bytes], names: Sequence[str], keys: Callable[[int], set[bytes]]) -> dict[bytes, int]:
    """Return the place of the party that claims each of the given keys.

    Raises:
        LodgeError: no party claims a key, or several do.
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
            f"several parties claim the keys {k[:4].hex()}: {names[owners[k]]}, {names[disputed[k]]}",
            "ask their operators: `lodge mk registry list` shows the owner at every party",
        )
    for k in sorted(wanted - set(owners)):
        if away:
            raise LodgeError(
                "unavailable",
                f"no party that responded owns the keys {k[:4].hex()}; no answer of {', '.join(away)}",
                "retry when all parties are up: ciphertexts can only be decrypted with the owner of their keys",
            )
        raise LodgeError("unknown_key", f"no party owns the keys {k[:4].hex()}", "encrypt the inputs again")
    return owners
