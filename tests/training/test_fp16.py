"""fp16: the loss is scaled on its way back and gradients are unscaled before they are measured and clipped.

Accelerate wants a GPU for fp16; torch itself does not, so its real scaler and real half precision run here on the CPU.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from fairtune.execution import prepare as run
from fairtune.ledger.events import counted_events
from fairtune.training.device import make_accelerator
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401


@pytest.fixture
def fp16(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets `precision: fp16` run on the CPU, with a loss scale to begin with."""

    def allow(scale: float) -> None:
        def make(device: str, precision: str, deterministic: bool = True) -> Any:  # noqa: ARG001
            accelerator = make_accelerator(device, "fp32")
            if precision == "fp16":
                accelerator.state._mixed_precision, accelerator.native_amp = "fp16", True
                accelerator.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
            return accelerator

        monkeypatch.setattr(run, "make_accelerator", make)

    return allow


def steps(job: Any) -> list[dict[str, Any]]:
    return [event for event in counted_events(job.run.events) if event["event"] == "step"]


@pytest.mark.parametrize("methods", [[], ["fgm"], [{"pgd": {"steps": 2}}], ["freelb"], ["rdrop", "focal"]], ids=str)
def test_losses_and_gradients_are_those_of_fp32_whatever_the_scale(
    toy: ToyStudy,  # noqa: F811
    fp16: Any,
    methods: list[Any],
) -> None:
    fp16(2.0**10)
    half, plain = (toy.job(name, methods, precision=name, steps=4, accumulate=2) for name in ("fp16", "fp32"))
    assert perform_here(half)["status"] == perform_here(plain)["status"] == "finished"
    for ours, theirs in zip(steps(half), steps(plain), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=0.02)
        assert ours["grad_norm"] == pytest.approx(theirs["grad_norm"], rel=0.05), "measured after unscaling"
        assert ours["grad_norm"] != theirs["grad_norm"], "it really is half precision"


def test_clipping_is_the_same_whatever_the_scale(toy: ToyStudy, fp16: Any) -> None:  # noqa: F811
    losses = []
    for scale in (2.0**4, 2.0**12):
        fp16(scale)
        job = toy.job(f"scale-{scale:g}", precision="fp16", steps=6, clip=0.01)
        assert perform_here(job)["status"] == "finished"
        losses.append([step["loss"] for step in steps(job)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


def test_a_step_that_overflows_is_skipped_and_counted(toy: ToyStudy, fp16: Any) -> None:  # noqa: F811
    fp16(2.0**40)
    result = perform_here(toy.job("runs", precision="fp16", steps=30))
    assert result["status"] == "finished", result
    assert 0 < result["skipped_steps"] < 30
