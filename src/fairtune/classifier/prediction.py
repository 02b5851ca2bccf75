"""`fairtune predict`: a classifier from a folder, and a stream of rows that becomes a stream of rows with its answers."""

from __future__ import annotations

import io
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fairtune.classifier.labels import class_name
from fairtune.classifier.predictor import Predictor
from fairtune.classifier.row_output import Columns, RowOutput
from fairtune.core.console import own_pipes
from fairtune.core.errors import DataError, ModelError, nearest, one_of
from fairtune.models.sources import find_model
from fairtune.tasks.reading.labels import NO_LABEL
from fairtune.tasks.reading.reader import RowBatch
from fairtune.tasks.task import Texts

PREDICTED_COLUMN, CONFIDENCE_COLUMN, PROBABILITY_COLUMN = "predicted", "confidence", "probability_"
DECIMALS = 6
SAVED, SUMS = "fairtune.json", "manifest.json"
UNLIMITED = 4096
"""Tokens of a text where neither the model nor its tokenizer has a limit."""
Probabilities = npt.NDArray[np.float64]


@dataclass(frozen=True)
class OpenedClassifier:
    """A classifier and what is known of the data it was trained on.

    Args:
        classes: in the order of the outputs, as they were given at training.
        columns: that held the texts, where they had names.
        width: texts of an example, 1 or 2; None is not known.
    """

    predictor: Predictor
    classes: list[Any]
    columns: list[str] | None = None
    width: int | None = None
    label: str | None = None


def open_classifier(name: str, device: str, batch_tokens: int | None = None) -> OpenedClassifier:
    """The classifier in a folder, or by a hub id; for a command, whose standard input and output are left alone.

    Raises:
        ModelError: it is not there, is damaged, or does not tell classes apart.
    """
    from fairtune.classifier.process import find_device

    place = find_device(device)
    with _hide_stdio():  # standard input may hold the rows, and standard output be for the answers
        return _open(name, place, batch_tokens)


def _open(name: str, place: str, batch_tokens: int | None) -> OpenedClassifier:
    folder = Path(name).expanduser()
    if any((folder / file).is_file() for file in (SAVED, SUMS)):
        return _open_saved(folder, place, batch_tokens)
    if not folder.is_dir() and "/" not in name:  # what has one may be a hub id
        beside = [found.name for found in folder.absolute().parent.iterdir() if found.is_dir()]
        raise ModelError(f"{name}: there is no such folder.{nearest(name, beside)} Make one with `fairtune train`.")
    return _open_plain(name, place, batch_tokens)


def _open_saved(folder: Path, device: str, batch_tokens: int | None) -> OpenedClassifier:
    from fairtune.classifier.text_classifier import TextClassifier

    found = TextClassifier.load(folder, device)
    own, provenance = found.predictor_, found._provenance
    predictor = Predictor(own.network, own.tokenizer, own.max_length, device, "auto", batch_tokens)
    return OpenedClassifier(predictor, found.classes_.tolist(), provenance.names, provenance.width, provenance.label)


def _open_plain(name: str, device: str, batch_tokens: int | None) -> OpenedClassifier:
    from fairtune.models.loader import load_classifier
    from fairtune.models.tokenizers import TRIED, load_tokenizer
    from fairtune.models.transformers_files import explain_failure

    source = find_model(name).fetched()
    classes = _classes(name, source.fetch())
    tokenizer = load_tokenizer(source.fetch())
    loaded = load_classifier(source, classes, tokenizer)
    fresh = sorted(set(loaded.network.state_dict()) - loaded.from_checkpoint)
    if fresh:
        raise ModelError(
            f"model '{name}': it has no weights for {fresh[0]}, so it is not a trained classifier; train one from it with "
            f"`fairtune train DATA --model {name} -o FOLDER`."
        )
    with explain_failure(f"model '{name}': no text goes through it"):
        length = min(int(tokenizer.model_max_length), source.positions or UNLIMITED)
        predictor = Predictor(loaded.network, tokenizer, length, device, "auto", batch_tokens)
        predictor.logits([TRIED[:1]])
    return OpenedClassifier(predictor, list(classes))


def _classes(name: str, folder: Path) -> tuple[str, ...]:
    """What a model's config calls its outputs."""
    from fairtune.models.transformers_files import explain_failure, read_config

    what = f"model '{name}'"
    config = read_config(folder, what)
    with explain_failure(f"{what}: its config.json names no classes"):
        classes = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
    if len(classes) < 2 or config.problem_type in ("regression", "multi_label_classification"):
        raise ModelError(f"model '{name}': it does not tell classes apart, of which each text has one.")
    if len(set(classes)) != len(classes):
        raise ModelError(f"model '{name}': its config.json gives several outputs one name: {', '.join(classes)}.")
    return classes


class Scorer(Protocol):
    """What `Predictor` does."""

    def logits(
        self, texts: Sequence[Texts], progress: Callable[[int], None] | None = None
    ) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True)
class PredictionRequest:
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
        more = [f"{PROBABILITY_COLUMN}{one}" for one in self.classes] if self.every else []
        return [self.prefix + name for name in (PREDICTED_COLUMN, CONFIDENCE_COLUMN, *more)]


@dataclass
class PredictionOutcome:
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


def predict_rows(
    request: PredictionRequest,
    scorer: Scorer,
    source: Iterable[RowBatch],
    sink: RowOutput,
    progress: Callable[[int], None] | None = None,
) -> PredictionOutcome:
    """Predict every row and write it with its answers, before the next ones are read.

    Raises:
        DataError: a row that cannot be read, has no text, or has a column of the name of an added one.
    """
    size = len(request.classes)
    outcome = PredictionOutcome(np.zeros((size, size), dtype=np.int64))
    numbers = {class_name(one): number for number, one in enumerate(request.classes)}
    began = time.perf_counter()
    for chunk in source:
        _refuse_clash(chunk, request)
        probabilities = softmax(scorer.logits(chunk.texts(request.texts), progress))
        sink.write(chunk, _added(request, probabilities))
        outcome.rows += len(chunk)
        if request.label is not None:
            _score(outcome, chunk, request.label, numbers, probabilities.argmax(axis=1))
        outcome.seconds = time.perf_counter() - began
    return outcome


def softmax(logits: npt.NDArray[np.float32]) -> Probabilities:
    exact = logits.astype(np.float64)
    powers = np.exp(exact - exact.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _refuse_clash(chunk: RowBatch, request: PredictionRequest) -> None:
    there = set(chunk.columns)
    both = [name for name in request.added if name in there]
    if both:
        raise DataError(
            f"{chunk.where}: it has a column '{both[0]}' already, which the answers would replace; rename it, or give the answers"
            " other names with --prefix NAME_."
        )


def _added(request: PredictionRequest, probabilities: Probabilities) -> Columns:
    best = probabilities.argmax(axis=1)
    rounded = probabilities.round(DECIMALS)
    confidence = rounded[np.arange(len(best)), best].tolist()
    columns = [[request.classes[number] for number in best], confidence, *(rounded.T.tolist() if request.every else [])]
    return dict(zip(request.added, columns, strict=True))


def _score(
    outcome: PredictionOutcome, chunk: RowBatch, label: str, numbers: dict[str, int], predicted: npt.NDArray[np.intp]
) -> None:
    for row, answered in zip(chunk.rows, predicted, strict=True):
        value = row.get(label)
        name = "" if value is None or value != value else class_name(value)
        if name in numbers:
            outcome.matrix[numbers[name], answered] += 1
        elif name in NO_LABEL or not name:
            outcome.unlabelled += 1
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


@contextmanager
def _hide_stdio() -> Iterator[None]:
    """Hide a command's input and output for a while; afterwards they go on where they were.

    Not for use within a user's own process, in which other threads may be reading.
    """
    reader = sys.stdin
    sys.stdout.flush()
    try:
        kept = own_pipes()
    except OSError:  # there are none
        yield
        return
    sys.stdin = io.StringIO()  # what was read ahead is hidden too
    try:
        yield
    finally:
        sys.stdout.flush()
        for place, file in enumerate(kept):
            os.dup2(file, place)
            os.close(file)
        sys.stdin = reader
