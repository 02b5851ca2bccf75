"""A saved classifier: whole or refused, the same in fairtune and in plain transformers, with a card that tells the truth."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from safetensors.torch import load_file, save_file

from fairtune import TextClassifier
from fairtune.classifier import model_folder
from fairtune.classifier.errors import UnusableModelError
from tests.classifier.made_examples import make_texts, quick
from tests.models.hostile_models import make_hostile

TEXTS, LABELS = make_texts(40, seed=3)
LONG = " ".join(["film", "was", "good"] * 30)


@pytest.fixture(scope="module")
def saved(fitted: TextClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fitted.save(tmp_path_factory.mktemp("saved") / "my-model")


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(saved, tmp_path / "my-model"))


def test_loaded_it_is_the_same_classifier(fitted: TextClassifier, saved: Path) -> None:
    loaded = TextClassifier.load(saved)
    np.testing.assert_array_equal(loaded.predict_proba([*TEXTS, LONG]), fitted.predict_proba([*TEXTS, LONG]))
    for name in ("signature_", "best_epoch_", "partial_", "max_length_", "temperature_", "n_features_in_"):
        assert getattr(loaded, name) == getattr(fitted, name), name
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    assert loaded.classes_.dtype == fitted.classes_.dtype
    pd.testing.assert_frame_equal(loaded.history_, fitted.history_)
    pd.testing.assert_frame_equal(loaded.validation_, fitted.validation_)
    same = {
        "lr",
        "epochs",
        "batch_size",
        "max_length",
        "validation",
        "patience",
        "metric",
        "calibrate",
        "train",
        "seed",
    }
    assert {n: loaded.get_params()[n] for n in same} == {n: fitted.get_params()[n] for n in same}
    assert loaded.model == "small-bert", "a folder's name, not where it lay on this machine"


@pytest.mark.parametrize("pairs", [False, True], ids=["texts", "pairs"])
def test_a_plain_pipeline_gives_the_same_labels_and_probabilities(
    fitted: TextClassifier, saved: Path, small_model: Path, tmp_path: Path, pairs: bool
) -> None:
    from transformers import pipeline

    texts: list[Any] = [*TEXTS[:6], LONG]
    given = texts
    if pairs:
        texts = [(text, "the film") for text in texts]
        given = [{"text": text, "text_pair": other} for text, other in texts]
        fitted = quick(small_model, epochs=1, validation=0).fit(texts[:6], [3, 5] * 3)
        saved = fitted.save(tmp_path / "pairs")
    plain = pipeline("text-classification", model=str(saved), truncation=True, top_k=None, device="cpu")
    names = [str(label) for label in fitted.classes_]
    answers = [{entry["label"]: entry["score"] for entry in plain([text])[0]} for text in given]
    found = np.array([[answer[name] for name in names] for answer in answers])
    np.testing.assert_allclose(found, fitted.predict_proba(texts), atol=1e-6)


@pytest.mark.parametrize("values", [[3, 5], [False, True], ["no", "yes"], ["True", "3"]])
def test_labels_come_back_with_their_type(small_model: Path, tmp_path: Path, values: list[Any]) -> None:
    labels = [values[i % 2] for i in range(8)]
    folder = quick(small_model, validation=0, train={"steps": 1}).fit(TEXTS[:8], labels).save(tmp_path / "saved")
    loaded = TextClassifier.load(folder)
    assert loaded.classes_.tolist() == sorted(values)
    assert type(loaded.predict(TEXTS[:1]).tolist()[0]) is type(values[0])


def test_nothing_in_the_folder_is_pickled_or_tells_of_the_machine(saved: Path, small_model: Path) -> None:
    names = {file.name for file in saved.iterdir()}
    assert names == {
        "README.md", "config.json", "fairtune.json", "manifest.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    }  # fmt: skip
    for file in saved.iterdir():
        assert str(small_model.parent).encode() not in file.read_bytes()
        assert str(saved.parent).encode() not in file.read_bytes()


NAMES = [
    "config.json",
    "fairtune.json",
    "manifest.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    (folder / name).unlink()
    with pytest.raises(UnusableModelError, match=f"{name} is missing") as caught:
        TextClassifier.load(folder)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_was_cut_off_is_named(folder: Path, name: str) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(UnusableModelError, match=rf"{name} (is cut off: [\d,]+ of [\d,]+ bytes|cannot be read)"):
        TextClassifier.load(folder)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "manifest.json"])
def test_a_file_that_was_changed_is_named(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(UnusableModelError, match=f"{name} was changed after it was saved"):
        TextClassifier.load(folder)


def test_the_card_is_for_its_readers_to_edit(folder: Path) -> None:
    (folder / "README.md").write_text("# Mine\n")
    TextClassifier.load(folder)


def test_what_is_no_saved_classifier_is_refused(small_model: Path, tmp_path: Path, folder: Path) -> None:
    with pytest.raises(UnusableModelError, match="there is no such folder"):
        TextClassifier.load(tmp_path / "nowhere")
    with pytest.raises(UnusableModelError, match=r"no classifier was saved here.*TextClassifier\(model=...\)"):
        TextClassifier.load(small_model)
    facts = json.loads((folder / "fairtune.json").read_text())
    (folder / "fairtune.json").write_text(json.dumps({**facts, "format": 99}))
    (folder / "manifest.json").write_text(json.dumps(model_folder._sums(folder)))
    with pytest.raises(UnusableModelError, match="which is newer; update fairtune"):
        TextClassifier.load(folder)


def test_saving_again_replaces_a_classifier_and_nothing_else(
    fitted: TextClassifier, folder: Path, small_model: Path
) -> None:
    other = quick(small_model, validation=0, train={"steps": 1}).fit(TEXTS, LABELS)
    other.save(folder)
    assert TextClassifier.load(folder).signature_ == other.signature_
    assert [file.name for file in folder.parent.iterdir()] == ["my-model"]
    (folder / "notes.txt").write_text("mine")
    with pytest.raises(
        UnusableModelError, match=r"besides a classifier the folder holds notes\.txt, which would be lost"
    ):
        fitted.save(folder)
    assert (folder / "notes.txt").read_text() == "mine"


def test_other_peoples_folders_and_files_are_not_written_over(fitted: TextClassifier, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.tex").write_text("...")
    with pytest.raises(UnusableModelError, match=r"holds other things, such as chapter\.tex"):
        fitted.save(tmp_path / "thesis")
    with pytest.raises(UnusableModelError, match="that is a file; name a folder"):
        fitted.save(tmp_path / "thesis" / "chapter.tex")
    (tmp_path / "empty").mkdir()
    assert TextClassifier.load(fitted.save(tmp_path / "empty")).signature_ == fitted.signature_


def test_saving_that_fails_leaves_the_old_classifier(
    fitted: TextClassifier, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(model_folder, "_sums", full)
    with pytest.raises(UnusableModelError, match="cannot be written: No space left on device"):
        fitted.save(folder)
    assert TextClassifier.load(folder).signature_ == fitted.signature_
    assert [file.name for file in folder.parent.iterdir()] == ["my-model"]


def test_what_is_saved_is_what_was_fitted_whatever_the_parameters_are_now(small_model: Path, tmp_path: Path) -> None:
    found = quick(small_model, validation=0, train={"steps": 1}).fit(TEXTS, LABELS)
    found.set_params(lr=0.5, max_length=9, methods=["fgm"])
    loaded = TextClassifier.load(found.save(tmp_path / "saved"))
    assert (loaded.lr, loaded.max_length, loaded.methods) == (0.03, "auto", [])


def test_a_classifier_can_be_trained_on_from_its_folder(saved: Path) -> None:
    onwards = quick(saved, validation=0, train={"steps": 1}).fit(TEXTS, LABELS)
    assert onwards.score(TEXTS, LABELS) > 0.5


def test_the_card_says_what_was_measured_on_what(fitted: TextClassifier, saved: Path) -> None:
    text = (saved / "README.md").read_text()
    _, front, body = text.split("---\n", 2)
    fields = yaml.safe_load(front)
    assert fields["pipeline_tag"] == "text-classification"
    assert fields["library_name"] == "transformers"
    for row in ("| neg | 24 | 6 |", "| pos | 24 | 6 |", "| all | 48 | 12 |"):
        assert row in body
    accuracy = fitted.validation_.loc["accuracy"]
    assert (
        f"| accuracy | {100 * accuracy['value']:.2f} | {100 * accuracy['low']:.2f} to {100 * accuracy['high']:.2f} | 12 |"
        in body
    )
    assert f"temperature of {fitted.temperature_:.4g}" in body
    assert "Measured on the 12 validation examples that it was found on" in body
    assert fitted.signature_ in body
    assert fitted._provenance.data["fingerprint"] in body
    assert 'TextClassifier.load("my-model")' in body
    assert 'pipeline("text-classification", model="my-model", truncation=True)' in body
    assert "Partial" not in body


def test_labels_that_look_like_markup_do_not_break_the_card(small_model: Path, tmp_path: Path) -> None:
    labels = ["a|b", "<c> *d*"] * 4
    folder = quick(small_model, validation=0, train={"steps": 1}).fit(TEXTS[:8], labels).save(tmp_path / "odd")
    assert r"a\|b" in (folder / "README.md").read_text()
    assert TextClassifier.load(folder).classes_.tolist() == ["<c> *d*", "a|b"]


def sealed(folder: Path) -> None:
    """Sums of what is there now, as somebody writes them who wants a changed folder to be loaded."""
    model_folder.write_json(folder / model_folder.SUMS, model_folder._sums(folder))


def test_a_saved_folder_that_names_code_is_refused_though_its_sums_are_right(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n" * 100))
    mark = make_hostile(folder)
    sealed(folder)
    with pytest.raises(UnusableModelError, match=r"config\.json names Python code to run \(auto_map\)"):
        TextClassifier.load(folder)
    assert not mark.exists()


def test_a_saved_folder_without_a_heads_weights_is_refused(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    save_file(
        {name: tensor for name, tensor in weights.items() if name != "classifier.weight"},
        folder / "other",
        {"format": "pt"},
    )
    (folder / "other").rename(folder / "model.safetensors")
    sealed(folder)
    with pytest.raises(UnusableModelError, match=r"its weights lack classifier\.weight"):
        TextClassifier.load(folder)


@pytest.mark.parametrize(
    "change",
    [
        {"record": None}, {"record": {}}, {"parameters": None}, {"format": 99},
        {"record": {"labels": 3}}, {"record": {"max_length": "x"}}, {"record": {"settings": []}}, {"record": {"width": None}},
    ],
    ids=str,
)  # fmt: skip
def test_facts_of_wrong_types_are_reported(folder: Path, change: dict[str, Any]) -> None:
    file = folder / model_folder.FACTS
    facts = json.loads(file.read_text())
    inner = change.get("record")
    merged = {"record": {**facts["record"], **inner}} if inner else change
    file.write_text(json.dumps({**facts, **merged}))
    sealed(folder)
    with pytest.raises(UnusableModelError, match=r"fairtune\.json|goes through it|newer"):
        TextClassifier.load(folder)
