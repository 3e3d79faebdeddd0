"""Combination of the parties' answers: engine/protocol/threshold/decrypt/answer.go."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..errors import BadAnswersError
from .arithmetic import unpack
from .sets import Kind, packed_size

_RUN_SIZE, _MAX_RUNS = 16, (1 << 16) - 1


class RunsDifferError(BadAnswersError):
    """Parties have answered in different runs, for example because one lost its answer. A repeated request makes
    them agree.
    """

    def __init__(self, message: int) -> None:
        super().__init__(f"parties have answered for message {message} in different runs", "retry")


class Reader(Protocol):
    """Reader of the answers of a quorum's parties."""

    @property
    def most(self) -> int: ...
    def check(self, data: bytes) -> None: ...
    def messages(self, parts: Sequence[bytes]) -> list[int]: ...


@dataclass(frozen=True, repr=False)
class Answer:
    """A party's share of each plaintext: a word, and its run."""

    runs: Sequence[bytes]
    words: Sequence[int]

    @classmethod
    def decode(cls, kind: Kind, count: int, data: bytes) -> Answer:
        """Read an answer for count messages.

        It consists of a byte with the length of words, the number of runs and their ids, the number of each message's
        run if there are several runs, and the packed words.
        """
        if len(data) < 3 or data[0] != kind.log_eta:
            raise BadAnswersError("the answer does not have these parameters")
        (several,), at = struct.unpack_from("<H", data, 1), 3
        if not 1 <= several <= count or len(data) < at + several * _RUN_SIZE:
            raise BadAnswersError(f"an answer of {several} runs")
        ids = [data[at + i * _RUN_SIZE :][:_RUN_SIZE] for i in range(several)]
        at += several * _RUN_SIZE
        numbers: Sequence[int] = [0] * count
        if several > 1:
            if len(data) < at + 2 * count:
                raise BadAnswersError("the answer is too short")
            numbers = struct.unpack_from(f"<{count}H", data, at)
            at += 2 * count
        if max(numbers) >= several:
            raise BadAnswersError(f"run {max(numbers)} of {several}")
        try:
            words = unpack(data[at:], count, kind.log_eta)
        except ValueError as error:
            raise BadAnswersError(f"an answer whose words have {error}") from error
        if any(int(w) >= kind.eta for w in words):
            raise BadAnswersError("the answer has a word that is too large")
        return cls([ids[i] for i in numbers], [int(w) for w in words])


def max_answer(kind: Kind, count: int) -> int:
    """Size of the longest answer for count messages."""
    return 3 + min(count, _MAX_RUNS) * _RUN_SIZE + 2 * count + packed_size(count, kind.log_eta)


def plaintexts(kind: Kind, answers: Sequence[Answer]) -> list[int]:
    """Return the messages from the answers of all parties of a quorum.

    Raises:
        BadAnswersError: the words do not add up to valid plaintexts.
        RunsDifferError: parties have answered for a message in different runs.
    """
    out = []
    for i, run in enumerate(answers[0].runs):
        if any(a.runs[i] != run for a in answers):
            raise RunsDifferError(i)
        total = sum(a.words[i] for a in answers) % kind.eta
        if total % (1 << kind.log_phi):
            raise BadAnswersError("the parties' words do not add up to a valid plaintext")
        out.append(total >> kind.log_phi)
    return out


@dataclass(frozen=True)
class Masked:
    """Reads answers made under masks."""

    kind: Kind
    count: int  #: of messages

    @property
    def most(self) -> int:
        """Size of the longest answer."""
        return max_answer(self.kind, self.count)

    def check(self, data: bytes) -> None:
        """Raise an error unless the data is an answer of one party."""
        Answer.decode(self.kind, self.count, data)

    def messages(self, parts: Sequence[bytes]) -> list[int]:
        """Combine the answers of a quorum."""
        return plaintexts(self.kind, [Answer.decode(self.kind, self.count, data) for data in parts])
