#!/usr/bin/env python3
"""Check MP-SPDZ preprocessing files of all parties against each other.

Give the Player-Data trees of all parties: one directory that holds every party's files, or one for each party. A
directory may be Player-Data itself, its subdirectory <n>-p-<bits>, or the parent of Player-Data.

The checker reads all data: headers, the prime, the shares of the MAC key, and every record, which it opens. For each
value it checks the MAC and the relation of its kind: c = a b, a square, a bit, an inverse, a matrix product, an input
mask's plaintext value. Random values must be fresh: a factor that is zero, or that occurred before in any file, is
refused, and so are bits whose first shares repeat. The exit status is 1 if data is wrong, missing, left over or empty.

This tool needs every party's shares in one place. Use shares checked this way only for trials.

Only Python's standard library is used, and no code that wrote the files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO

BUFFERED = 101  # shares that MP-SPDZ reads at a time
MIN_PRIME_BITS, MAX_PRIME_BITS = 64, 256  # of stock builds of MP-SPDZ
COMPARED = 1 << 20  # records of a file that are compared; honest ones of ten files repeat with probability 2^-16
N = r"(?:0|[1-9][0-9]{0,8})"
DIRECTORY = re.compile(rf"({N})-p-({N})")
DATA = re.compile(
    rf"(?:(?P<stem>Triples|Squares|Bits|Inverses)-p-P(?P<party>{N})"
    rf"|(?P<inputs>Inputs)-p-P(?P<input_party>{N})-(?P<owner>{N})"
    rf"|(?P<matrix>Matrix-(?P<rows>{N})x(?P<inner>{N})x(?P<cols>{N}))-P(?P<matrix_party>{N}))(?P<suffix>-T{N})?"
)
KEYS = re.compile(rf"Player-MAC-Keys-p-P({N})")
VALUES = {"Triples": 3, "Squares": 2, "Bits": 1, "Inverses": 2, "Inputs": 1}


class Bad(Exception):
    """The files are invalid; the message states where."""


@dataclass
class Report:
    """The verdict on the files of one kind, which all parties have one of."""

    name: str
    files: list[str]
    records: int = 0
    usable: int = 0
    ok: bool = False
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Group:
    """The content of files that belong together."""

    name: str  # without party
    stem: str
    values: int  # of a record
    shape: tuple[int, int, int] = (0, 0, 0)
    owner: int | None = None


@dataclass
class Tree:
    """All parties' files over one prime."""

    parties: int
    prime: int
    width: int  # bytes of an element
    unmont: int  # R^-1 mod p
    keys: dict[int, int]
    data: dict[Group, dict[int, Path]]
    seen: set[bytes] = field(default_factory=set)  # digests of random values, of all kinds

    @property
    def alpha(self) -> int:
        return sum(self.keys.values()) % self.prime


@cache
def is_prime(n: int) -> bool:
    """Miller-Rabin with the first 40 primes as bases: a composite of no adversary's making does not pass."""
    small = [p for p in range(2, 174) if all(p % q for q in range(2, p))]
    if n < 2 or any(n % p == 0 for p in small):
        return n in small
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for base in small:
        x = pow(base, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def find_directories(roots: list[Path]) -> list[Path]:
    """The directories <n>-p-<bits> that the arguments stand for."""
    found: list[Path] = []
    for root in roots:
        if DIRECTORY.fullmatch(root.resolve().name):
            found.append(root)
            continue
        inside = root / "Player-Data" if (root / "Player-Data").is_dir() else root
        if not inside.is_dir():
            raise Bad(f"{inside} is no directory")
        matches = sorted(d for d in inside.iterdir() if d.is_dir() and DIRECTORY.fullmatch(d.name))
        if not matches:
            raise Bad(f"no directory like 2-p-128 in {inside}")
        found.extend(matches)
    return found


def canonical_int(text: str, what: str) -> int:
    if not re.fullmatch(r"0|[1-9][0-9]*", text):
        raise Bad(f"{what} is not a decimal number")
    return int(text)


def read_params(directory: Path, bits: int) -> int:
    path = directory / "Params-Data"
    lines = path.read_bytes().decode("latin-1").split("\n")
    if len(lines) != 3 or lines[1:] != ["1", ""]:
        raise Bad(f"{path} is not a prime, a line with 1 and nothing else")
    prime = canonical_int(lines[0], f"the prime in {path}")
    if prime.bit_length() != bits:
        raise Bad(f"{path}: a number of {prime.bit_length()} bits in a directory for {bits}")
    if not MIN_PRIME_BITS <= prime.bit_length() <= MAX_PRIME_BITS or prime % 2 == 0 or not is_prime(prime):
        raise Bad(f"{path}: not a prime that MP-SPDZ can use")
    return prime


def read_key(path: Path, parties: int, prime: int) -> int:
    match = re.fullmatch(r"([0-9]+) ([0-9]+)\n", path.read_bytes().decode("latin-1"))
    if not match or canonical_int(match[1], f"the number of parties in {path}") != parties:
        raise Bad(f"{path} is not the number of parties and a key share")
    key = canonical_int(match[2], f"the key share in {path}")
    if key >= prime:
        raise Bad(f"{path}: the key share is not below the prime")
    return key


def group_of(name: str) -> tuple[Group, int] | None:
    """Return the content and owner of a file by its name; None for a name that no data file has."""
    m = DATA.fullmatch(name)
    if m is None:
        return None
    suffix = m["suffix"] or ""
    if m["stem"]:
        return Group(m["stem"] + suffix, m["stem"], VALUES[m["stem"]]), int(m["party"])
    if m["inputs"]:
        owner = int(m["owner"])
        return Group(f"Inputs of {owner}{suffix}", "Inputs", 1, owner=owner), int(m["input_party"])
    r, k, c = int(m["rows"]), int(m["inner"]), int(m["cols"])
    if not r * k * c:
        return None
    return Group(m["matrix"] + suffix, "Matrix", r * k + k * c + r * c, (r, k, c)), int(m["matrix_party"])


def load(directories: list[Path]) -> Tree:
    """Read everything but the data files, and sort these."""
    names = {d.resolve().name for d in directories}
    if len(names) != 1:
        raise Bad(f"these belong to different runs: {', '.join(sorted(names))}")
    match = DIRECTORY.fullmatch(names.pop())
    assert match
    parties, bits = int(match[1]), int(match[2])
    primes = {read_params(d, bits) for d in directories}
    if len(primes) != 1:
        raise Bad("the trees have different primes")
    prime = primes.pop()
    width = 8 * ((bits + 63) // 64)
    tree = Tree(parties, prime, width, pow(1 << 8 * width, -1, prime), {}, {})
    for path in sorted(p for d in directories for p in d.iterdir()):
        if path.name == "Params-Data":
            continue
        key, data = KEYS.fullmatch(path.name), group_of(path.name)
        if key:
            party = int(key[1])
            if party in tree.keys:
                raise Bad(f"party {party} has two shares of the MAC key")
            tree.keys[party] = read_key(path, parties, prime)
        elif data:
            group, party = data
            files = tree.data.setdefault(group, {})
            if party in files:
                raise Bad(f"{files[party]} and {path} are the same file of one party")
            files[party] = path
        else:
            raise Bad(f"{path} is no file that this program knows")
    if sorted(tree.keys) != list(range(parties)):
        raise Bad(f"MAC keys of parties {sorted(tree.keys)}, not of all {parties}")
    if tree.alpha == 0:
        raise Bad("the shares of the MAC key add up to zero")
    if not tree.data:
        raise Bad("there are no data files")
    return tree


def header(tree: Tree, party: int) -> bytes:
    """Return the required beginning of a party's data files."""
    length = (tree.prime.bit_length() + 7) // 8
    key = (tree.keys[party] << 8 * tree.width) % tree.prime
    rest = b"SPDZ gfp" + b"\0" + length.to_bytes(4, "little") + tree.prime.to_bytes(length, "big")
    rest += (1).to_bytes(4, "little") + key.to_bytes(tree.width, "little")
    return len(rest).to_bytes(8, "little") + rest


def elements(tree: Tree, file: BinaryIO, path: Path, count: int) -> Iterator[list[int]]:
    """The records of a file, each of count elements."""
    size = count * tree.width
    while record := file.read(size):
        if len(record) != size:
            raise Bad(f"{path} ends in the middle of a record")
        values = [int.from_bytes(record[i : i + tree.width], "little") for i in range(0, size, tree.width)]
        if any(v >= tree.prime for v in values):
            raise Bad(f"{path}: an element is not below the prime")
        yield [v * tree.unmont % tree.prime for v in values]


def triple(v: list[int], p: int, _: Group) -> bool:
    return v[0] * v[1] % p == v[2]


def square(v: list[int], p: int, _: Group) -> bool:
    return v[0] * v[0] % p == v[1]


def bit(v: list[int], _p: int, _: Group) -> bool:
    return v[0] in (0, 1)


def inverse(v: list[int], p: int, _: Group) -> bool:
    return v[0] * v[1] % p == 1


def matrix(v: list[int], p: int, group: Group) -> bool:
    r, k, c = group.shape
    a, b, product = v[: r * k], v[r * k : r * k + k * c], v[r * k + k * c :]
    columns = [b[j::c] for j in range(c)]
    for i in range(r):
        row = a[i * k : (i + 1) * k]
        for j, column in enumerate(columns):
            if sum(x * y for x, y in zip(row, column)) % p != product[i * c + j]:
                return False
    return True


RELATIONS: dict[str, tuple[str, Callable[[list[int], int, Group], bool]]] = {
    "Triples": ("c is not a b", triple),
    "Squares": ("not a square", square),
    "Bits": ("not a bit", bit),
    "Inverses": ("not an inverse", inverse),
    "Matrix": ("C is not A B", matrix),
}


def drawn(group: Group, values: list[int]) -> list[list[int]]:
    """What of a record is drawn at random: both factors of a product, and otherwise the first value."""
    if group.stem == "Matrix":
        r, k, c = group.shape
        return [values[: r * k], values[r * k : r * k + k * c]]
    return [[v] for v in values[: 2 if group.stem == "Triples" else 1]]


def check_new(tree: Tree, group: Group, share: int, values: list[int]) -> str:
    """Return the repeated value of a record, if any. Bits repeat; the first party's shares of bits, share, do not."""
    factors = [[share]] if group.stem == "Bits" else drawn(group, values)
    if group.stem != "Bits" and not all(map(any, factors)):
        return "a factor is zero"
    what, wrong = ("share of a bit" if group.stem == "Bits" else "factor"), ""
    for factor in factors:
        raw = b"".join(v.to_bytes(tree.width, "little") for v in factor)
        digest = hashlib.sha256(what.encode() + raw).digest()[:16]
        if digest in tree.seen:
            wrong = f"a {what} was there before"
        tree.seen.add(digest)
    return wrong


def check_record(tree: Tree, group: Group, shares: list[list[int]], compare: bool) -> str:
    """Return the defect of one record of all parties, if any. With compare it is compared with those before."""
    opened = [sum(column) % tree.prime for column in zip(*(s[: 2 * group.values] for s in shares))]
    values, macs = opened[0::2], opened[1::2]
    again = check_new(tree, group, shares[0][0], values) if compare else ""
    if any(mac != value * tree.alpha % tree.prime for value, mac in zip(values, macs)):
        return "wrong MAC"
    if group.owner is not None:
        return again if shares[group.owner][2] == values[0] else "the clear value is not the mask"
    words, holds = RELATIONS[group.stem]
    return again if holds(values, tree.prime, group) else words


def check_group(tree: Tree, group: Group, files: dict[int, Path], limit: int = 10) -> Report:
    """Read all parties' files of one kind side by side."""
    report = Report(group.name, [str(path) for _, path in sorted(files.items())])
    try:
        if sorted(files) != list(range(tree.parties)):
            raise Bad(f"there are files of parties {sorted(files)}, not of all {tree.parties}")
        if group.owner is not None and group.owner >= tree.parties:
            raise Bad(f"there is no party {group.owner}")
        with ExitStack() as stack:
            streams: list[Iterator[list[int]]] = []
            for party in range(tree.parties):
                path = files[party]
                file = stack.enter_context(path.open("rb"))
                want = header(tree, party)
                if file.read(len(want)) != want:
                    raise Bad(f"{path}: the header is not that of this prime and of party {party}'s key share")
                count = 3 if group.owner == party else 2 * group.values
                streams.append(elements(tree, file, path, count))
            while True:
                shares = [next(s, None) for s in streams]
                whole = [s for s in shares if s is not None]
                if len(whole) != len(shares):
                    if whole:
                        raise Bad("the parties have different numbers of records")
                    break
                wrong = check_record(tree, group, whole, report.records < COMPARED)
                if wrong and len(report.errors) < limit:
                    report.errors.append(f"record {report.records}: {wrong}")
                report.records += 1
        if report.records == 0:
            raise Bad("there are no records")
    except (Bad, OSError) as e:
        report.errors.append(str(e))
    report.usable = report.records * group.values // BUFFERED * BUFFERED // group.values
    report.ok = not report.errors
    return report


def check(roots: list[Path]) -> tuple[Tree | None, list[Report]]:
    """The tree and a report on each kind of file; without a tree, one report that says why."""
    try:
        tree = load(find_directories(roots))
    except (Bad, OSError) as e:
        return None, [Report("tree", [str(r) for r in roots], errors=[str(e)])]
    return tree, [check_group(tree, g, files) for g, files in sorted(tree.data.items(), key=lambda x: x[0].name)]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.split("\n\n")[0],
        epilog="It pools every party's shares: what was checked is for trying only.",
    )
    parser.add_argument("dirs", nargs="+", type=Path, metavar="DIR", help="Player-Data of one party or of all")
    parser.add_argument("--json", action="store_true", help="write the report as JSON")
    args = parser.parse_args(argv)
    tree, reports = check(args.dirs)
    ok = all(r.ok for r in reports)
    if args.json:
        head = (
            {"parties": tree.parties, "prime": str(tree.prime), "prime_bits": tree.prime.bit_length()} if tree else {}
        )
        print(json.dumps({**head, "ok": ok, "kinds": [asdict(r) for r in reports]}, indent=2))
        return 0 if ok else 1
    if tree:
        print(f"{tree.parties} parties, prime {tree.prime} ({tree.prime.bit_length()} bits)")
    for r in reports:
        print(f"{r.name:<24} {r.records:>10} records {r.usable:>10} usable  {'good' if r.ok else 'WRONG'}")
        for e in r.errors:
            print(f"  {e}")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
