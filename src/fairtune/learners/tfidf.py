"""N-grams with logistic regression or naive Bayes: what a classifier is without any pretraining."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

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
    score_trial,
)
from fairtune.learners.logistic import UNSEEN, LinearHead, fit_heads, unfinished
from fairtune.learners.ngrams import Ngrams, TextFeatures
from fairtune.tasks.task import Labels, Texts

MOST_CHARACTERS = 20_000_000
"""Characters of the training texts up to which n-grams of characters are tried: beyond, they take minutes and say little more."""
MOST_TO_CHOOSE = 20_000
"""Training examples on which settings are tried; what is chosen is then fitted on all of them."""


class Tfidf(FittedLearner):
    """Logistic regression on TF-IDF."""

    name = "tfidf"
    ngrams: ClassVar[tuple[Ngrams, ...]] = (Ngrams((1, 1)), Ngrams((1, 2)), Ngrams((1, 2), (2, 5)))
    strength: ClassVar[str] = "C"
    strengths: ClassVar[tuple[float, ...]] = (0.1, 1.0, 10.0, 100.0)
    heads = staticmethod(fit_heads)

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
        rarities = [arrays[f"rarity{place}"] for place in range(len(facts["terms"])) if f"rarity{place}" in arrays]
        words = TextFeatures.restore(facts, rarities)
        return cls(classes, choice, words, LinearHead(arrays["weight"], arrays["bias"]))

    @classmethod
    def fit(
        cls, train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
    ) -> Self:
        """Try n-grams and strengths; the best on validation is fitted on the training examples, never on validation."""
        texts: Sequence[Texts] = list(train.inputs)
        few: npt.NDArray[np.int64] = np.arange(len(texts))
        if len(texts) > MOST_TO_CHOOSE:
            few = np.linspace(0, len(texts) - 1, MOST_TO_CHOOSE).round().astype(np.int64)
        tried: list[tuple[TriedSetting, Ngrams, TextFeatures, LinearHead]] = []
        sample, held_out = [texts[int(place)] for place in few], list(validation.inputs)
        long = sum(len(text) for row in texts for text in row) > MOST_CHARACTERS
        for ngrams in (one for one in cls.ngrams if not (long and one.characters)):
            check_stop()
            words = TextFeatures.learn(ngrams, sample)
            outside = words.matrix(held_out)
            for strength, head in cls.heads(
                words.matrix(sample), train.labels[few], classes, cls.strengths, check_stop
            ):
                setting = {"ngrams": str(ngrams), cls.strength: strength}
                trial = score_trial(setting, validation.labels, head.scores(outside), metric)
                tried.append((trial, ngrams, words, head))
        best = choose([trial for trial, *_ in tried], metric)
        _, ngrams, words, head = next(one for one in tried if one[0] is best)
        if len(few) < len(texts):
            words = TextFeatures.learn(ngrams, texts)
            chosen = [float(best.setting[cls.strength])]
            _, head = next(cls.heads(words.matrix(texts), train.labels, classes, chosen, check_stop))
        choice = ChosenSetting(best.setting, tuple(trial for trial, *_ in tried))
        return cls(classes, choice, words, head, unfinished(head))


def naive_bayes_heads(
    features: Any, labels: Labels, classes: int, strengths: Sequence[float], check_stop: CheckStop
) -> Iterator[tuple[float, LinearHead]]:
    """For each smoothing, logarithms of the n-grams' shares in each class, and of the classes' shares.

    A class without examples is never ahead: each n-gram speaks for it as little as for any other class.
    """
    own = np.eye(classes)[labels]
    counts, examples = np.asarray(features.T @ own).T, own.sum(0)
    seen = examples > 0
    bias = np.where(seen, np.log(np.maximum(examples, 1) / len(labels)), UNSEEN)
    for smoothing in strengths:
        check_stop()
        smoothed = counts + smoothing
        weights = np.log(smoothed / smoothed.sum(1, keepdims=True))
        weights[~seen] = weights[seen].min(0)
        yield smoothing, LinearHead(weights, bias)


class NaiveBayes(Tfidf):
    """Multinomial naive Bayes on counts, which is linear in them; alpha is added to every count."""

    name = "naive-bayes"
    ngrams = (Ngrams((1, 1), counts=True), Ngrams((1, 2), counts=True))
    strength, strengths = "alpha", (0.01, 0.1, 1.0)
    heads = staticmethod(naive_bayes_heads)
