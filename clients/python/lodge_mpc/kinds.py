"""The kinds of tuples. Generated from engine/kind by `make kinds`; do not edit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of tuples."""

    form: str  #: the shape of a class: "" for single elements, "matrices" or "convolutions"
    owned: bool  #: whether one party knows the values
    parts: dict[str, tuple[str, ...]]  #: the values of a record, in order, each with its dimensions


TABLE = {
    "scalar": Kind(
        form="",
        owned=False,
        parts={
            "a": (),
            "b": (),
            "c": (),
        },
    ),
    "matrix": Kind(
        form="matrices",
        owned=False,
        parts={
            "a": ("rows", "inner"),
            "b": ("inner", "columns"),
            "c": ("rows", "columns"),
        },
    ),
    "square": Kind(
        form="",
        owned=False,
        parts={
            "a": (),
            "a2": (),
        },
    ),
    "random": Kind(
        form="",
        owned=False,
        parts={
            "a": (),
        },
    ),
    "bit": Kind(
        form="",
        owned=False,
        parts={
            "a": (),
        },
    ),
    "inverse": Kind(
        form="",
        owned=False,
        parts={
            "a": (),
            "a_inv": (),
        },
    ),
    "input": Kind(
        form="",
        owned=True,
        parts={
            "a": (),
        },
    ),
    "convolution": Kind(
        form="convolutions",
        owned=False,
        parts={
            "x": ("channels", "height", "width"),
            "w": ("outputs", "channels", "kernel_height", "kernel_width"),
            "y": ("outputs", "out_height", "out_width"),
        },
    ),
}
