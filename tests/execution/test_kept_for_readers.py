"""What a study keeps for its readers: the scored texts, once, and what the best weights make of test examples."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from fairtune.execution import study_files
from fairtune.execution.study_files import record_examples
from fairtune.ledger.events import counted_events
from fairtune.ledger.predictions import EXAMPLES_FILE, Predictions, about_examples, read_examples, read_predictions
from fairtune.ledger.records import read_records
from fairtune.study.plan import Plan, make_plan
from fairtune.study.study_file import load_study
from tests.execution.conftest import ToyStudy, digests, perform_here


def planned(model: Path, task: dict[str, Any], *sizes: int | None) -> Plan:
    arms = {f"arm-{i}": {} if size is None else {"eval_examples": size} for i, size in enumerate(sizes)}
    return make_plan(
        load_study({"study": "s", "task": task, "model": str(model), "arms": arms, "compare": {"to": "arm-0"}})
    )


def test_scored_texts_are_kept_with_their_lengths(tiny_model: Path, tiny_task: Any, tmp_path: Path) -> None:
    record_examples(planned(tiny_model, tiny_task.as_study(), 20), tmp_path)
    about = about_examples(tmp_path / EXAMPLES_FILE)
    assert about is not None
    assert about.scored == {"validation": 20, "test": 20}
    with tiny_task.test.open() as handle:
        texts = {f"test-{i}": row["text"] for i, row in enumerate(csv.DictReader(handle), start=1)}
    found = read_examples(tmp_path / EXAMPLES_FILE, "test")
    assert len(found.ids) == 20
    assert [text for (text,) in found.texts] == [texts[name] for name in found.ids]
    assert found.tokens.tolist() == [len(text.split()) + 2 for (text,) in found.texts]
    assert set(found.kinds) == {None}


def test_they_are_written_once_and_anew_where_more_is_scored(
    tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record_examples(planned(tiny_model, tiny_task.as_study(), 20), tmp_path)
    first = (tmp_path / EXAMPLES_FILE).stat().st_mtime_ns
    record_examples(planned(tiny_model, tiny_task.as_study(), 20, 10), tmp_path)
    assert (tmp_path / EXAMPLES_FILE).stat().st_mtime_ns == first
    record_examples(planned(tiny_model, tiny_task.as_study(), 20, None), tmp_path)
    assert len(read_examples(tmp_path / EXAMPLES_FILE, "test").ids) == 60
    monkeypatch.setattr(study_files, "MOST", 30)
    record_examples(planned(tiny_model, tiny_task.as_study(), None), tmp_path)
    about = about_examples(tmp_path / EXAMPLES_FILE)
    assert about is not None
    assert about.scored["test"] == 60
    assert len(read_examples(tmp_path / EXAMPLES_FILE, "test").ids) == 30


def test_a_study_runs_without_them_and_the_file_says_why(
    tiny_model: Path, tiny_task: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no idea")

    monkeypatch.setattr(study_files, "_examples", broken)
    plan = planned(tiny_model, tiny_task.as_study(), 20)
    record_examples(plan, tmp_path)
    about = about_examples(tmp_path / EXAMPLES_FILE)
    assert about is not None
    assert about.problem == "RuntimeError: no idea"
    monkeypatch.undo()
    record_examples(plan, tmp_path)
    assert len(read_examples(tmp_path / EXAMPLES_FILE, "test").ids) == 20, "the next time it is tried again"


def test_the_kept_vectors_are_of_the_scored_weights_and_change_no_bit(
    toy: ToyStudy, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = toy.job("with", evaluate=2, steps=4)
    result = perform_here(job)
    (record,) = read_records(job.run, "representation")
    assert record.step == result["best_step"]
    states, rows = record.arrays["states"], record.arrays["rows"]
    assert states.dtype == np.float16
    assert states.shape == (60, 32)
    scored = read_predictions(job.run.predictions, "test")
    assert isinstance(scored, Predictions)
    weights = load_file(job.run.model / "model.safetensors")
    logits = torch.from_numpy(states.astype(np.float32)) @ weights["classifier.weight"].T + weights["classifier.bias"]
    torch.testing.assert_close(logits, torch.from_numpy(scored.scores[rows]), atol=2e-3, rtol=1e-2)

    from fairtune.training import representation

    def broken(_: Any) -> None:
        raise RuntimeError("no head")

    monkeypatch.setattr(representation, "representation", broken)
    other = toy.job("without", evaluate=2, steps=4)
    perform_here(other)
    assert digests(other.run.path) == digests(job.run.path)
    warned = [e["text"] for e in counted_events(other.run.events) if e["event"] == "warning"]
    assert warned == ["no representation was kept (RuntimeError: no head)"]
