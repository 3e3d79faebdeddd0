"""Netlists in extended Bristol Fashion, parsed as parties do, to report mistakes before anything is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass

from ..errors import ConfigError

MAX_WIRES = 1 << 20
MAX_TEXT = 64 << 20  #: bytes

#: Number of operands of each gate. EQ has none, but a constant instead of a wire.
GATES = dict.fromkeys(("AND", "NAND", "OR", "NOR", "ANDNOT", "NOTAND", "ORNOT", "NOTOR", "XOR", "XNOR"), 2)
GATES |= {"MUX": 3, "INV": 1, "EQW": 1, "EQ": 0}


class NetlistError(ConfigError):
    """The text is not a valid netlist.

    Attributes:
        line: line of the mistake, from 1; 0 if the mistake concerns the whole netlist.
    """

    def __init__(self, what: str, line: int = 0) -> None:
        where = f"line {line}: " if line else ""
        super().__init__(f"invalid netlist: {where}{what}", "docs/guides/multikey.md describes netlists")
        self.line = line


@dataclass(frozen=True)
class Gate:
    """A gate, which sets the wire out."""

    op: str
    wires: tuple[int, ...]  #: that it takes; of EQ the constant
    out: int


@dataclass(frozen=True)
class Netlist:
    """A circuit in source form, except that a MAND gate is replaced by several AND gates."""

    wires: int
    inputs: tuple[int, ...]  #: bits of each value; the first wires
    outputs: tuple[int, ...]  #: the same of the last wires
    gates: tuple[Gate, ...]

    @property
    def input_bits(self) -> int:
        return sum(self.inputs)

    @property
    def output_bits(self) -> int:
        return sum(self.outputs)

    @classmethod
    def parse(cls, text: str) -> Netlist:
        """Read a netlist.

        Raises:
            NetlistError: the text is invalid, or parties do not support it.
        """
        if len(text.encode()) > MAX_TEXT:
            raise NetlistError(f"more than {MAX_TEXT} bytes")
        return _Parser(text).netlist()

    def text(self) -> str:
        """The netlist in the form that parties write."""
        out = [f"{len(self.gates)} {self.wires}"]
        out += [" ".join(map(str, (len(values), *values))) for values in (self.inputs, self.outputs)]
        for g in self.gates:
            out.append(" ".join(map(str, (len(g.wires), 1, *g.wires, g.out, g.op))))
        return "\n".join(out) + "\n"

    def digest(self) -> bytes:
        """The name of the netlist, which an Evaluation states too."""
        return hashlib.sha256(b"lodge netlist 1\n" + self.text().encode()).digest()


def checked(netlist: str, inputs: Sequence[Sized]) -> bytes:
    """Return the text of a netlist, after checking that its number of input bits is that of these inputs."""
    n, bits = Netlist.parse(netlist), sum(map(len, inputs))
    if bits != n.input_bits:
        raise ConfigError(f"{bits} input bits, but the netlist has {n.input_bits}", "give them all, in order")
    return netlist.encode()


class _Parser:
    """Reads a text line by line."""

    def __init__(self, text: str) -> None:
        self._lines, self._fields = self._split(text), list[str]()
        self._line = 0

    def _split(self, text: str) -> Iterator[tuple[int, list[str]]]:
        for i, line in enumerate(text.split("\n"), 1):
            fields = line.replace("\t", " ").replace("\r", " ").split(" ")
            if found := [f for f in fields if f]:
                yield i, found

    def _next(self, missing: str) -> None:
        found = next(self._lines, None)
        if found is None:
            raise NetlistError(missing, self._line + 1)
        self._line, self._fields = found

    def _wrong(self, what: str) -> NetlistError:
        return NetlistError(what, self._line)

    def _number(self, i: int) -> int:
        if i >= len(self._fields):
            raise self._wrong(f"{len(self._fields)} fields are too few")
        f = self._fields[i]
        if not (f.isascii() and f.isdigit()) or len(f) > 9 or (len(f) > 1 and f[0] == "0"):
            raise self._wrong(f"{f[:20]!r} is not a valid number")
        return int(f)

    def _exactly(self, count: int) -> None:
        if len(self._fields) != count:
            raise self._wrong(f"{len(self._fields)} fields, want {count}")

    def netlist(self) -> Netlist:
        self._next("no line")
        self._exactly(2)
        lines, wires = self._number(0), self._number(1)
        if not 1 <= wires <= MAX_WIRES or lines > wires:
            raise self._wrong(f"{lines} gates and {wires} wires, at most {MAX_WIRES}")
        inputs, outputs = self._values(wires, "input"), self._values(wires, "output")
        defined = bytearray(wires)
        defined[: sum(inputs)] = b"\1" * sum(inputs)
        gates = list[Gate]()
        for i in range(lines):
            self._next(f"{i} gates, want {lines}")
            for g in self._gates(wires):
                self._check(g, defined)
                gates.append(g)
        if next(self._lines, None) is not None:
            raise NetlistError(f"more than the {lines} gates", self._line + 1)
        if sum(inputs) + len(gates) != wires:
            raise NetlistError(f"inputs and gates define {sum(inputs) + len(gates)} wires, want {wires}")
        return Netlist(wires, inputs, outputs, tuple(gates))

    def _values(self, wires: int, what: str) -> tuple[int, ...]:
        self._next(f"no {what}s")
        count = self._number(0)
        self._exactly(1 + count)
        out = tuple(self._number(1 + i) for i in range(count))
        if not out or 0 in out or sum(out) > wires:
            raise self._wrong(f"{what}s of {sum(out)} bits in {count} values, but there are {wires} wires")
        return out

    def _check(self, g: Gate, defined: bytearray) -> None:
        for w in g.wires if g.op != "EQ" else ():
            if not defined[w]:
                raise self._wrong(f"wire {w} is used before its definition")
        if defined[g.out]:
            raise self._wrong(f"wire {g.out} is set already")
        defined[g.out] = 1

    def _gates(self, wires: int) -> list[Gate]:
        """The gates of a line: one, or several for MAND."""
        name, count, results = self._fields[-1], self._number(0), self._number(1)
        self._exactly(2 + count + results + 1)
        w = tuple(self._number(2 + i) for i in range(count + results))
        if out := [x for x in w if x >= wires]:
            raise self._wrong(f"wire {out[0]} of {wires}")
        if name == "MAND" and results and count == 2 * results:
            return [Gate("AND", (w[i], w[results + i]), w[count + i]) for i in range(results)]
        if name != "MAND" and name not in GATES:
            raise self._wrong(f"unknown gate {name[:20]!r}")
        if name == "MAND" or results != 1 or count != max(GATES[name], 1):
            raise self._wrong(f"{name} with {count} wires in and {results} out")
        if name == "EQ" and w[0] > 1:
            raise self._wrong(f"{w[0]} is not a bit")
        return [Gate(name, w[:-1], w[-1])]
