"""`head="linear-probe"`: a classifier in seconds that is kept, loaded, copied and called as any other."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from fairtune import TextClassifier
from fairtune.classifier.baselines import baselines_of
from fairtune.classifier.errors import SettingsError, UnusableModelError
from fairtune.core.errors import FairtuneError
from fairtune.learners.encoder_features import compute_features
from fairtune.learners.registry import load_learner
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.encoded_splits import encode
from tests.classifier.made_examples import make_texts

TEXTS, LABELS = make_texts(60)
OTHERS, OTHER_LABELS = make_texts(30, seed=7)


def probe(model: Path, **changes: Any) -> TextClassifier:
    return TextClassifier(
        model=model,
        head="linear-probe",
        validation=0.2,
        device="cpu",
        progress=False,
        **{"metric": "accuracy", **changes},
    )


@pytest.fixture(scope="module")
def probed(small_model: Path) -> TextClassifier:
    return probe(small_model, calibrate=True).fit(TEXTS, LABELS)


@pytest.fixture(scope="module")
def kept(probed: TextClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return probed.save(tmp_path_factory.mktemp("probes") / "my-probe")


def test_it_answers_as_the_learner_of_a_study_does(probed: TextClassifier, kept: Path) -> None:
    shares = probed.predict_proba(OTHERS)
    assert shares.shape == (30, 2)
    assert np.allclose(shares.sum(axis=1), 1)
    assert (probed.classes_[shares.argmax(axis=1)] == probed.predict(OTHERS)).all()
    learner, facts = load_learner(kept)
    split = Split.of([str(n) for n in range(30)], [(text,) for text in OTHERS], np.zeros(30, dtype=np.int64))
    data = encode(split, probed.predictor_.tokenizer, probed.max_length_)
    expected = learner.scores(compute_features(probed.predictor_.network.encoder, data))
    np.testing.assert_allclose(shares, np.exp(expected), atol=1e-5)
    assert facts["learner"] == "linear-probe"
    assert probed.history_["best"].sum() == 1
    assert {"C", "validation_loss", "accuracy"} <= set(probed.history_)
    assert (probed.best_epoch_, probed.partial_) == (0, False)
    assert "|head:linear-probe|" in probed.signature_
    assert probed.validation_.loc["accuracy", "n"] == 12
    assert probed.errors(OTHERS, OTHER_LABELS).examples == 30


def test_kept_loaded_pickled_and_cloned_it_is_the_same(probed: TextClassifier, kept: Path) -> None:
    expected = probed.predict_proba(OTHERS)
    loaded = TextClassifier.load(kept, device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(OTHERS), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(probed)).predict_proba(OTHERS), expected)
    assert (loaded.head, loaded.temperature_) == ("linear-probe", probed.temperature_)
    assert clone(loaded).get_params()["head"] == "linear-probe"
    again = probe(probed.model, calibrate=True).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(again.predict_proba(OTHERS), expected)
    assert again.signature_ == probed.signature_


def test_the_folder_holds_a_plain_encoder_and_a_head_without_pickle(kept: Path) -> None:
    from transformers import AutoModel

    encoder = AutoModel.from_pretrained(kept)
    assert not encoder.training
    names = {file.name for file in kept.iterdir()}
    assert {"learner.safetensors", "learner.json", "model.safetensors", "manifest.json"} <= names
    assert not [name for name in names if name.endswith((".bin", ".pkl", ".pt"))]
    card = (kept / "README.md").read_text(encoding="utf-8")
    assert "AutoModel.from_pretrained" in card
    assert "logistic regression on the mean of the last states" in card
    assert "pipeline" not in card, "transformers' own would draw a head"


@pytest.mark.parametrize("name", ["learner.safetensors", "learner.json"])
def test_a_head_that_was_changed_is_refused(kept: Path, tmp_path: Path, name: str) -> None:
    import shutil

    folder = Path(shutil.copytree(kept, tmp_path / "copy"))
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(bytes(content))
    with pytest.raises(UnusableModelError, match=f"{name} was changed after it was saved"):
        TextClassifier.load(folder)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"head": "probe"}, "head: found 'probe'; allowed: linear-probe, or None to fine-tune the whole model"),
        ({"methods": ["focal"]}, "methods: head='linear-probe' leaves the model as it is, so this does nothing; remove it, or"),
        ({"epochs": 2}, "epochs: head='linear-probe' leaves the model as it is"),
        ({"lr": 1e-3}, "lr: head='linear-probe'"),
        ({"train": {"warmup": 0.1}}, "train: head='linear-probe'"),
        ({"validation": 0}, "validation: head='linear-probe' chooses how strong its regression is on validation examples"),
    ],
)  # fmt: skip
def test_what_means_nothing_without_training_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        TextClassifier(**{"head": "linear-probe", **changes}).fit(TEXTS, LABELS)


def test_a_metric_that_ranks_takes_two_classes_in_validation(small_model: Path) -> None:
    with pytest.raises(FairtuneError, match="roc_auc ranks classes, and all 2 validation examples are of one"):
        probe(small_model, metric="roc_auc").set_params(validation=(["good film", "fine"], ["pos", "pos"])).fit(
            TEXTS, LABELS
        )
    assert "roc_auc" in probe(small_model, metric="roc_auc").fit(TEXTS, LABELS).validation_.index


def test_baselines_are_scored_on_the_same_rows_and_judged_honestly(probed: TextClassifier) -> None:
    found = baselines_of(probed, TEXTS, LABELS, ("other.csv", OTHERS, OTHER_LABELS))
    assert found is not None
    assert [row["name"] for row in found["rows"]] == ["this classifier", "majority", "tfidf"], "the probe is itself"
    assert (found["data"], found["n"], found["metric"]) == ("other.csv", 30, "accuracy")
    own, majority = found["rows"][:2]
    assert own["value"] == pytest.approx(probed.score(OTHERS, OTHER_LABELS))
    assert majority["value"] == 0.5
    assert majority["gain"] == pytest.approx(own["value"] - 0.5)
    assert majority["gain_low"] <= majority["gain"] <= majority["gain_high"]
    assert json.loads(json.dumps(found)) == found
    best = min(found["rows"][1:], key=lambda row: row["gain"])
    expected = "does not beat" if best["gain"] <= 0 else "not shown to beat" if best["gain_low"] <= 0 else "beats"
    assert expected in found["sentence"]


def test_without_test_rows_it_is_the_validation_split(fitted: TextClassifier) -> None:
    found = baselines_of(fitted, *make_texts(60))
    assert found is not None
    assert found["data"] == "validation"
    assert [row["name"] for row in found["rows"]][1:] == ["majority", "tfidf", "linear-probe"]
    assert found["rows"][0]["value"] == pytest.approx(fitted.validation_.loc[fitted.metric, "value"])
