"""Every form of texts and labels that is taken gives the same answers; every other gets one clear sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from fairtune import TextClassifier
from fairtune.classifier.errors import InputError, SettingsError, UnusableModelError
from fairtune.classifier.inputs import read_texts
from fairtune.classifier.labels import find_classes, read_labels
from fairtune.classifier.settings import check_settings
from fairtune.core.errors import FairtuneError
from tests.classifier.made_examples import make_texts, quick

SINGLE = ["a film", "the book", ""]
PAIRS = [("a film", "was"), ("the book", "is")]


@pytest.mark.parametrize(
    "given",
    [
        SINGLE,
        tuple(SINGLE),
        (text for text in SINGLE),
        np.array(SINGLE),
        np.array(SINGLE, dtype=object),
        np.array(SINGLE)[:, None],
        pd.Series(SINGLE),
        pd.Series(SINGLE, dtype="category"),
        pd.DataFrame({"text": SINGLE}),
        [[text] for text in SINGLE],
        [np.str_(text) for text in SINGLE],
    ],
)
def test_single_texts_in_every_form(given: Any) -> None:
    found = read_texts(given)
    assert found.texts == [(text,) for text in SINGLE]
    assert all(type(text) is str for (text,) in found.texts)


@pytest.mark.parametrize(
    "given",
    [PAIRS, [list(pair) for pair in PAIRS], np.array(PAIRS), pd.DataFrame(PAIRS), pd.Series(PAIRS)],
)
def test_pairs_in_every_form(given: Any) -> None:
    assert read_texts(given).texts == PAIRS


@pytest.mark.parametrize(
    ("given", "classes"),
    [
        (["b", "a", "b"], ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        ([10, 9, 10], [9, 10]),
        (np.array([10, 9, 10], dtype=np.uint8), [9, 10]),
        (np.array([[10], [9], [10]]), [9, 10]),
        ([True, False, True], [False, True]),
        (pd.DataFrame({"y": [True, False, True]}), [False, True]),
        (pd.Series([1, 0, 1], dtype="Int64"), [0, 1]),
        (np.array([1.0, 0.0, 1.0]), [0, 1]),
    ],
)
def test_labels_in_every_form(given: Any, classes: list[Any]) -> None:
    labels = read_labels(given, 3)
    found = find_classes(labels)
    assert found.values == classes
    assert [type(value) for value in found.values] == [type(value) for value in classes]
    assert found.numbers(labels).tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("one text", r"one bare text, 'one text'; wrap it in a list"),
        (None, r"found None of type NoneType"),
        (3, r"found 3 of type int"),
        ({"a": "b"}, r"of type dict"),
        ({"a", "b"}, r"of type set"),
        (["a", None], r"position 1 is None, not a text; remove such examples"),
        (["a", float("nan")], r"position 1 is nan, not a text"),
        (pd.Series(["a", None, "b"]), r"position 1 is (nan|None), not a text"),
        (pd.Series(["a", pd.NA], dtype="string"), r"position 1 is <NA>, not a text"),
        (pd.DataFrame({"a": ["x", "y"], "b": ["z", None]}), r"position 1 is (nan|None), not a text"),
        (["a", 7], r"position 1 is 7 of type int, not a text"),
        (["a", b"b"], r"position 1 is b'b' of type bytes"),
        (["a", ("b", "c")], r"position 0 is a single text, but position 1 is a pair"),
        ([("a", "b"), "c"], r"position 0 is a pair, but position 1 is a single text"),
        ([("a", "b", "c")], r"position 0 holds 3 values"),
        ([("a", None)], r"position 0 is None, not a text"),
        ([()], r"position 0 holds 0 values"),
        (np.zeros((2, 3)), r"an array of shape \(2, 3\); give one column"),
        (np.array([0.5, 1.5]), r"position 0 is 0.5 of type float"),
        (csr_matrix(np.eye(2)), r"a sparse matrix, not texts"),
        (["fine", "\ud800"], r"position 1 holds half of a surrogate pair"),
    ],
)
def test_what_is_no_text_is_refused_with_its_position(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read_texts(given)
    assert isinstance(caught.value, FairtuneError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (None, r"requires y to be passed, but the target y is None"),
        ("ab", r"found 'ab' of type str"),
        (["a"], r"found 1 for 2 texts"),
        (["a", "b", "c"], r"found 3 for 2 texts"),
        (["a", None], r"position 1 is None; remove examples without a label"),
        (["a", float("nan")], r"position 1 is nan"),
        (pd.Series([1, None]), r"position 1 is nan; remove examples without a label"),
        ([0.5, 1.5], r"Unknown label type"),
        (["1", 1], r"several types: texts \('1' at position 0\), whole numbers \(1 at position 1\)"),
        ([True, 1], r"several types: truth values"),
        (np.eye(2), r"shape \(2, 2\); give one label for each text. Multi-label is not supported"),
        ([["a"], ["b"]], r"position 0 is \['a'\] of type list"),
    ],
)
def test_what_is_no_label_is_refused_with_its_position(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(given, 2)


def test_one_class_and_far_too_many_are_refused() -> None:
    with pytest.raises(InputError, match=r"only one class, 'a'"):
        find_classes(["a", "a"])
    with pytest.raises(InputError, match=r"1,500 different ones \(0, 1, 2 ...\)"):
        find_classes(list(range(1500)))
    with pytest.raises(InputError, match=r"beyond 64 bits"):
        find_classes([1, 2**80])


def test_nothing_to_fit_and_too_few_to_hold_out_are_refused(small_model: Path) -> None:
    for nothing in ([], np.array([]), pd.Series([], dtype=str)):
        with pytest.raises(InputError, match=r"there are none \(0 examples\)"):
            quick(small_model).fit(nothing, [])
    with pytest.raises(InputError, match=r"too few examples \(2\) to hold any out"):
        quick(small_model).fit(["a", "b"], ["x", "y"])
    with pytest.raises(InputError, match=r"no class has two different texts"):
        quick(small_model).fit(["a", " A ", "b", "b"], ["x", "x", "y", "y"])


def test_validation_that_is_given_is_checked_too(small_model: Path) -> None:
    texts, labels = make_texts(8)
    for validation, message in [
        ((["a film"], ["new"]), r"validation labels: 'new' \(position 0, 1 in all\) was not among"),
        ((["a", None], labels[:2]), r"validation texts: position 1 is None"),
        ((["a"], labels[:2]), r"validation labels: found 2 for 1 texts"),
        (([], []), r"validation texts: there are none"),
        (([("a", "b")], labels[:1]), r"found pairs, but the classifier was fitted on single texts"),
    ]:
        with pytest.raises(InputError, match=message):
            quick(small_model, validation=validation).fit(texts, labels)
    with pytest.warns(UserWarning, match="8 of the validation texts are training texts too"):
        quick(small_model, validation=(texts, labels), train={"steps": 1}).fit(texts, labels)


def test_what_cannot_be_predicted_or_scored_is_refused(fitted: TextClassifier) -> None:
    with pytest.raises(InputError, match=r"found pairs, but the classifier was fitted on single texts"):
        fitted.predict([("a", "b")])
    with pytest.raises(
        InputError, match=r"'neutral' \(position 1, 2 in all\) was not among the labels at fit: 'neg', 'pos'"
    ):
        fitted.score(["a", "b", "c"], ["neg", "neutral", "neutral"])
    with pytest.raises(InputError, match=r"Did you mean 'pos'"):
        fitted.errors(["a"], ["poss"])
    with pytest.raises(InputError, match=r"found whole numbers such as 1, but the classifier was fitted on texts"):
        fitted.score(["a"], [1])
    with pytest.raises(InputError, match=r"there are none"):
        fitted.score([], [])
    with pytest.raises(InputError, match=r"found 1 for 2 texts"):
        fitted.score(["a", "b"], ["neg"])


@pytest.mark.parametrize(
    "nothing", [[], (), np.array([], dtype=str), pd.Series([], dtype=object), pd.DataFrame({"text": []})]
)
def test_no_texts_have_no_predictions(fitted: TextClassifier, nothing: Any) -> None:
    assert fitted.predict(nothing).shape == (0,)
    assert fitted.predict(nothing).dtype == fitted.classes_.dtype
    assert fitted.predict_proba(nothing).shape == (0, 2)


def test_pairs_numbers_and_truth_values_are_learned_and_given_back(small_model: Path) -> None:
    texts, labels = make_texts(20)
    frame = pd.DataFrame({"premise": texts, "hypothesis": ["the film"] * 20})
    numbers = quick(small_model, epochs=1).fit(frame, np.array([7 if label == "pos" else -1 for label in labels]))
    assert numbers.classes_.tolist() == [-1, 7]
    assert numbers.predict(frame).dtype == np.int64
    assert numbers.n_features_in_ == 2
    assert numbers.feature_names_in_.tolist() == ["premise", "hypothesis"]
    assert (numbers.predict(frame) == numbers.predict(list(frame.itertuples(index=False, name=None)))).all()
    with pytest.raises(InputError, match="columns are hypothesis, premise, but at fit they were premise, hypothesis"):
        numbers.predict(frame[["hypothesis", "premise"]])
    truth = quick(small_model, epochs=1).fit(texts, [label == "pos" for label in labels])
    assert truth.predict(texts).dtype == np.bool_
    assert not hasattr(truth, "feature_names_in_")


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"methods": ["foca"]}, r"TextClassifier: methods\[0\]: unknown method 'foca'.*Did you mean 'focal'"),
        ({"methods": [{"focal": {"gamma": -1}}]}, r"methods\[0\].focal.gamma: found -1; allowed: a number from 0 to"),
        ({"methods": [{"focal": {"gama": 1}}]}, r"methods\[0\].focal.gama: unknown key.*Did you mean 'gamma'"),
        ({"methods": "fgm"}, r"TextClassifier: methods: found 'fgm'"),
        ({"methods": ["focal", "weighted_ce"]}, r"methods\[1\]: 'weighted_ce' and 'focal' both change the loss"),
        ({"lr": 0}, r"TextClassifier: lr: found 0; allowed: a number above 0"),
        ({"lr": "fast"}, r"TextClassifier: lr: found 'fast'"),
        ({"batch_size": 2.5}, r"TextClassifier: batch_size: found 2.5; allowed: a whole number"),
        ({"max_length": "long"}, r"TextClassifier: max_length: found 'long'"),
        ({"patience": 0}, r"TextClassifier: patience: found 0"),
        ({"validation": 1.5}, r"TextClassifier: validation: found 1.5; allowed: a share below 1"),
        ({"validation": "some"}, r"TextClassifier: validation: found 'some'"),
        ({"metric": "loss"}, r"TextClassifier: metric: found 'loss'; allowed: accuracy, macro_f1, f1, mcc"),
        ({"seed": -1}, r"TextClassifier: seed: found -1; allowed: a whole number from 0 to"),
        ({"seed": True}, r"TextClassifier: seed: found True"),
        ({"seed": 2**32}, r"TextClassifier: seed: found 4294967296; allowed: a whole number from 0 to 4,294,967,295"),
        ({"validation": 10**400}, r"TextClassifier: validation: found 1000.*; allowed: a share below 1"),
        ({"validation": float("nan")}, r"TextClassifier: validation: found nan"),
        ({"epochs": 10**400}, r"TextClassifier: epochs: found 1000.*; allowed: a number above 0 and at most 100,000"),
        ({"batch_size": 10**10}, r"TextClassifier: batch_size: found 10000000000; allowed: a whole number from 1 to 1,000,000,000"),
        ({"methods": [{"bpsom": {"grid": 10**9}}]}, r"methods\[0\].bpsom.grid: found 1000000000; allowed: .* from 1 to 1,000"),
        ({"methods": ["ema"] * 40}, r"TextClassifier: methods: found .*40 entries; allowed: at most 32"),
        ({"model": "x" * 300}, r"TextClassifier: model: found .*300 bytes"),
        ({"model": "a\0b"}, r"TextClassifier: model: found .*no NUL"),
        ({"device": "tpu"}, r"TextClassifier: device\[0\]: found 'tpu'"),
        ({"device": None}, r"TextClassifier: device: found None"),
        ({"calibrate": True, "validation": 0}, r"TextClassifier: calibrate: the temperature is found on validation examples"),
        ({"calibrate": "yes"}, r"TextClassifier: calibrate: found 'yes'; allowed: True or False"),
        ({"train": {"lr": 1}}, r"train.lr: give it as TextClassifier\(lr=...\)"),
        ({"train": {"examples": 5}}, r"train.examples: give fewer texts to `fit` instead"),
        ({"train": {"warmpu": 0.1}}, r"train.warmpu: unknown key.*Did you mean 'warmup'"),
        ({"train": {"schedule": "linea"}}, r"train.schedule: found 'linea'.*Did you mean 'linear'"),
        ({"train": [1]}, r"TextClassifier: train: found \[1\]; allowed: a mapping"),
        ({"model": 3}, r"TextClassifier: model: found 3"),
        ({"model": "gpt-mini"}, r"'gpt-mini' is a preset that is trained from scratch"),
    ],
)  # fmt: skip
def test_parameters_are_refused_in_the_words_of_a_study(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message) as caught:
        check_settings(TextClassifier(**parameters).get_params())
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, FairtuneError)
    assert len(caught.value.problems) == 1


def test_all_wrong_parameters_are_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        TextClassifier(lr=-1, seed="a", methods=["nothing"], train={"warmup": -1}).fit(["a", "b"], [0, 1])
    assert {problem.path for problem in caught.value.problems} == {"lr", "seed", "methods[0]", "train.warmup"}


def test_numbers_of_numpy_are_numbers() -> None:
    given = TextClassifier(lr=np.float64(1e-3), batch_size=np.int64(4), seed=np.int32(1), validation=np.float32(0.25))
    found = check_settings(given.get_params())
    assert (found.train.batch_size, found.seed, found.share) == (4, 1, 0.25)


def test_models_that_are_not_there_or_too_short_are_refused(small_model: Path, tmp_path: Path) -> None:
    texts, labels = make_texts(8)
    with pytest.raises(UnusableModelError, match="no folder of that name") as caught:
        quick(Path("minil")).fit(texts, labels)
    assert isinstance(caught.value, ValueError)
    with pytest.raises(UnusableModelError, match=r"no config\.json"):
        quick(tmp_path).fit(texts, labels)
    with pytest.raises(SettingsError, match="max_length: 65 is too long: model 'small-bert' has 64 positions"):
        quick(small_model, max_length=65).fit(texts, labels)
    with pytest.raises(SettingsError, match="device: there is no 'cuda:9' here; allowed: auto"):
        quick(small_model, device="cuda:9").fit(texts, labels)


def test_what_does_not_fit_the_classes_is_refused(small_model: Path) -> None:
    texts, _ = make_texts(9)
    labels = ["a", "b", "c"] * 3
    with pytest.raises(SettingsError, match="metric: f1 is for two classes, and there are 3"):
        quick(small_model, metric="f1").fit(texts, labels)
    with pytest.raises(SettingsError, match=r"methods\[0\].weighted_ce: .*3"):
        quick(small_model, methods=[{"weighted_ce": {"weights": [1, 2]}}]).fit(texts, labels)
