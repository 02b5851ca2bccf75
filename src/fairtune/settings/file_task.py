"""A task made of the user's own files, as a study file has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from fairtune.core.errors import FairtuneError, one_of
from fairtune.settings.encodings import codec_of
from fairtune.settings.metrics import metrics_of_kind
from fairtune.settings.values import MOST_CLASSES, Column, ColumnName, Columns, DataFile, Name, Number, Section

if TYPE_CHECKING:
    MetricName = str
else:
    MetricName = Literal[tuple(metrics_of_kind("classify"))]

OF_LABELS = ("label", "labels", "kinds", "unlabelled", "metric")
SPLITS = ("train", "validation", "test")


def _as_texts(labels: Any) -> Any:
    return [str(one) if isinstance(one, int | float) else one for one in labels] if isinstance(labels, list) else labels


Labels = Annotated[
    tuple[Column, ...],
    Field(min_length=2, max_length=MOST_CLASSES),
    BeforeValidator(_as_texts, Annotated[list[Column | float | bool], Field(min_length=2, max_length=MOST_CLASSES)]),
]


class Holdout(Section):
    """Shares of the training file held out, by a hash of each text, for splits that have no file of their own."""

    validation: Number = Field(0.1, gt=0, lt=1)
    """Share that selects the best checkpoint."""
    test: Number = Field(0.2, gt=0, lt=1)
    """Share that is reported."""


class FileTask(Section):
    """A task made of the user's own files: CSV, TSV, JSONL, Parquet or plain text, each also .gz, or folders of such files."""

    name: Name = "files"
    """What reports call the task."""
    kind: Literal["classify", "language_model"] = "classify"
    """Whether texts are classified, or are the text that a language model learns (in .txt: one document per paragraph)."""
    train: DataFile
    """File or folder with the training examples; relative paths start at the study file."""
    validation: DataFile | None = None
    """File that selects the best checkpoint; held out if absent."""
    test: DataFile | None = None
    """File that is reported; held out if absent."""
    text: Columns = ("text",)
    """Column with the text, or two columns for a pair."""
    label: ColumnName = "label"
    """Column with the label."""
    labels: Labels | None = None
    """Label values in order of their class number; found in the data if absent."""
    kinds: ColumnName | None = Field(None, min_length=1)
    """Column that says of what kind an example is, where it says anything; the report tells mistakes apart by it. Nothing is
    trained on it. A file may lack it, if not all do that validation and test come from."""
    unlabelled: Literal["refuse", "skip"] = "refuse"
    """What to do about rows without a label (empty, or NaN, NA, N/A, null, None and the like, unless `labels` lists it): refuse
    them, or skip them, which plan and report say."""
    encoding: str | None = None
    """How the files are encoded, where they are neither UTF-8 nor begin with a mark that says it."""
    metric: MetricName = "accuracy"
    """The figure that selects checkpoints and decides verdicts."""
    holdout: Holdout = Holdout()
    """Shares held out of the training file."""

    @field_validator("encoding")
    @classmethod
    def _known_encoding(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                codec_of(value)
            except FairtuneError as error:
                raise ValueError(str(error)) from None
        return value

    @property
    def files(self) -> dict[str, Path]:
        """The files by split."""
        return {split: Path(file) for split in SPLITS if (file := getattr(self, split)) is not None}

    @property
    def shares(self) -> dict[str, float]:
        """What is held out of the training file, by split."""
        return {split: getattr(self.holdout, split) for split in SPLITS if getattr(self, split) is None}

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its examples besides its files; what is usual is left out that older versions did not know."""
        usual = {
            name for name in ("unlabelled", "encoding") if getattr(self, name) == type(self).model_fields[name].default
        }
        return self.model_dump(mode="json", exclude={*SPLITS} | usual)

    @model_validator(mode="after")
    def _fits_its_kind(self) -> FileTask:
        if sum(self.shares.values()) >= 1:
            raise ValueError("holdout: the validation and test shares leave nothing to train on")
        if self.kind == "language_model":
            if given := [field for field in OF_LABELS if field in self.model_fields_set]:
                raise ValueError(f"{one_of(given)}: text for language models has no labels; remove it, or `kind`")
            if len(self.text) > 1:
                raise ValueError(f"text: found {one_of(self.text)}; a language model reads one column")
            return self
        for split in SPLITS:
            file = str(getattr(self, split) or "").lower().removesuffix(".gz")
            if file.endswith(".txt"):
                raise ValueError(
                    f"{split}: plain text has no label column; to classify give CSV, TSV, JSONL or Parquet (rename a table to "
                    ".csv), for a language model say `kind: language_model`"
                )
        return self
