"""Learners that are not fine-tuning: what each is, and which settings of a study mean anything to it.

An arm with one of their names, or with `learner: NAME`, is a simple baseline: what a method has to beat to be worth its cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LearnerName = Literal["majority", "tfidf", "naive-bayes", "linear-probe", "knn-probe", "setfit"]
MAJORITY = "majority"
SETFIT, PAIRS = "setfit", 20
"""The learner from pairs, and how many of each kind it has for a training example, as published, unless its arm says otherwise."""
SAMPLES = ("examples", "eval_examples")
"""Settings that decide which examples are used; they matter to every learner."""


@dataclass(frozen=True)
class Learner:
    """A way to learn a classification task without fine-tuning.

    Args:
        help: one line: what it is, and what it shows beside fine-tuning.
        short: what it is, in words that fit into a sentence.
        encoder: whether it needs a pretrained model.
        trained: whether it is trained step by step, in the loop that fine-tuning uses.
        settings: the fields of `train` that mean anything to it; None is all of them.
        epochs: passes that it makes unless its arm says otherwise; None is as many as the study's other arms make.
        step_factor: passes of one optimizer step, as a multiple of those of fine-tuning.
        version: raised whenever the same settings would give another result; part of a run's key.
    """

    name: str
    help: str
    short: str
    encoder: bool = False
    trained: bool = False
    settings: tuple[str, ...] | None = SAMPLES
    epochs: float | None = None
    step_factor: float = 1.0
    version: int = 1

    def uses(self, field: str) -> bool:
        """Whether a field of `train` means anything to it."""
        return self.settings is None or field in self.settings

    def identity(self) -> dict[str, Any]:
        """What a run's settings say of it."""
        return {"name": self.name, "version": self.version}


LEARNERS: dict[str, Learner] = {
    learner.name: learner
    for learner in (
        Learner(MAJORITY, "Always the most frequent class of the training examples: what any score has to be read against.",
                "always saying the most frequent class"),
        Learner("tfidf", "TF-IDF of word and character n-grams with logistic regression: what the words alone give, in seconds.",
                "word and character n-grams with logistic regression"),
        Learner("naive-bayes", "Multinomial naive Bayes on counts of words and pairs of words: the oldest text classifier, in "
                "seconds.", "naive Bayes on counts of words"),
        Learner("linear-probe", "Logistic regression on the mean of the frozen encoder's last states: what the checkpoint knows "
                "without training.", "a frozen encoder with logistic regression", encoder=True, settings=(*SAMPLES, "max_length")),
        Learner("knn-probe", "The nearest training examples by the frozen encoder's states: what the checkpoint's distances give.",
                "a frozen encoder with its nearest neighbours", encoder=True, settings=(*SAMPLES, "max_length")),
        Learner(SETFIT, "The encoder trained on pairs of examples of the same and of different classes, then a linear head: for "
                "few labels.", "an encoder trained on pairs, with a linear head", encoder=True, trained=True, settings=None,
                epochs=1, step_factor=2.0),
    )
}  # fmt: skip
"""In the order in which they are shown."""


def learner_of(arm: Mapping[str, Any]) -> Learner | None:
    """The learner of an arm as a plan has it; None where the arm is fine-tuned, or the learner is that of another version."""
    return LEARNERS.get(str(arm.get("learner")))


def count_pairs(examples: int, each: int) -> int:
    """Pairs of a pass, so many of both kinds for each training example."""
    return 2 * each * examples
