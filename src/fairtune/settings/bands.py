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
_OTHER_METRICS = {"cola": "mcc", "mrpc": "f1"}
"""Of tasks that are not reported by accuracy."""
_PUBLISHED: tuple[tuple[str, str, str, dict[str, Figure]], ...] = (
    ("BERT-Tiny", "test", BERT_README, {"cola": 0.0, "sst2": 83.2, "mrpc": 81.1, "mnli": 70.2}),
    ("BERT-Mini", "test", BERT_README, {"cola": 0.0, "sst2": 85.9, "mrpc": 81.1, "mnli": 74.8}),
    ("BERT-Small", "test", BERT_README, {"cola": 27.8, "sst2": 89.7, "mrpc": 83.4, "mnli": 77.6}),
    ("BERT-Medium", "test", BERT_README, {"cola": 38.0, "sst2": 89.6, "mrpc": 86.6, "mnli": 80.0}),
    ("MiniLM-L6-H384", "dev", UNILM_README, {"cola": 47.5, "sst2": 91.5, "mrpc": 88.9, "mnli": 83.3}),
    ("DistilBERT uncased", "dev", DISTILLATION_README, {"cola": 51.3, "sst2": 91.3, "mrpc": 87.5, "mnli": 82.1}),
    ("BERT-base uncased", "dev", f"{UNILM_README}, {DISTILLATION_README}",
     {"cola": (56.3, 58.9), "sst2": (92.7, 93.2), "mrpc": (87.3, 88.6), "mnli": (84.5, 84.7)}),
    ("BERT-base cased", "dev", EXAMPLES_README,
     {"cola": (56.5, 59.0), "sst2": (91.7, 92.3), "mrpc": (87.8, 89.0), "mnli": (83.8, 83.9)}),
    ("mBERT", "test", DISTILLATION_README, {"xnli/en": 82.1}),
    ("mBERT", "test", f"{EXAMPLES_README}, {DISTILLATION_README}", {"xnli/de": (70.9, 72.3)}),
    ("DistilmBERT", "test", DISTILLATION_README, {"xnli/en": 78.2}),
)  # fmt: skip
"""In hundredths, as published."""
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
    **{("sst2", "accuracy"): 0.0057, ("mnli", "accuracy"): 0.0016, ("cola", "mcc"): 0.0106},
    **{("mrpc", "accuracy"): 0.0109, ("rte", "accuracy"): 0.0104, ("wnli", "accuracy"): 0.0683},
}
"""BERT-base cased, 5 runs each, dev; transformers flax README."""
_SAME_TASK = {"mnli/matched": "mnli"}


def find_band(model: str, task: str, metric: str) -> Band | None:
    """What was published for a model (a hub id or the name of a folder) on a task; None where nothing is known."""
    name, task = model.partition("@")[0].lower(), _SAME_TASK.get(task, task)
    short = name.rpartition("/")[2]
    for known, split, source, figures in _PUBLISHED:
        is_it = name in _NAMES[known] or (
            "/" not in name and short in {one.rpartition("/")[2] for one in _NAMES[known]}
        )
        if is_it and task in figures and metric == _OTHER_METRICS.get(task, "accuracy"):
            figure = figures[task]
            low, high = (round(end / 100, 4) for end in (figure if isinstance(figure, tuple) else (figure, figure)))
            note = EMBEDDED_NOTE if short in _EMBEDDED else ""
            return Band(known, task, metric, low, high, split, source, note)
    return None


def known_seed_sd(task: str, metric: str) -> float | None:
    """The standard deviation over seeds that was published for a task, in the metric's own unit; None where none is known."""
    return _SEED_SDS.get((_SAME_TASK.get(task, task), metric))
