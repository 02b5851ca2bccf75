"""A true scikit-learn estimator: its own checks, and what people build from estimators."""

from __future__ import annotations

import copy
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks, get_tags
from sklearn.utils.validation import check_is_fitted

from fairtune import TextClassifier
from tests.classifier.made_examples import make_texts, quick
from tests.warm import warm_run

TEXTS, LABELS = make_texts(24)
QUICKEST: dict[str, Any] = {"epochs": 1, "validation": 0, "max_length": 8}

CHECKS = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_unfitted",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]
"""Those that need no data, or none that is understood."""

LEFT_OUT = {
    "numbers as X": (
        "array_api", "classifier_data_not_an_array", "classifier_multioutput", "classifiers_classes", "classifiers_one_label",
        "classifiers_regression_target", "classifiers_train", "complex_data", "dataframe_column_names_consistency",
        "decision_proba_consistency", "dict_unchanged", "dont_overwrite_parameters", "dtype_object", "estimator_sparse",
        "estimators_dtypes", "estimators_empty_data_messages", "estimators_fit_returns_self", "estimators_nan_inf",
        "estimators_overwrite_params", "estimators_pickle", "f_contiguous", "fit1d", "fit2d", "fit_check_is_fitted",
        "fit_idempotent", "fit_score_takes_y", "inplace_ensure_writeable", "methods_sample_order_invariance",
        "methods_subset_invariance", "n_features_in", "pipeline_consistency", "positive_only_tag", "readonly_memmap",
        "requires_y_none", "supervised_y_2d", "supervised_y_no_nan",
    ),
    "sample weights in fit, which it does not take": ("sample_weight", "class_weight", "all_zero_sample_weights"),
    "another kind of estimator": (
        "transformer", "cluster", "outlier", "regressor", "multilabel", "partial_fit", "feature_names_out", "set_output",
        "global_", "sparsify", "n_iter", "nonsquare", "fit_non_negative", "not_supporting_multiclass",
    ),
    "parameters are checked in fit, with messages of its own": ("param_validation",),
}  # fmt: skip
"""Why the others are not run; what they promise of data is tested below with texts."""


@pytest.mark.parametrize("check", CHECKS)
def test_the_checks_of_scikit_learn_that_make_sense_for_text(check: str) -> None:
    getattr(estimator_checks, check)("TextClassifier", TextClassifier())


def test_every_other_check_is_left_out_for_a_reason() -> None:
    known = {name for name in dir(estimator_checks) if name.startswith("check_") and name not in CHECKS}
    own = {name for name in known if getattr(estimator_checks, name).__module__ == estimator_checks.__name__}
    reasons = [word for words in LEFT_OUT.values() for word in words]
    tools = {"check_estimator", "check_classifiers_predictions", "check_estimators_data_not_an_array"}
    assert {name for name in own if not any(word in name for word in reasons)} <= tools


def test_it_says_what_it_takes() -> None:
    tags = get_tags(TextClassifier())
    assert is_classifier(TextClassifier())
    assert tags.input_tags.string
    assert not tags.input_tags.two_d_array
    assert tags.target_tags.required


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
def test_before_fit_there_is_nothing_to_ask(method: str, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(TextClassifier(), method)(TEXTS)
    with pytest.raises(NotFittedError):
        TextClassifier().score(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        TextClassifier().errors(TEXTS, LABELS)
    with pytest.raises(NotFittedError):
        TextClassifier().save(tmp_path / "nothing")
    with pytest.raises(NotFittedError):
        check_is_fitted(TextClassifier())


def test_a_fit_changes_no_parameter_and_returns_itself(fitted: TextClassifier, small_model: Path) -> None:
    estimator = quick(small_model, **QUICKEST, methods=[{"focal": {"gamma": 1}}], train={"warmup": 0.2})
    before = copy.deepcopy(estimator.get_params())
    assert estimator.fit(TEXTS, LABELS) is estimator
    assert estimator.get_params() == before
    check_is_fitted(fitted)


def test_answers_do_not_depend_on_which_texts_are_asked_together(fitted: TextClassifier) -> None:
    whole = fitted.predict_proba(TEXTS)
    order = np.random.default_rng(0).permutation(len(TEXTS))
    np.testing.assert_allclose(fitted.predict_proba([TEXTS[i] for i in order]), whole[order], atol=1e-6)
    alone = np.concatenate([fitted.predict_proba([text]) for text in TEXTS[:5]])
    np.testing.assert_allclose(alone, whole[:5], atol=1e-6)


def test_a_clone_is_unfitted_with_equal_parameters(fitted: TextClassifier) -> None:
    other = clone(fitted)
    assert other.get_params() == fitted.get_params()
    assert not hasattr(other, "classes_")


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda c: pickle.loads(pickle.dumps(c))], ids=["deepcopy", "pickle"])
def test_a_copy_answers_alike(fitted: TextClassifier, copied: Any) -> None:
    other = copied(fitted)
    np.testing.assert_array_equal(other.predict_proba(TEXTS), fitted.predict_proba(TEXTS))
    assert other.signature_ == fitted.signature_
    assert other.history_.equals(fitted.history_)
    assert other.get_params() == fitted.get_params()


def test_a_gpt_whose_class_was_made_at_run_time_is_copied_too(tmp_path: Path) -> None:
    import torch
    from transformers import GPT2Config, GPT2Model

    from fairtune.testing.toy import VOCABULARY, make_tokenizer

    size = len(VOCABULARY)
    config = GPT2Config(vocab_size=size, n_embd=16, n_layer=1, n_head=2, n_positions=32, pad_token_id=0, eos_token_id=3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        GPT2Model(config).save_pretrained(tmp_path / "gpt")
    make_tokenizer().save_pretrained(tmp_path / "gpt")
    found = quick(tmp_path / "gpt", **QUICKEST).fit(TEXTS, LABELS)
    other = pickle.loads(pickle.dumps(found))
    np.testing.assert_allclose(other.predict_proba(TEXTS), found.predict_proba(TEXTS), atol=1e-6)


def test_cross_validation_scores_and_predicts(small_model: Path) -> None:
    estimator = quick(small_model, **QUICKEST)
    scores = cross_val_score(estimator, TEXTS, LABELS, cv=2, scoring="f1_macro")
    assert scores.shape == (2,)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(cross_val_score(estimator, np.array(TEXTS), LABELS, cv=2, scoring="f1_macro"), scores)
    chances = cross_val_predict(estimator, TEXTS, LABELS, cv=2, method="predict_proba")
    assert chances.shape == (24, 2)


APART = """
import pickle, sys
from joblib import parallel_config
from joblib.externals.loky.backend.context import set_start_method
from sklearn.model_selection import cross_validate
set_start_method("fork")
estimator, texts, labels = pickle.load(sys.stdin.buffer)
with parallel_config(backend="loky"):
    found = cross_validate(estimator, texts, labels, cv=2, n_jobs=2, return_estimator=True)
sys.stdout.buffer.write(pickle.dumps(found))
"""


def test_cross_validation_in_two_processes_gives_the_same(small_model: Path) -> None:
    """Sent to a process that has never seen it, fitted in two others, and sent back."""
    estimator = quick(small_model, **QUICKEST)
    order = pickle.dumps((estimator, TEXTS, LABELS))
    apart = pickle.loads(warm_run([sys.executable, "-c", APART], input=order, check=True).stdout)
    here = cross_val_score(estimator, TEXTS, LABELS, cv=2)
    np.testing.assert_array_equal(apart["test_score"], here)
    assert apart["estimator"][0].predict(TEXTS).shape == (24,)


def test_a_grid_over_rates_and_methods(small_model: Path) -> None:
    grid = {"lr": [0.03], "methods": [(), ["fgm"], [{"focal": {"gamma": 1}}, "fgm"]]}
    search = GridSearchCV(quick(small_model, **QUICKEST), grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
    assert len(search.cv_results_["params"]) == 3
    assert search.best_params_["methods"] in grid["methods"]
    assert search.best_estimator_.predict(TEXTS).shape == (24,)


def test_at_the_end_of_a_pipeline(small_model: Path) -> None:
    lower = FunctionTransformer(lambda texts: [text.lower() for text in texts])
    whole = Pipeline([("lower", lower), ("classify", quick(small_model, **QUICKEST))])
    whole.fit([text.upper() for text in TEXTS], LABELS)
    plain = quick(small_model, **QUICKEST).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(whole.predict_proba([text.upper() for text in TEXTS]), plain.predict_proba(TEXTS))
    assert whole.set_params(classify__lr=0.5).get_params()["classify__lr"] == 0.5
    assert whole.score(TEXTS, LABELS) == plain.score(TEXTS, LABELS)


def test_weights_of_examples_count_in_score(fitted: TextClassifier) -> None:
    right = fitted.predict(TEXTS) == np.array(LABELS)
    assert fitted.score(TEXTS, LABELS) == pytest.approx(right.mean())
    assert fitted.score(TEXTS, LABELS, sample_weight=right.astype(float)) == 1
