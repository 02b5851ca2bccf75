"""Words and characters with logistic regression: what a classifier is without any pretraining."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import (
    Arrays,
    CheckStop,
    ChosenSetting,
    FittedLearner,
    Inputs,
    LabelledInputs,
    Scores,
    TriedSetting,
    choose,
)
from fairtune.learners.linear_probe import unfinished
from fairtune.learners.logistic import LinearHead, fit_head, try_strengths
from fairtune.learners.ngrams import Ngrams, TextFeatures
from fairtune.tasks.task import Texts

NGRAMS = (Ngrams((1, 1)), Ngrams((1, 2)), Ngrams((1, 2), (2, 5)))
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
MOST_CHARACTERS = 20_000_000
"""Characters of the training texts up to which n-grams of characters are tried: beyond, they take minutes and say little more."""
MOST_TO_CHOOSE = 20_000
"""Training examples on which settings are tried; what is chosen is then fitted on all of them."""


class Tfidf(FittedLearner):
    """Logistic regression on TF-IDF."""

    name = "tfidf"

    def __init__(
        self, classes: int, choice: ChosenSetting, words: TextFeatures, head: LinearHead, notes: tuple[str, ...] = ()
    ) -> None:
        super().__init__(classes, choice, notes)
        self.words, self.head = words, head

    @property
    def features(self) -> int:
        return len(self.words)

    def scores(self, inputs: Inputs) -> Scores:
        texts: Any = inputs
        return self.head.scores(self.words.matrix(texts))

    def arrays(self) -> Arrays:
        rarities = {f"rarity{place}": found for place, found in enumerate(self.words.rarities())}
        return {"weight": self.head.weight, "bias": self.head.bias, **rarities}

    def facts(self) -> dict[str, Any]:
        return self.words.as_json()

    @classmethod
    def restore(cls, classes: int, choice: ChosenSetting, facts: Mapping[str, Any], arrays: Arrays) -> Self:
        words = TextFeatures.restore(facts, [arrays[f"rarity{place}"] for place in range(len(facts["terms"]))])
        return cls(classes, choice, words, LinearHead(arrays["weight"], arrays["bias"]))


def fit_tfidf(
    train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
) -> Tfidf:
    """Try n-grams and strengths; the best on validation is fitted on the training examples, never on validation."""
    texts: Sequence[Texts] = list(train.inputs)
    few: npt.NDArray[np.int64] = np.arange(len(texts))
    if len(texts) > MOST_TO_CHOOSE:
        few = np.linspace(0, len(texts) - 1, MOST_TO_CHOOSE).round().astype(np.int64)
    tried: list[tuple[TriedSetting, Ngrams, TextFeatures, LinearHead]] = []
    sample, held_out = [texts[int(place)] for place in few], list(validation.inputs)
    for ngrams in _candidates(texts):
        check_stop()
        words = TextFeatures.learn(ngrams, sample)
        inside, outside = words.matrix(sample), words.matrix(held_out)
        found = try_strengths(
            inside, train.labels[few], (outside, validation.labels), classes, STRENGTHS, metric, check_stop
        )
        tried += [
            (TriedSetting({"ngrams": str(ngrams), **trial.setting}, trial.score, trial.loss), ngrams, words, head)
            for trial, head in found
        ]
    best = choose([trial for trial, *_ in tried], metric)
    _, ngrams, words, head = next(one for one in tried if one[0] is best)
    if len(few) < len(texts):
        words = TextFeatures.learn(ngrams, texts)
        head = fit_head(words.matrix(texts), train.labels, classes, float(best.setting["C"]), check_stop)
    return Tfidf(
        classes, ChosenSetting(best.setting, tuple(trial for trial, *_ in tried)), words, head, unfinished(head)
    )


def _candidates(texts: Sequence[Texts]) -> list[Ngrams]:
    long = sum(len(text) for row in texts for text in row) > MOST_CHARACTERS
    return [ngrams for ngrams in NGRAMS if not (long and ngrams.characters)]
