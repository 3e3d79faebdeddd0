"""The primes of fields, and the layout of a tuple's elements (docs/reference/export-format.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import ConfigError
from .kinds import TABLE

if TYPE_CHECKING:
    from .reservation import Convolution

# Bits of the base of each parameter set; insecure sets are for tests.
_BASE_BITS = {"S13-8": 8, "S13-16": 16, "S14-32": 32, "S14-64": 64, "S15-128": 128}
_BASE_BITS |= {"insecure-6": 32, "insecure-8": 32, "insecure-11": 32, "insecure-8-16": 16, "insecure-8-64": 64}

# (x, M) of p = (2^base - x)^M + 1.
_FORMULAS: dict[int, dict[str, tuple[int, int]]] = {
    8: {"p64": (16, 8), "p128": (8, 16)},
    16: {
        "p64": (256, 4),
        "p128": (196, 8),
        "p256": (22, 16),
        "p512": (72, 32),
        "p1024": (28, 64),
        "p2048": (190, 128),
        "p4096": (288, 256),
    },
    32: {
        "p64": (5120, 2),
        "p128": (80, 4),
        "p256": (20, 8),
        "p512": (50, 16),
        "p1024": (174, 32),
        "p2048": (312, 64),
        "p4096": (572, 128),
    },
    64: {
        "p128": (3072, 2),
        "p256": (64, 4),
        "p512": (428, 8),
        "p1024": (8, 16),
        "p2048": (22, 32),
        "p4096": (56, 64),
    },
    128: {"p256": (40192, 2), "p512": (640, 4), "p1024": (48, 8), "p2048": (576, 16), "p4096": (990, 32)},
}


def modulus(params: str, field: str) -> int:
    """Return the prime of a field of a parameter set."""
    formula = _FORMULAS.get(_BASE_BITS.get(params, 0), {}).get(field)
    if formula is None:
        raise ConfigError(f"parameter set {params!r} has no field {field!r}, or this client is too old to know it")
    x, m = formula
    return int((2 ** _BASE_BITS[params] - x) ** m + 1)


Shape = tuple[int, ...]


def layout(
    kind: str, shape: tuple[int, int, int] | None, clear: bool, convolution: Convolution | None = None
) -> dict[str, Shape]:
    """Return the names of a record's values, in order, each with the shape of its elements; () for one element."""
    if kind not in TABLE:
        raise ConfigError(f"tuples of kind {kind!r} are not supported by this client")
    k, sides = TABLE[kind], dict[str, int]()
    if k.form == "matrices" and shape is not None:
        sides = dict(zip(("rows", "inner", "columns"), shape, strict=True))
    elif k.form == "convolutions" and convolution is not None:
        sides = convolution.sides
    elif k.form:
        raise ConfigError(f"tuples of kind {kind!r} without their shape")
    values: dict[str, Shape] = {name: tuple(sides[d] for d in dims) for name, dims in k.parts.items()}
    values |= {f"mac_{name}": s for name, s in values.items()}
    if clear:
        values["clear"] = ()
    return values
