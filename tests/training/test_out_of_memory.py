"""Memory that runs out: the same examples in smaller parts, the same bits as if it had been known before, or a clear end."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from fairtune.core.errors import RunFailure
from fairtune.core.out_of_memory import is_out_of_memory, score_each
from fairtune.execution.prepare import prepare_run
from fairtune.ledger.events import EventLog, counted_events
from fairtune.training import classification
from fairtune.training.step import BatchPass, accumulate_gradients, make_batches
from tests.execution.conftest import ToyStudy, digests, perform_here, toy  # noqa: F401 - a fixture

ARMS: list[list[Any]] = [
    [],
    ["rdrop", "layerwise_lr", "ema"],
    [{"focal": {"alpha": [0.3, 0.7]}}, "orthogonal_qk"],
    ["fgm"],
]
MESSAGE = "CUDA out of memory. Tried to allocate 2.00 GiB."


@pytest.fixture
def room(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that lets backward passes run out of memory with more rows than it is told."""
    plain = BatchPass.backward

    def limit(rows: int) -> None:
        def backward(self: BatchPass, loss: Any) -> None:
            if len(self.batch["labels"]) > rows:
                raise torch.OutOfMemoryError(MESSAGE)
            plain(self, loss)

        monkeypatch.setattr(BatchPass, "backward", backward)

    return limit


def prepared(job: Any) -> Any:
    job.run.path.mkdir(parents=True)
    return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run


@pytest.mark.parametrize("methods", ARMS, ids=str)
def test_what_failed_leaves_nothing_behind(toy: ToyStudy, room: Any, methods: list[Any]) -> None:  # noqa: F811
    doubled = 2 if "rdrop" in str(methods) else 1
    knew = prepared(toy.job("knew", methods, batch_size=8, accumulate=2))
    knew.progress.micro_batch = 2
    finds_out = prepared(toy.job("finds", methods, batch_size=8, accumulate=2))
    for number, run in enumerate((knew, finds_out)):
        if number:
            room(2 * doubled)
        for _ in range(5):
            run.advance()
    assert finds_out.progress.micro_batch == 2
    expected, found = knew.model.state_dict(), finds_out.model.state_dict()
    assert [name for name in expected if not torch.equal(found[name], expected[name])] == []
    if not methods:
        assert finds_out.progress.memory == knew.progress.memory


@pytest.mark.parametrize("methods", [[], ["label_smoothing"], ["focal"], ["rdrop"]], ids=str)
def test_a_batch_in_parts_has_the_gradient_of_the_whole(toy: ToyStudy, methods: list[Any]) -> None:  # noqa: F811
    found = []
    for micro_batch in (None, 3):
        run = prepared(toy.job(f"runs-{micro_batch}", methods, batch_size=8, accumulate=2))
        run.progress.micro_batch = micro_batch
        for module in run.model.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0
        chosen = run._next_rows()
        loss = accumulate_gradients(run, chosen, make_batches(run, chosen))
        found.append((loss, {name: p.grad for name, p in run.model.named_parameters() if p.grad is not None}))
    (whole_loss, whole), (loss, parts) = found
    assert loss == pytest.approx(whole_loss, rel=1e-5)
    for name, gradient in whole.items():
        torch.testing.assert_close(parts[name], gradient, atol=1e-6, rtol=1e-4)


def test_a_cut_is_recorded_and_stays_when_a_run_is_killed_and_goes_on(toy: ToyStudy, room: Any) -> None:  # noqa: F811
    toy.source["execution"]["checkpoint_every"] = "24h"
    whole, broken = (toy.job(name, epochs=1, evaluate=5) for name in ("whole", "broken"))
    room(5)
    result = perform_here(whole)
    assert (result["status"], result["micro_batch"]) == ("finished", 4), result
    events = counted_events(whole.run.events)
    assert [(e["step"], e["was"], e["size"]) for e in events if e["event"] == "micro_batch"] == [(1, 16, 8), (1, 8, 4)]
    assert any("at most 4 go through the model at once" in e["text"] for e in events if e["event"] == "warning")
    looks = 0

    def kill() -> None:
        nonlocal looks
        looks += 1
        if looks == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform_here(broken, kill)
    room(1000)  # whoever had the memory is gone; the run goes on as it was
    assert perform_here(broken)["micro_batch"] == 4
    assert digests(broken.run.path) == digests(whole.run.path)


def test_a_run_that_fits_says_nothing(toy: ToyStudy) -> None:  # noqa: F811
    job = toy.job("runs", steps=2)
    assert "micro_batch" not in perform_here(job)
    assert not [e for e in counted_events(job.run.events) if e["event"] == "micro_batch"]


@pytest.mark.parametrize(
    ("rows", "methods", "expected"),
    [
        (0, [], "memory ran out at step 1 of 3 with one example alone; use a shorter max_length"),
        (
            4,
            [{"fgm": {"target": "table"}}],
            "with 16 examples at once, which must stay together",
        ),
    ],
)
def test_the_end_is_one_sentence(
    toy: ToyStudy,  # noqa: F811
    room: Any,
    rows: int,
    methods: list[Any],
    expected: str,
) -> None:
    room(rows)
    result = perform_here(toy.job("runs", methods, steps=3))
    assert (result["status"], result["kind"]) == ("failed", "run")
    assert expected in result["reason"]


def test_other_errors_stay_what_they_are(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    def broken(*_: Any) -> None:
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(BatchPass, "backward", broken)
    assert "shapes do not match" in perform_here(toy.job("runs", steps=2))["reason"]


def test_who_times_arms_refuses_to_cut(toy: ToyStudy, room: Any) -> None:  # noqa: F811
    run = prepared(toy.job("runs"))
    run.uncut = "all arms are on the device at once"
    room(4)
    with pytest.raises(RunFailure, match="must stay together: all arms are on the device at once"):
        run.advance()


def test_an_evaluation_goes_on_with_smaller_batches(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    plain, cut = toy.job("plain", steps=2, evaluate=2), toy.job("cut", steps=2, evaluate=2)
    perform_here(plain)
    put = classification.to_device

    def little(data: Any, rows: Any, device: Any) -> Any:
        if torch.is_inference_mode_enabled() and len(rows) > 9:
            raise torch.OutOfMemoryError(MESSAGE)
        return put(data, rows, device)

    monkeypatch.setattr(classification, "to_device", little)
    perform_here(cut)
    results = [json.loads(job.run.result.read_text()) for job in (plain, cut)]
    assert results[1]["metrics"]["test"]["loss"] == pytest.approx(results[0]["metrics"]["test"]["loss"], abs=1e-5)


def test_parts_cover_all_rows_once_whatever_fits() -> None:
    for fits in range(1, 12):
        seen: list[int] = []

        def score(rows: Any, fits: int = fits, seen: list[int] = seen) -> None:
            if len(rows) > fits:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes")
            seen.extend(rows)

        score_each([np.arange(11), np.arange(11, 18)], score)
        assert seen == list(range(18))
    with pytest.raises(RunFailure, match="one example alone was scored"):
        score_each([[1, 2]], lambda _: (_ for _ in ()).throw(MemoryError()))


def test_what_says_that_memory_ran_out() -> None:
    assert all(
        map(
            is_out_of_memory,
            (MemoryError(), torch.OutOfMemoryError(MESSAGE), RuntimeError("MPS backend out of memory")),
        )
    )
    assert not any(map(is_out_of_memory, (RuntimeError("index out of range"), ValueError("out of memory"))))
