"""N-grams with logistic regression or naive Bayes: what a classifier is without any pretraining."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from fairtune.learners.base import CheckStop, FittedLearner, Inputs, LabelledInputs, Scores, choose, score_trial
from fairtune.learners.logistic import UNSEEN, LinearHead, fit_heads
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

    @cached_property
    def words(self) -> TextFeatures:
        return TextFeatures.restore(self.facts, self.arrays)

    @property
    def features(self) -> int:
        return len(self.words)

    def scores(self, inputs: Inputs) -> Scores:
        texts: Any = inputs
        return LinearHead(self.arrays["weight"], self.arrays["bias"]).scores(self.words.matrix(texts))

    @classmethod
    def fit(
        cls, train: LabelledInputs, validation: LabelledInputs, classes: int, metric: str, check_stop: CheckStop
    ) -> Self:
        """Try n-grams and strengths; the best on validation is fitted on the training examples, never on validation."""
        texts: Sequence[Texts] = list(train.inputs)
        few: npt.NDArray[np.int64] = np.arange(len(texts))
        if len(texts) > MOST_TO_CHOOSE:
            few = np.linspace(0, len(texts) - 1, MOST_TO_CHOOSE).round().astype(np.int64)
        sample, held_out = [texts[int(place)] for place in few], list(validation.inputs)
        long = sum(len(text) for row in texts for text in row) > MOST_CHARACTERS
        tried = []
        for ngrams in (one for one in cls.ngrams if not (long and one.characters)):
            check_stop()
            words = TextFeatures.learn(ngrams, sample)
            outside = words.matrix(held_out)
            for strength, head in cls.heads(
                words.matrix(sample), train.labels[few], classes, cls.strengths, check_stop
            ):
                setting = {"ngrams": str(ngrams), cls.strength: strength}
                trial = score_trial(setting, validation.labels, head.scores(outside), metric)
                tried.append((trial, (words, head)))
        choice, (words, head) = choose(tried, metric)
        if len(few) < len(texts):
            words = TextFeatures.learn(words.ngrams, texts)
            chosen = [float(choice.setting[cls.strength])]
            _, head = next(cls.heads(words.matrix(texts), train.labels, classes, chosen, check_stop))
        return cls(classes, choice, {**head.arrays, **words.arrays()}, words.facts(), head.notes)


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
