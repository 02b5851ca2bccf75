"""Settings of how a run is computed: the same gradients with each, few compilations, and one sentence where one cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from fairtune.core.errors import FairtuneError, ModelError, RunFailure
from fairtune.execution.prepare import prepare_run
from fairtune.ledger.events import EventLog
from fairtune.models.model_parts import use_kernel
from fairtune.settings.sections import Train
from fairtune.study.plan import make_plan
from fairtune.study.study_file import load_study
from fairtune.training.device import apply_arithmetic, make_accelerator
from fairtune.training.step import accumulate_gradients, make_batches
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401 - a fixture
from tests.execution.made_texts import job_of as text_job
from tests.execution.made_texts import make_model, study_of

MAP = {"bpsom": {"hidden": 16, "grid": 4, "reliability": 0.5, "relabel": 2, "alpha": 0.5, "prune": None}}


def ready(job: Any) -> Any:
    job.run.path.mkdir(parents=True)
    run = prepare_run(job, "cpu", EventLog(job.run.events), lambda: None).run
    torch.manual_seed(3)
    return run


def gradients(run: Any) -> dict[str, Tensor]:
    """Of two batches, with dropout; drawn alike whatever came before."""
    torch.manual_seed(5)
    chosen = [np.arange(start, start + 7) for start in (0, 7)]
    accumulate_gradients(run, chosen, make_batches(run, chosen))
    found = {name: p.grad.clone() for name, p in run.model.named_parameters() if p.grad is not None}
    run.model.zero_grad()
    return found


def check_same(expected: dict[str, Tensor], found: dict[str, Tensor], tolerance: float) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        torch.testing.assert_close(
            found[name], gradient, atol=tolerance, rtol=1e-4, msg=lambda text, n=name: f"{n}: {text}"
        )


@pytest.mark.parametrize("methods", [
    [], [MAP, "rdrop"], ["orthogonal_qk", {"fgm": {"clean": False}}],
    [{"peft": {"target_modules": ["value"]}}, "freelb"], ["bitfit", "fgm"],
], ids=str)  # fmt: skip
def test_checkpointed_layers_have_the_same_gradients_in_less_memory(toy: ToyStudy, methods: list[Any]) -> None:  # noqa: F811
    plain, less = ready(toy.job("plain", methods)), ready(toy.job("less", methods, gradient_checkpointing=True))
    check_same(gradients(plain), gradients(less), 1e-7)
    assert less.progress.memory["activations"] < plain.progress.memory["activations"]


def test_a_language_model_is_checkpointed_and_computed_by_another_kernel_too(tmp_path: Path) -> None:
    model, found = make_model(tmp_path / "gpt"), []
    for number, train in enumerate(({}, {"gradient_checkpointing": True}, {"attention_kernel": "eager"})):
        study = study_of(model, tmp_path / str(number)) if (tmp_path / str(number)).mkdir() is None else {}
        study["train"] |= train
        run = ready(text_job(study, tmp_path / f"runs-{number}"))
        run.model.eval() if number == 2 else None
        found.append(gradients(run))
        if number == 0:
            run.model.eval()
            silent = gradients(run)
    check_same(found[0], found[1], 1e-7)
    check_same(silent, found[2], 1e-5)


def test_a_model_that_cannot_be_checkpointed_is_refused(toy: ToyStudy) -> None:  # noqa: F811
    model = ready(toy.job("runs")).model
    type(model).supports_gradient_checkpointing, before = False, type(model).supports_gradient_checkpointing
    try:
        with pytest.raises(ModelError, match="gradient_checkpointing: transformers does not offer it for Bert"):
            apply_arithmetic(model, Train(gradient_checkpointing=True), torch.device("cpu"))
    finally:
        type(model).supports_gradient_checkpointing = before


def test_kernels_of_attention_agree_and_flash_says_what_it_needs(toy: ToyStudy) -> None:  # noqa: F811
    runs = [ready(toy.job(kernel, attention_kernel=kernel)) for kernel in ("sdpa", "eager")]
    for run, name in zip(runs, ("sdpa", "eager"), strict=True):
        assert run.model.config._attn_implementation == name
        run.model.eval()
    check_same(gradients(runs[0]), gradients(runs[1]), 1e-5)
    with pytest.raises(ModelError, match="flash needs a GPU, and this run is on cpu; use sdpa"):
        use_kernel(runs[0].model, "flash", torch.device("cpu"))
    with pytest.raises(ModelError, match="flash needs the package flash-attn"):
        use_kernel(runs[0].model, "flash", torch.device("cuda"))


def test_layers_are_compiled_and_give_the_same_gradients(toy: ToyStudy, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    compiled: list[str] = []

    def eager(
        module: torch.nn.Module, **options: Any
    ) -> None:  # kernels of the real backend need a compiler, and minutes
        compiled.append(type(module).__name__)
        module._compiled_call_impl = torch.compile(module._call_impl, backend="eager", **options)

    monkeypatch.setattr(torch.nn.Module, "compile", eager)
    plain, faster = ready(toy.job("plain")), ready(toy.job("compiled", compile=True))
    assert compiled == ["BertLayer"] * 2
    for run in (plain, faster):
        run.model.eval()
    check_same(gradients(plain), gradients(faster), 1e-6)
    with pytest.raises(ModelError, match="compile: Linear has no layers that transformers marks as such"):
        apply_arithmetic(torch.nn.Linear(2, 2), Train(compile=True), torch.device("cpu"))


def test_a_plan_leaves_out_what_is_as_ever_and_the_audit_says_what_differs(toy: ToyStudy) -> None:  # noqa: F811
    usual = toy.job("usual").settings.as_json()["train"]
    assert not {"attention", "gradient_checkpointing", "compile", "attention_kernel", "deterministic"} & usual.keys()
    other = toy.job("other", gradient_checkpointing=True, deterministic=False).settings.as_json()["train"]
    assert other == {**usual, "gradient_checkpointing": True, "deterministic": False}
    assert Train.model_validate(usual).deterministic
    arms = {"baseline": {}, "arm": {"methods": ["fgm"], "attention_kernel": "eager", "deterministic": False}}
    differences = make_plan(load_study({**toy.source, "arms": arms, "seeds": 3}), force=True).differences
    assert [found.setting for found in differences] == ["attention_kernel", "deterministic"]
    with pytest.raises(FairtuneError, match="compile"):
        load_study({**toy.source, "arms": arms, "tune": {"space": {"compile": [True, False]}, "trials": 2}})


def test_a_gpu_is_kept_to_the_same_bits_unless_it_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[bool, bool]] = []
    monkeypatch.setattr(torch, "use_deterministic_algorithms", lambda on, warn_only: asked.append((on, warn_only)))
    for deterministic in (True, False):
        with pytest.raises(RunFailure, match="no device cuda"):
            make_accelerator("cuda", "fp32", deterministic)
    make_accelerator("cpu", "fp32", deterministic=False)
    assert asked == [], "a CPU gives the same bits anyway"
