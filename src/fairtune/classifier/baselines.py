"""What simple learners reach where a classifier was trained: the same training rows, the same held-out rows, seconds each.

A fine-tuned model that does not beat them is not worth its cost, and whoever trains one should be told so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fairtune.analysis.resampling import Classified
from fairtune.analysis.scales import scale_of
from fairtune.classifier.evaluation import EDGES, SEED, confusion, overall
from fairtune.classifier.inputs import read_texts
from fairtune.classifier.labels import read_labels
from fairtune.classifier.settings import check_settings
from fairtune.classifier.training_data import Data, hold_out, read_data
from fairtune.core.seeding import derive
from fairtune.learners.base import LabelledInputs
from fairtune.learners.encoder_features import encoder_features
from fairtune.learners.registry import KINDS
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.settings.learners import LEARNERS
from fairtune.settings.metrics import METRICS
from fairtune.settings.score_metrics import ScoredExamples
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import Labels, Split
from fairtune.tasks.tokens.encoded_splits import encode

if TYPE_CHECKING:
    from fairtune.classifier.text_classifier import TextClassifier

NAMES = ("majority", "tfidf", "linear-probe")
MOST_EMBEDDED = 5_000
"""Training rows that the probe's encoder reads: more would take minutes, and change little."""
DRAWS, WEIGHTS = 1000, 4_000_000
OWN = "this classifier"
Scores = npt.NDArray[np.floating]


@dataclass(frozen=True)
class HeldOut:
    """Rows on which everybody is scored, and how the classifier scored them.

    Args:
        data: which rows they are.
        scores: of the classifier: logits or logarithms of probabilities.
    """

    data: str
    split: Split
    scores: Scores


def baselines_of(
    classifier: TextClassifier, texts: Any, labels: Any, test: tuple[str, Any, Any] | None = None
) -> dict[str, Any] | None:
    """Simple learners beside a classifier that was fitted on these texts; None where no rows were held out.

    Args:
        test: what such rows are called, their texts and their labels; None is the validation split.
    """
    settings = check_settings(classifier.get_params(deep=False))
    data = read_data(texts, labels, classifier.validation, settings)
    if test is not None:
        given = read_texts(test[1])
        numbers = data.classes.numbers(read_labels(test[2], len(given)))
        split = Split.of([f"test-{row}" for row in range(len(given))], given.texts, numbers)
    elif "validation" in data.splits:
        split = data.splits["validation"]
    else:
        return None
    held_out = HeldOut(
        "validation" if test is None else test[0], split, classifier.predictor_.logits(list(split.texts))
    )
    return compare_baselines(
        data, held_out, settings.model, classifier.max_length_, settings.metric, settings.seed,
        str(classifier.predictor_.device), settings.head,
    )  # fmt: skip


def compare_baselines(
    data: Data, held_out: HeldOut, model: str, max_length: int, metric: str, seed: int, device: str,
    head: str | None = None,
) -> dict[str, Any]:  # fmt: skip
    """A table of simple learners beside a classifier, as plain data, with a sentence that says what it shows.

    Args:
        data: what the classifier was trained and selected on; the learners choose their settings on the same validation rows.
        model: that the classifier started from.
        head: of a classifier that is a simple learner itself.
    """
    names = [name for name in NAMES if name != head]
    train, validation = _chosen_on(data, seed)
    own, classes = _row(OWN, held_out, held_out.scores, metric), len(data.classes.values)
    rows, notes = [own], []
    for name in names:
        began = time.perf_counter()
        used = fixed_sample(train, MOST_EMBEDDED) if LEARNERS[name].encoder else train
        if len(used) < len(train):
            notes.append(
                f"{name} is fitted on {len(used):,} of the {len(train):,} training rows, so that it stays quick."
            )
        inputs = _inputs(name, model, max_length, device)
        learner = KINDS[name].fit(inputs(used), inputs(validation), classes, metric, lambda: None)
        scores = learner.scores(inputs(held_out.split).inputs)
        row = _row(name, held_out, scores, metric) | _gain(held_out, scores, metric)
        rows.append({**row, "chosen": dict(learner.choice.setting), "seconds": time.perf_counter() - began})
    found = {"data": held_out.data, "n": len(held_out.split), "metric": metric, "rows": rows, "notes": notes}
    return {
        **found,
        "sentence": _sentence(found, "train longer or on more rows" if head is None else "fine-tune the model"),
    }


def _chosen_on(data: Data, seed: int) -> tuple[Split, Split]:
    """Training rows, and the rows on which settings are chosen; a tenth is held out where the classifier needed none."""
    train = data.splits["train"]
    if "validation" in data.splits:
        return train, data.splits["validation"]
    kept, held = hold_out(train.texts, train.labels, 0.1, derive(seed, "validation"))
    return train.take(kept), train.take(held)


def _inputs(name: str, model: str, max_length: int, device: str) -> Callable[[Split], LabelledInputs]:
    """What a learner reads of a split: texts, or what the frozen model makes of them."""
    if not LEARNERS[name].encoder:
        return lambda split: LabelledInputs(list(split.texts), split.labels)
    source = find_model(model).fetched()
    tokenizer = load_tokenizer(source.fetch())

    def embedded(split: Split) -> LabelledInputs:
        return LabelledInputs(
            encoder_features(source, tokenizer, encode(split, tokenizer, max_length), device), split.labels
        )

    return embedded


def _row(name: str, held_out: HeldOut, scores: Scores, metric: str) -> dict[str, Any]:
    labels, classes = held_out.split.labels, scores.shape[1]
    examples = ScoredExamples(labels, scores) if METRICS[metric].from_scores is not None else None
    figures = overall(confusion(labels, scores.argmax(axis=1), classes), examples)
    figure = next((one for one in figures if one["metric"] == metric), {"value": None, "low": None, "high": None})
    own = {key: figure[key] for key in ("value", "low", "high")}
    accuracy = next(one["value"] for one in figures if one["metric"] == "accuracy")
    return {"name": name, **own, "accuracy": accuracy, "gain": None, "gain_low": None, "gain_high": None}


def _gain(held_out: HeldOut, scores: Scores, metric: str) -> dict[str, float | None]:
    """By how much the classifier is ahead, with an interval for the luck of rows: both are weighted alike in every draw."""
    labels = held_out.split.labels
    sides = [_weighted(labels, side, metric) for side in (held_out.scores, scores)]
    n, sign = len(labels), -1 if METRICS[metric].lower_is_better else 1
    whole = np.ones((1, n))
    value = sign * float((sides[0](whole) - sides[1](whole))[0])
    if not np.isfinite(value):
        return {}
    generator, found = np.random.default_rng(SEED), []
    size = max(1, WEIGHTS // n)
    for start in range(0, DRAWS, size):
        weights = generator.standard_exponential((min(size, DRAWS - start), n))
        found.append(sign * (sides[0](weights) - sides[1](weights)))
    low, high = (float(end) for end in np.nanquantile(np.concatenate(found), EDGES))
    return {"gain": value, "gain_low": min(low, value), "gain_high": max(high, value)}


def _weighted(labels: Labels, scores: Scores, metric: str) -> Callable[[Any], Any]:
    examples = ScoredExamples(labels, scores)
    own = Classified(labels, scores.argmax(axis=1), examples.classes, examples=examples)
    if METRICS[metric].from_scores is not None:
        return own.weighted(metric)
    return lambda weights: METRICS[metric].formula(own.totals(weights))


def _sentence(found: dict[str, Any], instead: str) -> str:
    """What the table says of the classifier, against the best of the others.

    Args:
        instead: what may help where it is no better than they are.
    """
    others = [row for row in found["rows"][1:] if row["gain"] is not None]
    if not others:
        return "None of them can be scored on these rows."
    best, scale = min(others, key=lambda row: row["gain"]), scale_of(found["metric"])
    figures = f"{scale.value(found['rows'][0]['value'])} against {scale.value(best['value'])}"
    what = f"{scale.title} {figures}, n = {found['n']:,}"
    if best["gain"] <= 0:
        return f"It does not beat {best['name']} ({what}), which takes seconds: use that, or {instead}."
    if best["gain_low"] <= 0:
        return f"It is not shown to beat {best['name']} ({what}), which takes seconds: more rows to test on would tell."
    if best["name"] == "majority":
        return f"It beats always saying the most frequent class ({what})."
    return f"It beats {best['name']}, the best of them ({what})."
