"""Plans of products: packings, and sizes of messages. Parties and other clients compute the same plans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ..errors import ConfigError
from .residues import Signed, Words, from_residues, residues
from .sets import INPUTS_HEADER, MAX_ENTRIES, LinearSet

PACKINGS = ("cheapest", "forward", "double", "tiled")  #: where rows of a matrix lie; the first is the shortest of them
METHODS = ("fewest bytes", "first", "second")  #: how many columns of a right factor share a ciphertext


@dataclass(frozen=True)
class VectorPlan:
    """The plan for a matrix times a shared vector: rows are cut into blocks, and several share a polynomial."""

    params: LinearSet
    rows: int
    cols: int
    packing: str  #: not cheapest
    width: int  #: of a block
    per_answer: int  #: rows to an answer
    wanted: tuple[str, int]  #: the packing and the rows to an answer that were asked for

    @property
    def inputs(self) -> int:
        """Ciphertexts of the vector: blocks per row."""
        return -(-self.cols // self.width)

    @property
    def answers(self) -> int:
        return -(-self.rows // self.per_answer)

    @property
    def up_bytes(self) -> int:
        """Size of the data that the owner of the key sends, without the key."""
        return self.params.inputs_size(self.inputs)

    @property
    def answer_size(self) -> int:
        return self.params.answer_size(self.per_answer)

    @property
    def noise(self) -> float:
        return self.params.product_noise(self.inputs, min(self.width, self.cols))

    @property
    def targets(self) -> Signed:
        """The coefficients of an answer that are read."""
        return np.arange(1, self.per_answer + 1) * self.width - 1

    def messages(self, share: Words) -> Iterator[Signed]:
        """The polynomials that the owner of the key encrypts: blocks backward, the same in all slots."""
        for at in range(0, self.cols, self.width):
            part = from_residues(share[at : at + self.width], self.params.t)
            m = np.zeros(self.params.n, np.int64)
            m[self.width - len(part) : self.width] = part[::-1]
            yield m

    def place(self, g: int, values: Words, out: Words) -> None:
        """Write the values at the targets of answer g to its rows of the result."""
        if self.packing == "double":
            t = self.params.t
            values = residues(self.params.slots(self.per_answer).forward(from_residues(values, t)), t)
        self.put(g, values[: self.results(g)], out)

    def results(self, g: int) -> int:
        """Number of entries of the product in answer g."""
        return min(self.per_answer, self.rows - g * self.per_answer)

    def put(self, g: int, shares: Words, out: Words) -> None:
        """Write shares of the entries of answer g to the result."""
        at = g * self.per_answer
        out[at : at + len(shares)] = shares


def plan_vector(s: LinearSet, rows: int, cols: int, packing: str = "cheapest", slots: int = 0) -> VectorPlan:
    """Plan a product of a matrix and a vector with slots rows per answer; 0 selects the number with the fewest
    bytes.
    """
    _check_sizes(f"a matrix of {rows} x {cols}", rows, cols)
    if packing not in PACKINGS:
        raise ConfigError(f"packing {packing!r}", f"name one of {', '.join(PACKINGS)}")
    n = s.n
    wrong = slots > 0 and (packing == "cheapest" or (packing == "double" and n % slots != 0))
    if not 0 <= slots <= n or wrong:
        raise ConfigError(f"{slots} rows per answer do not fit degree {n}, {packing}", "let the client choose")
    best, least = list[VectorPlan](), -(-cols // n)
    widest = -(-cols // least)

    def consider(name: str, width: int, per: int) -> None:
        if slots not in (0, per):
            return
        if slots == 0 and name != "double":  # as many answers, of fewer rows each
            per = -(-rows // -(-rows // per))
        best.append(VectorPlan(s, rows, cols, name, width, per, (packing, slots)))
        best[:] = [min(best, key=_bytes)]

    if packing in ("forward", "cheapest"):
        consider("forward", widest, min(n // widest, slots or n))
    if packing in ("tiled", "cheapest"):
        for width in [n // slots] if slots else range(widest, 0, -1):
            consider("tiled", width, slots or n // width)
    if packing in ("double", "cheapest"):
        for log in range(s.log_n + 1):
            consider("double", n >> log, 1 << log)
    if not best:
        raise ConfigError(f"{slots} rows of {cols} do not fit degree {n}, {packing}", "let the client choose")
    return best[0]


@dataclass(frozen=True)
class BatchPlan:
    """The plan for sums over shared matrices times vectors, for each output.

    Columns of all matrices are cut into blocks of equal height. A ciphertext holds per_input blocks side by side.
    """

    params: LinearSet
    rows: int
    cols: int
    count: int
    outputs: int
    height: int
    blocks: int  #: of a column
    per_input: int  #: columns to a ciphertext
    per_answer: int  #: outputs to an answer

    @property
    def inputs(self) -> int:
        return self.blocks * -(-self.count * self.cols // self.per_input)

    @property
    def answers(self) -> int:
        return self.blocks * -(-self.outputs // self.per_answer)

    @property
    def up_bytes(self) -> int:
        return self.params.inputs_size(self.inputs)

    @property
    def answer_size(self) -> int:
        return self.params.answer_size(self.per_answer * self.height)

    @property
    def noise(self) -> float:
        terms = self.inputs // self.blocks
        if self.per_input * self.per_answer == 1:
            return self.params.scalar_noise(terms)
        return self.params.product_noise(terms, self.per_input * self.height)

    @property
    def targets(self) -> Signed:
        starts = (np.arange(1, self.per_answer + 1) * self.per_input - 1) * self.height
        out: Signed = (starts[:, None] + np.arange(self.height)).reshape(-1)
        return out

    def messages(self, share: Words) -> Iterator[Signed]:
        """The polynomials that the owner of the key encrypts for its share, count x rows x cols."""
        columns = share.reshape(self.count, self.rows, self.cols).transpose(0, 2, 1).reshape(-1, self.rows)
        for number in range(self.inputs):
            first, row = number // self.blocks * self.per_input, number % self.blocks * self.height
            part = columns[first : first + self.per_input, row : row + self.height]
            m = np.zeros(self.params.n, np.int64)
            placed = m[: self.per_input * self.height].reshape(self.per_input, self.height)
            placed[: part.shape[0], : part.shape[1]] = from_residues(part, self.params.t)
            yield m

    def place(self, g: int, values: Words, out: Words) -> None:
        outputs, rows = self._part(g)
        table = values.reshape(self.per_answer, self.height)
        out[outputs, rows] = table[: outputs.stop - outputs.start, : rows.stop - rows.start]

    def results(self, g: int) -> int:
        outputs, rows = self._part(g)
        return int((outputs.stop - outputs.start) * (rows.stop - rows.start))

    def put(self, g: int, shares: Words, out: Words) -> None:
        outputs, rows = self._part(g)
        out[outputs, rows] = shares.reshape(outputs.stop - outputs.start, -1)

    def _part(self, g: int) -> tuple[slice, slice]:
        """The content of answer g: outputs, and rows of each."""
        first, row = g // self.blocks * self.per_answer, g % self.blocks * self.height
        outputs = slice(first, min(first + self.per_answer, self.outputs))
        return outputs, slice(row, min(row + self.height, self.rows))


def plan_batch(s: LinearSet, rows: int, cols: int, count: int, outputs: int) -> BatchPlan:
    """Plan sums over count matrices of the given size, for the given number of outputs, with the fewest bytes."""
    what = f"{count} matrices of {rows} x {cols} for {outputs} outputs"
    _check_sizes(what, rows, cols, count, outputs, cols * count)
    blocks = -(-rows // s.n)
    height = -(-rows // blocks)
    best: BatchPlan | None = None
    for per in range(1, s.n // height + 1):
        p = BatchPlan(s, rows, cols, count, outputs, height, blocks, per, s.n // (per * height))
        if best is None or _bytes(p) < _bytes(best):
            best = p
    assert best is not None
    return BatchPlan(s, rows, cols, count, outputs, height, blocks, best.per_input, min(best.per_answer, outputs))


@dataclass(frozen=True)
class ProductPlan:
    """The plan for a product of two encrypted matrices, in tiles of rows x inner and inner x cols.

    Entry (i, u) of a tile of the left factor is at u + i k for k = tile_inner, and (u, j) of the right one at
    j k r - u for r = tile_rows, where X^-x is -X^(n-x); the entries of the product are at i k + j k r. With the first
    method columns of the right factor are ciphertexts, each with j = 0, and the party moves them.
    """

    params: LinearSet
    shape: tuple[int, int, int]  #: rows, inner, cols
    most: tuple[int, int]  #: magnitudes that no entry exceeds
    method: str
    tile_rows: int
    tile_inner: int
    tile_cols: int

    @property
    def _tiles(self) -> tuple[int, int, int]:
        tile = (self.tile_rows, self.tile_inner, self.tile_cols)
        downs, inners, acrosses = (-(-x // y) for x, y in zip(self.shape, tile, strict=True))
        return downs, inners, acrosses

    @property
    def lefts(self) -> int:
        """Ciphertexts of the left factor."""
        return self._tiles[0] * self._tiles[1]

    @property
    def rights(self) -> int:
        """Ciphertexts of the right factor."""
        return self._tiles[1] * -(-self.shape[2] // self._columns)

    @property
    def _columns(self) -> int:
        """Columns of the right factor per ciphertext."""
        return 1 if self.method == "first" else self.tile_cols

    @property
    def answers(self) -> int:
        return self._tiles[0] * self._tiles[2]

    @property
    def up_bytes(self) -> int:
        return 2 * INPUTS_HEADER + (self.lefts + self.rights) * self.params.ciphertext_size

    @property
    def answer_size(self) -> int:
        return self.params.answer_size(self.tile_rows * self.tile_cols)

    @property
    def noise(self) -> float:
        return self.params.square_noise(self._tiles[1], self.tile_cols // self._columns)

    @property
    def targets(self) -> Signed:
        return np.arange(self.tile_rows * self.tile_cols) * self.tile_inner

    def left_messages(self, a: Signed) -> Iterator[Signed]:
        """The polynomials to encrypt for the left factor."""
        r, k = self.tile_rows, self.tile_inner
        for row in range(0, self.shape[0], r):
            for inner in range(0, self.shape[1], k):
                part = a[row : row + r, inner : inner + k]
                m = np.zeros(self.params.n, np.int64)
                m[: r * k].reshape(r, k)[: part.shape[0], : part.shape[1]] = part
                yield m

    def right_messages(self, b: Signed) -> Iterator[Signed]:
        """The polynomials to encrypt for the right factor."""
        r, k, c, n = self.tile_rows, self.tile_inner, self._columns, self.params.n
        for inner in range(0, self.shape[1], k):
            for col in range(0, self.shape[2], c):
                part = b[inner : inner + k, col : col + c]
                at = np.arange(part.shape[1]) * k * r - np.arange(part.shape[0])[:, None]
                m = np.zeros(n, np.int64)
                m[at % n] = np.where(at < 0, -part, part)
                yield m

    def place(self, g: int, values: Words, out: Signed) -> None:
        across = self._tiles[2]
        row, col = g // across * self.tile_rows, g % across * self.tile_cols
        part = out[row : row + self.tile_rows, col : col + self.tile_cols]
        table = from_residues(values, self.params.t).reshape(self.tile_cols, self.tile_rows).T
        part[:] = table[: part.shape[0], : part.shape[1]]


def plan_product(
    s: LinearSet, shape: tuple[int, int, int], most: tuple[int, int], method: str = "fewest bytes"
) -> ProductPlan:
    """Plan a product of two encrypted matrices of rows x inner and inner x cols, with entries of these magnitudes."""
    rows, inner, cols = shape
    _check_sizes(f"a product of {rows} x {inner} by {cols}", rows, inner, cols)
    if s.proof is not None:
        raise ConfigError(f"set {s.name} is for products on shares", "name another one for encrypted matrices")
    if method not in METHODS:
        raise ConfigError(f"method {method!r}", f"name one of {', '.join(METHODS)}")
    check_sums(s.t, inner, *most)
    best: ProductPlan | None = None
    for r in _cuts(rows, s.n):
        for k in _cuts(inner, s.n // r):
            p = ProductPlan(s, shape, most, method, r, k, min(cols, s.n // (r * k)))
            if best is None or _bytes(p) < _bytes(best):
                best = p
    assert best is not None
    return best


def check_sums(t: int, terms: int, a: int, b: int) -> None:
    """Raise an error if sums of this many products of these magnitudes can exceed the range of t."""
    if min(a, b) < 0 or terms * a * b > (t - 1) // 2:
        raise ConfigError(
            f"sums of {terms} products of {a} and {b}, but t = {t} allows at most {(t - 1) // 2}",
            "use fewer bits, or a set with a larger t",
        )


def _cuts(n: int, most: int) -> Iterator[int]:
    """The sizes, at most most, into which n can be cut evenly, one for each number of pieces."""
    x = min(n, most)
    while x > 0:
        yield x
        pieces = -(-n // x) + 1
        x = min(x - 1, -(-n // pieces))


def _bytes(p: VectorPlan | BatchPlan | ProductPlan) -> int:
    """The number of bytes sent in both directions."""
    return p.up_bytes + p.answers * p.answer_size


def _check_sizes(what: str, *sizes: int) -> None:
    if any(not 1 <= x <= MAX_ENTRIES for x in sizes):
        raise ConfigError(f"no plan for {what}", f"sizes are from 1 to {MAX_ENTRIES}")
