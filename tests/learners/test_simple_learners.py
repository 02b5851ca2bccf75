"""Simple learners: fitted on training examples, chosen on validation, kept without pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.naive_bayes import MultinomialNB

from fairtune.core.errors import ModelError, RunFailure
from fairtune.learners.base import LabelledInputs
from fairtune.learners.registry import KINDS, load_learner
from fairtune.settings.metrics import classification_metrics, predicted_classes
from fairtune.tasks import load_task
from fairtune.tasks.splits import fixed_sample

WORDS = (["good", "fine", "warm"], ["bad", "dull", "cold"], ["odd", "strange", "weird"])
PROBES = ("linear-probe", "knn-probe")
FITTED = sorted(set(KINDS) - {"setfit"})


def texts(count: int, classes: int = 2, seed: int = 0, pair: bool = False) -> LabelledInputs:
    """Texts whose class one word tells."""
    draw = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    found = [f"a {draw.choice(['film', 'book'])} {draw.choice(WORDS[label])} {draw.integers(99)}" for label in labels]
    return LabelledInputs([("a question", text) if pair else (text,) for text in found], labels)


def vectors(count: int, classes: int = 2, seed: int = 0, width: int = 6) -> LabelledInputs:
    """Vectors about a centre of their class; one dimension never varies."""
    draw = np.random.default_rng(seed)
    labels = np.arange(count) % classes
    found = draw.normal(size=(count, width)) + 3.0 * np.eye(classes, width)[labels]
    found[:, -1] = 1e-9
    return LabelledInputs(found.astype(np.float32), labels)


def examples(name: str, count: int, classes: int = 2, seed: int = 0) -> LabelledInputs:
    return (vectors if name in PROBES else texts)(count, classes, seed)


def fit(name: str, train: LabelledInputs, validation: LabelledInputs, classes: int = 2) -> Any:
    return KINDS[name].fit(train, validation, classes, "accuracy", lambda: None)


def accuracy(learner: Any, found: LabelledInputs) -> float:
    return classification_metrics(found.labels, learner.scores(found.inputs))["accuracy"]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", sorted({*FITTED} - {"majority"}))
def test_a_learner_learns_and_its_scores_are_logarithms_of_probabilities(name: str, classes: int) -> None:
    learner = fit(name, examples(name, 120, classes), examples(name, 60, classes, 1), classes)
    test = examples(name, 60, classes, 2)
    scores = learner.scores(test.inputs)
    assert scores.dtype == np.float32
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(np.exp(scores.astype(np.float64)).sum(axis=1), 1, rtol=1e-5)
    assert accuracy(learner, test) > 0.85


def test_the_majority_class_is_that_of_the_training_examples() -> None:
    train = LabelledInputs([("x",)] * 10, np.array([1] * 6 + [0] * 4))
    learner = fit("majority", train, LabelledInputs([("x",)] * 3, np.array([0, 0, 0])))
    scores = learner.scores([("any",), ("text",)])
    assert predicted_classes(scores).tolist() == [1, 1]
    np.testing.assert_allclose(np.exp(scores[0]), [5 / 12, 7 / 12], rtol=1e-6)


@pytest.mark.parametrize("name", FITTED)
def test_a_learner_is_the_same_each_time_and_after_it_was_kept(name: str, tmp_path: Path) -> None:
    train, validation, test = (examples(name, count, seed=count) for count in (80, 40, 30))
    learner, again = (fit(name, train, validation) for _ in range(2))
    learner.save(tmp_path / "kept", {"labels": ["no", "yes"]})
    kept, facts = load_learner(tmp_path / "kept")
    for other in (again, kept):
        assert np.array_equal(other.scores(test.inputs), learner.scores(test.inputs))
    assert facts["labels"] == ["no", "yes"]
    assert kept.choice.setting == learner.choice.setting
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == ["learner.json", "learner.safetensors"]


@pytest.mark.parametrize("name", sorted({*FITTED} - {"majority"}))
def test_validation_chooses_but_is_never_learned_from(name: str) -> None:
    """With labels that lie, validation may choose another setting; what is fitted with a setting stays the same."""
    train, validation, test = (examples(name, count, seed=count) for count in (80, 40, 30))
    honest, lied = (
        fit(name, train, LabelledInputs(validation.inputs, labels))
        for labels in (validation.labels, 1 - validation.labels)
    )
    assert len(honest.choice.tried) == len(lied.choice.tried) > 1
    assert accuracy(lied, test) > 0.6, "it has learned from the training labels, not from the lie"
    best = max(trial.score for trial in honest.choice.tried)
    assert next(t.score for t in honest.choice.tried if t.setting == honest.choice.setting) == best


def test_naive_bayes_is_that_of_scikit_learn() -> None:
    train, validation = texts(90, 3), texts(30, 3, seed=1)
    learner = fit("naive-bayes", train, validation, classes=3)
    reference = MultinomialNB(alpha=learner.choice.setting["alpha"])
    reference.fit(learner.words.matrix(train.inputs), train.labels)
    expected = reference.predict_log_proba(learner.words.matrix(validation.inputs))
    np.testing.assert_allclose(learner.scores(validation.inputs), expected, atol=1e-5)


def test_naive_bayes_gives_long_texts_no_class_that_it_never_saw() -> None:
    train = texts(40)
    long = LabelledInputs([(" ".join(text for (text,) in train.inputs[:20]),)], train.labels[:1])
    assert predicted_classes(fit("naive-bayes", train, texts(20, seed=1), classes=3).scores(long.inputs))[0] != 2


def test_pairs_of_texts_are_read_side_by_side() -> None:
    train, validation = texts(60, pair=True), texts(30, seed=1, pair=True)
    learner = fit("tfidf", train, validation)
    assert accuracy(learner, validation) > 0.85
    turned = LabelledInputs([(b, a) for a, b in validation.inputs], validation.labels)
    assert accuracy(learner, turned) < 0.85, "which text a word stands in matters"


@pytest.mark.parametrize("name", FITTED)
def test_a_class_without_a_training_example_is_improbable_but_possible(name: str) -> None:
    train, validation = examples(name, 40), examples(name, 20, seed=1)
    scores = fit(name, train, validation, classes=3).scores(validation.inputs)
    assert scores.shape == (20, 3)
    assert np.isfinite(scores).all()
    assert not (predicted_classes(scores) == 2).any()


@pytest.mark.parametrize("name", FITTED)
def test_one_class_alone_is_always_predicted(name: str) -> None:
    found = examples(name, 20)
    train = LabelledInputs(found.inputs, np.ones(20, dtype=np.int64))
    assert set(predicted_classes(fit(name, train, found).scores(found.inputs))) == {1}


def test_texts_without_a_word_are_refused_in_a_sentence() -> None:
    blank = LabelledInputs([(" ",), ("!",)] * 3, np.array([0, 1] * 3))
    for name in ("tfidf", "naive-bayes"):
        with pytest.raises(RunFailure, match="no words to count"):
            fit(name, blank, blank)


@pytest.mark.parametrize("damage", ["learner.json", "learner.safetensors", "facts"])
def test_a_damaged_learner_is_refused(damage: str, tmp_path: Path) -> None:
    fit("linear-probe", vectors(20), vectors(20)).save(tmp_path)
    if damage == "facts":
        file = tmp_path / "learner.json"
        file.write_text(file.read_text().replace('"linear-probe"', '"other"'))
    else:
        (tmp_path / damage).unlink()
    with pytest.raises(ModelError, match=tmp_path.name):
        load_learner(tmp_path)


GOLDEN = {
    "majority": (0.49, {}),
    "tfidf": (0.635, {"ngrams": "words 1-2", "C": 1.0}),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_scores_on_the_embedded_reviews_stay_what_they_are(name: str) -> None:
    task = load_task("movie-reviews")
    splits = {split: fixed_sample(task.splits[split], 200) for split in ("train", "validation", "test")}
    train, validation, test = (LabelledInputs(split.texts, split.labels) for split in splits.values())
    learner = fit(name, train, validation)
    assert (accuracy(learner, test), dict(learner.choice.setting)) == (pytest.approx(GOLDEN[name][0]), GOLDEN[name][1])
