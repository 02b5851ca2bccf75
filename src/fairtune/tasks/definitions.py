"""Published tasks, declared: where their data is, which columns count, what the labels mean. To add one, add an entry."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairtune.study.schema import Metric


@dataclass(frozen=True)
class DataSet:
    """A data set: its folder in a mirror, its address on the hub.

    Args:
        folder: `<mirror>/<folder>/<split>.jsonl.gz`.
        revision: the commit on the hub, so that everybody reads the same rows.
        train_rows: size of the published training split; a source that has fewer is named as a part of it.
    """

    folder: str
    repository: str
    config: str
    revision: str
    train_rows: int

    def __str__(self) -> str:
        return f"{self.repository} ({self.config}) at {self.revision[:8]}"


@dataclass(frozen=True)
class Definition:
    """A published task; its name is its data set's folder.

    Args:
        text: the column with the text, or the two of a pair.
        labels: what the label numbers 0, 1, ... mean.
        trained_on: the data set with the training split, where that is another one.
        validation: the split that selects; None holds a part of the training split out.
        test: the split that is reported; None, or one whose labels are -1, takes half of the validation split.
    """

    data: DataSet
    text: tuple[str, ...]
    labels: tuple[str, ...]
    label: str = "label"
    metric: Metric = "accuracy"
    trained_on: DataSet | None = None
    validation: str | None = "validation"
    test: str | None = "test"

    @property
    def name(self) -> str:
        return self.data.folder


PAIR = ("premise", "hypothesis")
INFERENCE = ("entailment", "neutral", "contradiction")
LANGUAGES = ("ar", "bg", "de", "el", "en", "es", "fr", "hi", "ru", "sw", "th", "tr", "ur", "vi", "zh")

SST2 = DataSet("sst2", "nyu-mll/glue", "sst2", "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c", 67_349)
MNLI = replace(SST2, folder="mnli", config="mnli", train_rows=392_702)
XNLI = DataSet("xnli/<language>", "facebook/xnli", "<language>", "b8dd5d7af51114dbda02c0e3f6133f332186418e", 392_702)

DEFINITIONS = (
    Definition(SST2, ("sentence",), ("negative", "positive")),
    # The hub's test_matched has no labels and never will.
    Definition(MNLI, PAIR, INFERENCE, validation="validation_matched", test=None),
    # Trained on English and read in the language: the hub's own training splits are machine translations.
    *(
        Definition(replace(XNLI, folder=f"xnli/{language}", config=language), PAIR, INFERENCE, trained_on=MNLI)
        for language in LANGUAGES
    ),
)
