"""From a stream of rows to a stream of rows with answers, some at a time."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairtune.classifier.sinks import Columns, Sink
from fairtune.core.errors import DataError, nearest, one_of
from fairtune.tasks.reading.reader import RowBatch
from fairtune.tasks.task import Texts

PREDICTED, CONFIDENCE, PROBABILITY = "predicted", "confidence", "probability_"
DECIMALS = 6
Probabilities = npt.NDArray[np.float64]


class Scorer(Protocol):
    """What `Predictor` does."""

    def logits(
        self, texts: Sequence[Texts], progress: Callable[[int], None] | None = None
    ) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True)
class Asked:
    """What is to be answered, and how.

    Args:
        classes: of the model, in the order of its outputs.
        texts: the column with the texts, or the two with pairs.
        label: the column with the right answers; None is not to score them.
        every: whether each class's probability is written, too.
        prefix: put before the names of the added columns.
    """

    classes: Sequence[Any]
    texts: Sequence[str]
    label: str | None = None
    every: bool = False
    prefix: str = ""

    @property
    def added(self) -> list[str]:
        """Names of the columns that are added."""
        more = [f"{PROBABILITY}{one}" for one in self.classes] if self.every else []
        return [self.prefix + name for name in (PREDICTED, CONFIDENCE, *more)]


@dataclass
class Outcome:
    """What came of it.

    Args:
        matrix: how often each class (row) was taken for each (column), where labels were there.
        unknown: labels that the model has no class for, which are not scored.
        seconds: from the first row to the last, without loading the model.
    """

    matrix: npt.NDArray[np.int64]
    rows: int = 0
    unknown: Counter[str] = field(default_factory=Counter)
    unlabelled: int = 0
    seconds: float = 0.0


def answer(
    asked: Asked, scorer: Scorer, source: Iterable[RowBatch], sink: Sink, progress: Callable[[int], None] | None = None
) -> Outcome:
    """Predict every row and write it with its answers, before the next ones are read.

    Raises:
        DataError: a row that cannot be read, has no text, or has a column of the name of an added one.
    """
    size = len(asked.classes)
    outcome = Outcome(np.zeros((size, size), dtype=np.int64))
    numbers = {class_name(one): number for number, one in enumerate(asked.classes)}
    began = time.perf_counter()
    for records in source:
        _refuse_clash(records, asked)
        probabilities = softmax(scorer.logits(records.texts(asked.texts), progress))
        sink.write(records, _added(asked, probabilities))
        outcome.rows += len(records)
        if asked.label is not None:
            _score(outcome, records, asked.label, numbers, probabilities.argmax(axis=1))
        outcome.seconds = time.perf_counter() - began
    return outcome


def softmax(logits: npt.NDArray[np.float32]) -> Probabilities:
    exact = logits.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def class_name(value: Any) -> str:
    """A label as text: 1, 1.0 and "1" are the same class."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _refuse_clash(records: RowBatch, asked: Asked) -> None:
    there = set(records.columns)
    both = [name for name in asked.added if name in there]
    if both:
        raise DataError(
            f"{records.where}: it has a column '{both[0]}' already, which the answers would replace; rename it, or give the answers"
            " other names with --prefix NAME_."
        )


def _added(asked: Asked, probabilities: Probabilities) -> Columns:
    best = probabilities.argmax(axis=1)
    rounded = probabilities.round(DECIMALS)
    confidence = rounded[np.arange(len(best)), best].tolist()
    columns = [[asked.classes[number] for number in best], confidence, *(rounded.T.tolist() if asked.every else [])]
    return dict(zip(asked.added, columns, strict=True))


def _score(
    outcome: Outcome, records: RowBatch, label: str, numbers: dict[str, int], predicted: npt.NDArray[np.intp]
) -> None:
    for row, answered in zip(records.rows, predicted, strict=True):
        value = row.get(label)
        if value is None or value == "" or value != value:
            outcome.unlabelled += 1
        elif (name := class_name(value)) in numbers:
            outcome.matrix[numbers[name], answered] += 1
        else:
            outcome.unknown[name] += 1


def text_columns(
    where: object, columns: Sequence[str], asked: Sequence[str | None], trained: Sequence[str] | None, width: int | None
) -> list[str]:
    """The columns that hold the texts: as asked, as the model was trained with, `text`, or the only one there is.

    Args:
        asked: `--text` and `--pair`.
        trained: names of the columns at training, where they are known.
        width: texts of an example at training, 1 or 2, where that is known.

    Raises:
        DataError: they are not there, or nothing says which they are.
    """
    text, second = asked
    usual = list(trained or ())
    wanted = [text or (usual[0] if usual else None), second or (usual[1] if len(usual) > 1 else None)]
    if wanted[0] is None:
        wanted[0] = "text" if "text" in columns else columns[0] if len(columns) == 1 else None
    chosen = [name for name in wanted if name is not None]
    if wanted[0] is None:
        raise DataError(
            f"{where}: which column holds the texts? Say so with --text COLUMN; columns: {one_of(columns)}."
        )
    for option, name in zip(("--text", "--pair"), chosen, strict=False):
        if name not in columns:
            raise DataError(
                f"{where}: no column '{name}'; columns: {one_of(columns)}.{nearest(name, columns)} Say which with {option} COLUMN."
            )
    if width == 2 and len(chosen) == 1:
        raise DataError(f"{where}: the model was trained on pairs of texts; name the second column with --pair COLUMN.")
    if width == 1 and len(chosen) == 2:
        raise DataError(f"{where}: the model was trained on single texts, not on pairs; leave --pair out.")
    if len(set(chosen)) != len(chosen):
        raise DataError(f"{where}: --text and --pair name the same column '{chosen[0]}'.")
    return chosen
