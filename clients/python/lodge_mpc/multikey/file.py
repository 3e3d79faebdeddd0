"""Files of ciphertexts in the format of the ``lodge mk`` commands.

A file consists of a line with its format, a line of JSON that describes the groups, and their encodings.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._proto.lodge.multikey.v1 import evaluation_pb2
from ..errors import BadAnswersError, ConfigError
from ..threshold.multikey import Batch, MultikeyCiphertext, MultikeySet, lookup_multikey
from .messages import Inputs, decoded, groups, size

_LINE = b"lodge multikey ciphertexts 1\n"
_MAX_HEAD, _MAX_GROUPS, _MAX_COUNT = 1 << 20, 1 << 12, 1 << 20
_NEXT = "`lodge mk` and write_inputs write such files"


@dataclass(frozen=True)
class InputsFile:
    """The content of a file."""

    params: MultikeySet
    crs: bytes  #: digest of the common reference string
    inputs: list[Batch | MultikeyCiphertext]

    def ciphertexts(self) -> list[MultikeyCiphertext]:
        """The ciphertext of each bit."""
        return [c for x in self.inputs for c in (x.ciphertexts() if isinstance(x, Batch) else [x])]


def write_inputs(path: str | Path, crs: bytes, inputs: Inputs) -> None:
    """Write batches and ciphertexts of one set to a new file."""
    if not inputs or len({x.params.name for x in inputs}) > 1:
        raise ConfigError("inputs of no set, or of several", "write those of one set to a file")
    head = {"set": inputs[0].params.name, "crs": crs.hex(), "groups": [_described(g) for g in groups(inputs)]}
    text = json.dumps(head, separators=(",", ":")).encode() + b"\n"
    if len(text) > _MAX_HEAD or len(head["groups"]) > _MAX_GROUPS:
        raise ConfigError(f"{len(head['groups'])} groups", "write several files")
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as f:
        f.write(_LINE + text)
        for x in inputs:
            f.write(x.encode())


def _described(g: evaluation_pb2.InputGroup) -> dict[str, Any]:
    form = "batch" if g.form == evaluation_pb2.INPUT_FORM_BATCH else "ciphertexts"
    return {"form": form, "count": g.count, "keys": [k.hex() for k in g.keys]}


def read_inputs(path: str | Path) -> InputsFile:
    """Read a file to its end.

    Raises:
        ConfigError: the file is invalid.
    """
    data = Path(path).read_bytes()
    try:
        return _read(data)
    except (ValueError, TypeError, KeyError, ConfigError, BadAnswersError) as error:
        what = error.what if isinstance(error, (ConfigError, BadAnswersError)) else error
        raise ConfigError(f"{path}: not a file of multi-key ciphertexts: {what}", _NEXT) from None


def _read(data: bytes) -> InputsFile:
    if not data.startswith(_LINE):
        raise ValueError(f"it does not begin with {_LINE[:-1].decode()!r}")
    end = data.find(b"\n", len(_LINE), len(_LINE) + _MAX_HEAD)
    if end < 0:
        raise ValueError("its header line does not end")
    line = data[len(_LINE) : end]
    h = json.loads(line)
    list_ = [_group(g) for g in h["groups"]]
    s, crs = lookup_multikey(h["set"]), bytes.fromhex(h["crs"])
    again = {"set": h["set"], "crs": crs.hex(), "groups": [{"form": f, "count": c, "keys": [k.hex() for k in keys]}
                                                           for f, c, keys in list_]}  # fmt: skip
    if json.dumps(again, separators=(",", ":")).encode() != line or len(crs) != 32 or len(list_) > _MAX_GROUPS:
        raise ValueError("its header line is not in canonical form")
    if s is None:
        raise ValueError(f"the set {h['set'][:40]!r} is not known")
    out, at = list[Batch | MultikeyCiphertext](), end + 1
    for i, (form, count, keys) in enumerate(list_):
        if at + size(s, form, count, keys) > len(data):
            raise ValueError(f"group {i} is cut short")
        part = data[at : at + size(s, form, count, keys)]
        found: list[Batch | MultikeyCiphertext] = [Batch.decode(s, part)] if form == "batch" else []
        found = found or [*decoded(s, form, count, part)]
        if any(x.keys != keys for x in found) or sum(map(len, found)) != count:
            raise ValueError(f"group {i} does not match its description")
        out, at = out + found, at + len(part)
    if at != len(data):
        raise ValueError("the ciphertexts are followed by more data")
    return InputsFile(s, crs, out)


def _group(g: dict[str, Any]) -> tuple[str, int, tuple[bytes, ...]]:
    form, count, keys = g["form"], g["count"], tuple(bytes.fromhex(k) for k in g["keys"])
    if form not in ("batch", "ciphertexts") or type(count) is not int or not 0 < count <= _MAX_COUNT:
        raise ValueError(f"a group of {count} in the form {form!r}")
    if any(len(k) != 32 for k in keys) or (form == "batch" and len(keys) != 1):
        raise ValueError("a key name is invalid")
    return form, count, keys
