"""The client of a party that multiplies."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import numpy as np
import numpy.typing as npt

from .._proto.lodge.linear.v1 import linear_pb2
from ..channel import Patience, Service
from ..config import Config
from ..errors import ConfigError, LodgeError
from .calls import Line, Pieces, Progress, Told, answering, asking, multiplying
from .fixed import Fixed, check_range, integers, words
from .keys import SecretKey
from .plans import BatchPlan, ProductPlan, VectorPlan, plan_batch, plan_product, plan_vector
from .residues import Signed, Words
from .sets import DEFAULT_PRODUCT, DEFAULT_VECTOR, LinearSet, lookup, sets


@dataclass(frozen=True)
class Product:
    """The result of a product of encrypted matrices."""

    entries: Signed
    up: int  #: bytes, those of attempts that failed included
    down: int
    attempts: int
    log_distance: float  #: log2 of the distance of all answers from what the result alone tells


@dataclass(frozen=True)
class ProductShares:
    """One end's share of a product on shares. The two shares add up to the product modulo t."""

    entries: Words  #: of a vector by rows; of a batch outputs x rows
    t: int
    up: int  #: bytes
    down: int
    log_distance: float  #: such distances add up over products with the same matrix
    security: str  #: "passive", or "passive_evaluator" if the owner of the key has proved its input


@dataclass(frozen=True)
class Run:
    """A product on shares. Both ends use the same id only once, and name each other's client."""

    other: str  #: name of the client at the other end, as the party knows it
    id: bytes

    @classmethod
    def new(cls, other: str) -> Run:
        """Return a run with a new random name of 16 bytes, which must be sent to the other end."""
        return cls(other, secrets.token_bytes(16))


class LinearClient:
    """A client of one party that multiplies encrypted data.

    Calls raise LodgeError. A client may be used by several threads concurrently. Use it in a ``with`` statement, or
    close it. Security is passive: see ``help(lodge_mpc.linear)``.

    Args:
        config: a configuration with the party.
        party: the party's name; default the configuration's own party, or else the first one.
        patience: seconds for which products of encrypted matrices are retried after temporary errors.
    """

    def __init__(self, config: Config, *, party: str = "", patience: float = 30.0) -> None:
        name = party or config.party or (config.parties[0].name if config.parties else "")
        server = next((p for p in config.parties if p.name == name), None)
        if server is None:
            raise ConfigError(f"there is no party {name!r}", "name one of the configuration's parties")
        self.party, self.patience = name, patience
        self._service = Service(server, config, linear_pb2.DESCRIPTOR.services_by_name["LinearService"])

    @classmethod
    def from_config(cls, path: str | Path, *, party: str = "", patience: float = 30.0) -> LinearClient:
        """Create a client from a file such as those that ``lodge init`` writes to clients/."""
        return cls(Config.load(path), party=party, patience=patience)

    def __enter__(self) -> LinearClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections and end all calls."""
        self._service.close()

    @staticmethod
    def sets() -> list[LinearSet]:
        """Return the names of the secure parameter sets."""
        return sets()

    def multiply(
        self,
        left: npt.ArrayLike,
        right: npt.ArrayLike,
        *,
        params: str = DEFAULT_PRODUCT,
        max_left: int | None = None,
        max_right: int | None = None,
        method: str = "fewest bytes",
        progress: Callable[[Progress], None] | None = None,
        timeout: float | None = None,
    ) -> Product:
        """Have the party multiply two integer matrices that it sees only encrypted.

        An interrupted product is retried for the missing answers.

        Args:
            left, right: matrices of shapes rows x inner and inner x cols.
            params: parameter set.
            max_left, max_right: bounds on the magnitudes of entries, which the party learns; default the smallest
            2^k - 1.
            method: see METHODS.
            progress: called with the bytes sent and answers received.
        timeout: seconds.

        Raises:
            RangeError: an entry exceeds its magnitude.
            ConfigError: the shapes do not match, or sums may exceed the set's range.
            BadAnswersError: the party's answers are invalid.
        """
        s, end = lookup(params), _end(timeout)
        a, most_left = _factor(left, max_left, "left")
        b, most_right = _factor(right, max_right, "right")
        if a.shape[1] != b.shape[0]:
            raise ConfigError(f"a matrix of {a.shape} times one of {b.shape}", "its columns are the other's rows")
        plan = plan_product(s, (*a.shape, b.shape[1]), (most_left, most_right), method)
        s.distance(plan.noise, plan.answers)
        key = SecretKey(s, True)
        parts = [key.public, *key.encrypt(plan.left_messages(a)), *key.encrypt(plan.right_messages(b))]
        out = np.zeros((a.shape[0], b.shape[1]), np.int64)
        told = Told(self.party, plan, progress, sum(map(len, parts)))
        waiting, attempts = Patience(self.patience, end), 0
        pieces = Pieces(
            lambda _: plan.answer_size, lambda g, answer: plan.place(g, key.open(plan, answer), out), plan.answers
        )
        while True:
            attempts += 1
            before = pieces.done
            waiting.attempt()
            try:
                header = _product_header(plan, pieces.done)
                multiplying(self._service, told, header, parts=parts, pieces=pieces, timeout=waiting.left())
                break
            except LodgeError as error:
                if error.retry and pieces.done == plan.answers:
                    break  # cut off after the last answer, so no answer is missing
                if pieces.done > before:
                    waiting.renew()
                waiting.after(told.named(error))
        return Product(out, told.up, told.down, attempts, told.log_distance)

    def ask_vector(
        self,
        run: Run,
        share: npt.ArrayLike,
        rows: int,
        *,
        params: str = DEFAULT_VECTOR,
        packing: str = "cheapest",
        slots: int = 0,
        progress: Callable[[Progress], None] | None = None,
        timeout: float | None = None,
    ) -> ProductShares:
        """Run the end with the key: send the encrypted share of a vector, and get a share of its product with a matrix.

        Args:
            run: the run, as named by the other end, which must answer at about the same time.
            share: residues modulo t of the set.
            rows: number of rows of the matrix.
            params: parameter set. Inputs under the default set are proved to be well formed, as parties require unless
                their operators have set allow_unproved_linear.
            packing: see PACKINGS; both ends must use the same one.
            slots: rows per answer; 0 means the number with the fewest bytes.
            progress: hears of bytes that were sent and answers that have come.
            timeout: seconds. A run is not retried automatically: if it fails for one end, it fails for both.
        """
        s = lookup(params)
        v = words(share, s.t, "share")
        if v.ndim != 1:
            raise ConfigError(f"a share of shape {v.shape}", "give that of a vector")
        plan = plan_vector(s, rows, len(v), packing, slots)
        return self._ask(run, plan=plan, share=v, out=np.zeros(rows, np.uint64), progress=progress, timeout=timeout)

    def ask_batch(
        self,
        run: Run,
        shares: npt.ArrayLike,
        outputs: int,
        *,
        params: str = DEFAULT_VECTOR,
        progress: Callable[[Progress], None] | None = None,
        timeout: float | None = None,
    ) -> ProductShares:
        """Run the end with the key: send encrypted shares of matrices, and get shares of sums of products with vectors.

        Args:
            shares: residues modulo t, of shape count x rows x cols.
            outputs: number of outputs for which the other end has vectors.

        The others are those of ask_vector.
        """
        s = lookup(params)
        v = words(shares, s.t, "share")
        if v.ndim != 3:
            raise ConfigError(f"shares of shape {v.shape}", "give those of count x rows x cols")
        plan = plan_batch(s, v.shape[1], v.shape[2], v.shape[0], outputs)
        out = np.zeros((outputs, plan.rows), np.uint64)
        return self._ask(run, plan=plan, share=v, out=out, progress=progress, timeout=timeout)

    def answer_vector(
        self,
        run: Run,
        matrix: npt.ArrayLike | Iterable[npt.ArrayLike],
        *,
        share: npt.ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
        encoding: Fixed | None = None,
        params: str = DEFAULT_VECTOR,
        packing: str = "cheapest",
        slots: int = 0,
        progress: Callable[[Progress], None] | None = None,
        timeout: float | None = None,
    ) -> ProductShares:
        """Run the end with the matrix, which the party sees: get a share of its product with a shared vector.

        Args:
            matrix: residues modulo t, or numbers if there is an encoding: an array, a memmap larger than memory, or
                single rows in order, with their shape.
            share: of the vector; default 0.
            shape: rows and columns, for a matrix without a shape.
            encoding: of the entries.

        The others are those of ask_vector.
        """
        s = lookup(params)
        known = matrix.shape if isinstance(matrix, np.ndarray) else shape
        if isinstance(matrix, (list, tuple)) and shape is None:
            matrix = np.asarray(matrix)
            known = matrix.shape
        if known is None or len(known) != 2 or (shape is not None and tuple(shape) != tuple(known)):
            raise ConfigError(f"a matrix of shape {known}", "give an array of rows x cols, or rows and their shape")
        plan = plan_vector(s, known[0], known[1], packing, slots)
        first = np.zeros(plan.cols, np.uint64) if share is None else words(share, s.t, "share")
        if first.shape != (plan.cols,):
            raise ConfigError(f"a share of shape {first.shape}", f"give that of a vector of {plan.cols}")
        out = np.zeros(plan.rows, np.uint64)
        lines = [
            Line(first[None], s.t, "share"),
            Line(matrix, s.t, "matrix", encoding=encoding, shape=(plan.rows, plan.cols)),
        ]
        return self._answer(run, plan=plan, lines=lines, out=out, progress=progress, timeout=timeout)

    def answer_batch(
        self,
        run: Run,
        vectors: npt.ArrayLike,
        rows: int,
        *,
        shares: npt.ArrayLike | None = None,
        encoding: Fixed | None = None,
        params: str = DEFAULT_VECTOR,
        progress: Callable[[Progress], None] | None = None,
        timeout: float | None = None,
    ) -> ProductShares:
        """Run the end with the vectors, which the party sees: get shares of sums of shared matrices times the vectors.

        Args:
            vectors: residues modulo t, or numbers if there is an encoding, of shape outputs x count x cols.
            rows: number of rows of the matrices.
            shares: of the matrices, of shape count x rows x cols; default 0.
            encoding: of the vectors' entries.

        The others are those of ask_vector.
        """
        s, v = lookup(params), np.asarray(vectors)
        if v.ndim != 3:
            raise ConfigError(f"vectors of shape {v.shape}", "give those of outputs x count x cols")
        outputs, count, cols = v.shape
        plan = plan_batch(s, rows, cols, count, outputs)
        own = np.zeros((count, rows, cols), np.uint64) if shares is None else words(shares, s.t, "share")
        if own.shape != (count, rows, cols):
            raise ConfigError(f"shares of shape {own.shape}", f"give those of {count} x {rows} x {cols}")
        out = np.zeros((outputs, rows), np.uint64)
        lines = [
            Line(own.reshape(-1, cols), s.t, "shares"),
            Line(v.reshape(-1, cols), s.t, "vectors", encoding=encoding),
        ]
        return self._answer(run, plan=plan, lines=lines, out=out, progress=progress, timeout=timeout)

    def _ask(
        self,
        run: Run,
        *,
        plan: VectorPlan | BatchPlan,
        share: Words,
        out: Words,
        progress: Callable[[Progress], None] | None,
        timeout: float | None,
    ) -> ProductShares:
        s, end = plan.params, _end(timeout)
        s.distance(plan.noise, plan.answers)
        header = _header(run, plan)
        key = SecretKey(s, False)
        parts = [key.public, *key.encrypt(plan.messages(share))]
        told = Told(self.party, plan, progress, sum(map(len, parts)))
        pieces = Pieces(
            lambda _: plan.answer_size, lambda g, answer: plan.place(g, key.open(plan, answer), out), plan.answers
        )
        with told.errors():
            asking(self._service, told, header, parts=parts, pieces=pieces, timeout=_left(end))
        return ProductShares(out, s.t, told.up, told.down, told.log_distance, told.security)

    def _answer(
        self,
        run: Run,
        *,
        plan: VectorPlan | BatchPlan,
        lines: list[Line],
        out: Words,
        progress: Callable[[Progress], None] | None,
        timeout: float | None,
    ) -> ProductShares:
        s, header = plan.params, _header(run, plan)
        told = Told(self.party, plan, progress, sum(line.size for line in lines))
        with told.errors():
            answering(self._service, told, header, lines=lines, out=out, timeout=timeout)
        return ProductShares(out, s.t, told.up, told.down, told.log_distance, told.security)


def _end(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _left(end: float | None) -> float | None:
    if end is not None and end <= time.monotonic():
        raise LodgeError("timed_out", "the deadline passed")
    return None if end is None else end - time.monotonic()


def _factor(values: npt.ArrayLike, most: int | None, what: str) -> tuple[Signed, int]:
    """Return a factor, and a bound on the magnitude of its entries."""
    a = integers(values, f"the {what} factor")
    if a.ndim != 2 or not a.size:
        raise ConfigError(f"a {what} factor of shape {a.shape}", "give a matrix")
    if most is None:
        most = (1 << max(-int(a.min()), int(a.max()), 0).bit_length()) - 1
    check_range((a < -most) | (a > most), f"entry of the {what} factor", -most, most)
    if most >= 1 << 62:
        raise ConfigError(f"entries of up to {most}", "use fewer bits")
    return a.astype(np.int64), most


_PRODUCT_METHODS = {
    "fewest bytes": linear_pb2.PRODUCT_METHOD_UNSPECIFIED,
    "first": linear_pb2.PRODUCT_METHOD_FIRST,
    "second": linear_pb2.PRODUCT_METHOD_SECOND,
}


def _product_header(p: ProductPlan, first: int) -> linear_pb2.MultiplyHeader:
    rows, inner, cols = p.shape
    return linear_pb2.MultiplyHeader(
        set=p.params.name, set_hash=p.params.hash(), rows=rows, inner=inner, cols=cols, max_left=p.most[0],
        max_right=p.most[1], method=_PRODUCT_METHODS[p.method], first=first,
    )  # fmt: skip


_PACKINGS = {
    "cheapest": linear_pb2.PACKING_UNSPECIFIED,
    "forward": linear_pb2.PACKING_FORWARD,
    "double": linear_pb2.PACKING_DOUBLE,
    "tiled": linear_pb2.PACKING_TILED,
}


def _header(run: Run, p: VectorPlan | BatchPlan) -> linear_pb2.RunHeader:
    if len(run.id) != 16 or not run.other:
        raise ConfigError("a run without a name of 16 bytes, or without another client", "draw one with Run.new")
    header = linear_pb2.RunHeader(run=run.id, set=p.params.name, set_hash=p.params.hash())
    setattr(header, "with", run.other)  # with is a keyword in Python
    if isinstance(p, VectorPlan):
        packing, slots = p.wanted
        v = linear_pb2.VectorShape(rows=p.rows, cols=p.cols, packing=_PACKINGS[packing], slots=slots)
        header.vector.CopyFrom(v)
    else:
        b = linear_pb2.BatchShape(rows=p.rows, cols=p.cols, count=p.count, outputs=p.outputs)
        header.batch.CopyFrom(b)
    return header
