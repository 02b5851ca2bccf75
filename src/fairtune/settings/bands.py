"""Published figures as data: what a healthy fine-tuned baseline reaches, and how much the luck of seeds moves it.

A band is what was published, with its source; nothing is added for the luck of seeds or of examples. All figures are of training on
the full training set.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairtune.settings.metrics import METRICS, title_of

BERT_README = "google-research/bert README"
UNILM_README = "microsoft/unilm README"
DISTILLATION_README = "transformers distillation README"
EXAMPLES_README = "transformers examples README"
EMBEDDED_NOTE = "minilm is all-MiniLM-L6-v2, which was made from MiniLM-L6-H384 by training on sentence pairs"


@dataclass(frozen=True)
class Band:
    """What was published for a model, a task and a metric.

    Args:
        model: as its publication calls it.
        low: the lowest figure, in the metric's own unit: an accuracy of 91.5 % is 0.915.
        split: that it was measured on.
        note: what to know about the model, where the one that is asked for is not quite the published one.
    """

    model: str
    task: str
    metric: str
    low: float
    high: float
    split: str
    source: str
    note: str = ""

    @property
    def figures(self) -> str:
        """The figure or figures as reports show the metric."""
        factor = METRICS[self.metric].factor
        low, high = (f"{factor * value:.1f}" for value in (self.low, self.high))
        unit = " %" if METRICS[self.metric].shown == "percent" else ""
        return f"{low}{unit}" if low == high else f"{low} to {high}{unit}"

    def __str__(self) -> str:
        about = f"; {self.note}" if self.note else ""
        return f"{title_of(self.metric)} of {self.model} on {self.task}, {self.figures} ({self.split}, {self.source}{about})"


Figure = float | tuple[float, float]
_COLUMNS = (("cola", "mcc"), ("sst2", "accuracy"), ("mrpc", "f1"), ("mnli", "accuracy"))
_TABLE: tuple[tuple[str, tuple[Figure, Figure, Figure, Figure], str, str], ...] = (
    ("BERT-Tiny", (0.0, 83.2, 81.1, 70.2), "test", BERT_README),
    ("BERT-Mini", (0.0, 85.9, 81.1, 74.8), "test", BERT_README),
    ("BERT-Small", (27.8, 89.7, 83.4, 77.6), "test", BERT_README),
    ("BERT-Medium", (38.0, 89.6, 86.6, 80.0), "test", BERT_README),
    ("MiniLM-L6-H384", (47.5, 91.5, 88.9, 83.3), "dev", UNILM_README),
    ("DistilBERT uncased", (51.3, 91.3, 87.5, 82.1), "dev", DISTILLATION_README),
    (
        "BERT-base uncased",
        ((56.3, 58.9), (92.7, 93.2), (87.3, 88.6), (84.5, 84.7)),
        "dev",
        f"{UNILM_README}, {DISTILLATION_README}",
    ),
    ("BERT-base cased", ((56.5, 59.0), (91.7, 92.3), (87.8, 89.0), (83.8, 83.9)), "dev", EXAMPLES_README),
)
"""In hundredths, as published; the columns are `_COLUMNS`."""
_OTHERS: tuple[tuple[str, str, str, Figure, str, str], ...] = (
    ("mBERT", "xnli/en", "accuracy", 82.1, "test", DISTILLATION_README),
    ("mBERT", "xnli/de", "accuracy", (70.9, 72.3), "test", f"{EXAMPLES_README}, {DISTILLATION_README}"),
    ("DistilmBERT", "xnli/en", "accuracy", 78.2, "test", DISTILLATION_README),
)
_NAMES: dict[str, tuple[str, ...]] = {
    "BERT-Tiny": ("google/bert_uncased_l-2_h-128_a-2", "prajjwal1/bert-tiny"),
    "BERT-Mini": ("google/bert_uncased_l-4_h-256_a-4", "prajjwal1/bert-mini"),
    "BERT-Small": ("google/bert_uncased_l-4_h-512_a-8", "prajjwal1/bert-small"),
    "BERT-Medium": ("google/bert_uncased_l-8_h-512_a-8", "prajjwal1/bert-medium"),
    "MiniLM-L6-H384": ("minilm", "sentence-transformers/all-minilm-l6-v2", "nreimers/minilm-l6-h384-uncased"),
    "DistilBERT uncased": ("distilbert/distilbert-base-uncased",),
    "BERT-base uncased": ("google-bert/bert-base-uncased",),
    "BERT-base cased": ("google-bert/bert-base-cased",),
    "mBERT": ("google-bert/bert-base-multilingual-cased",),
    "DistilmBERT": ("distilbert/distilbert-base-multilingual-cased",),
}
"""By what a study may call each, in lower case; the part after the slash alone will do."""
_EMBEDDED = {"minilm", "all-minilm-l6-v2"}
_SEED_SDS = {
    ("sst2", "accuracy"): 0.0057,
    ("mnli", "accuracy"): 0.0016,
    ("cola", "mcc"): 0.0106,
    ("mrpc", "accuracy"): 0.0109,
    ("rte", "accuracy"): 0.0104,
    ("wnli", "accuracy"): 0.0683,
}
"""BERT-base cased, 5 runs each, dev; transformers flax README."""
_SAME_TASK = {"mnli/matched": "mnli"}


def find_band(model: str, task: str, metric: str) -> Band | None:
    """What was published for a model on a task; None where nothing is known.

    Args:
        model: a hub id, with a revision or without, or the name of a folder.
    """
    name = model.partition("@")[0].lower()
    short = name.rpartition("/")[2]
    for known, others in _NAMES.items():
        if name in others or ("/" not in name and short in {other.rpartition("/")[2] for other in others}):
            band = _BANDS.get((known, _SAME_TASK.get(task, task), metric))
            return _with_note(band) if band is not None and short in _EMBEDDED else band
    return None


def known_seed_sd(task: str, metric: str) -> float | None:
    """The standard deviation over seeds that was published for a task, in the metric's own unit; None where none is known."""
    return _SEED_SDS.get((_SAME_TASK.get(task, task), metric))


def _with_note(band: Band) -> Band:
    return Band(band.model, band.task, band.metric, band.low, band.high, band.split, band.source, EMBEDDED_NOTE)


def _band(model: str, task: str, metric: str, figure: Figure, split: str, source: str) -> Band:
    low, high = figure if isinstance(figure, tuple) else (figure, figure)
    return Band(model, task, metric, round(low / 100, 4), round(high / 100, 4), split, source)


def _all_bands() -> list[Band]:
    found = [_band(*other) for other in _OTHERS]
    for model, figures, split, source in _TABLE:
        found += [
            _band(model, *column, figure, split, source) for column, figure in zip(_COLUMNS, figures, strict=True)
        ]
    return found


_BANDS = {(band.model, band.task, band.metric): band for band in _all_bands()}
