"""A run that was killed or stopped goes on and ends with the same bits, whatever method it trains with."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from fairtune.ledger.events import all_events, counted_events
from fairtune.ledger.predictions import read_predictions
from fairtune.ledger.seals import run_state
from fairtune.methods.registry import registered
from fairtune.study.run_spec import RunSpec
from fairtune.testing import check_resume, check_state, toy_use
from fairtune.testing.toy import VOCABULARY, make_tokenizer
from tests.execution.conftest import ToyStudy, digests, perform_apart, perform_here, toy_source
from tests.execution.covering import has_state, resumed_arms

pytestmark = pytest.mark.slow

ARMS = {"baseline": [], **resumed_arms({name: toy_use(name) for name in registered()})}
KILLED = -signal.SIGKILL
BRIEF = {"batch_size": 32, "evaluate": 5}
"""Two epochs of 7 steps, with three evaluations."""
Wholes = Callable[..., RunSpec]


@pytest.fixture(scope="module")
def wholes(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Wholes:
    """Runs that nothing broke, each performed once in a process of its own; tests only read them."""
    toy = ToyStudy(toy_source(tiny_model, tiny_task), tmp_path_factory.mktemp("wholes"))
    done: dict[str, RunSpec] = {}

    def whole(methods: list[Any] | None = None, **train: Any) -> RunSpec:
        key = json.dumps([methods or [], train])
        if key not in done:
            job = toy.job(str(len(done)), methods, **train)
            assert perform_apart(job) == 0
            assert run_state(job.run).status == "finished"
            done[key] = job
        return done[key]

    return whole


def test_every_method_is_in_an_arm_that_is_killed_and_those_with_state_are_alone() -> None:
    found = [arm.split("+") for arm in ARMS if arm != "baseline"]
    assert sorted(name for arm in found for name in arm) == sorted(registered())
    assert {name for name in registered() if has_state(name)} <= {arm[0] for arm in found if len(arm) == 1}


@pytest.mark.parametrize("methods", ARMS.values(), ids=ARMS.keys())
def test_killed_again_and_again_a_run_ends_with_the_same_bits(
    toy: ToyStudy, wholes: Wholes, methods: list[Any]
) -> None:
    toy.source["train"] |= BRIEF
    broken = check_resume(toy, methods, wholes(methods, **BRIEF), kills=(6, 11))
    steps = [event for event in counted_events(broken.run.events) if event["event"] == "step"]
    assert len(steps) == 14
    seconds = json.loads(broken.run.result.read_text())["seconds"]
    assert seconds["step"] == pytest.approx(sum(event["seconds"] for event in steps), abs=1e-6)


@pytest.mark.parametrize("methods", ARMS.values(), ids=ARMS.keys())
def test_a_state_is_the_same_after_it_was_taken_up(toy: ToyStudy, methods: list[Any]) -> None:
    check_state(toy, methods)


@pytest.mark.parametrize("methods", ARMS.values(), ids=ARMS.keys())
def test_a_saved_model_predicts_the_same_in_plain_transformers(wholes: Wholes, methods: list[Any]) -> None:
    job = wholes(methods, **BRIEF)
    stored = read_predictions(job.run.predictions, "test")
    model = AutoModelForSequenceClassification.from_pretrained(job.run.model).eval()
    tokenizer = AutoTokenizer.from_pretrained(job.run.model)
    from fairtune.tasks import load_task

    texts = [text for (text,) in load_task(**job.data).splits["test"].texts]
    with torch.inference_mode():
        logits = model(**tokenizer(texts, padding=True, return_tensors="pt")).logits
    torch.testing.assert_close(logits, torch.from_numpy(stored.scores), atol=1e-5, rtol=1e-4)


def test_killed_at_every_single_point_a_run_ends_with_the_same_bits(toy: ToyStudy, wholes: Wholes) -> None:
    """What SIGKILL leaves behind is what is on the disk: a copy of the run's folder, taken at each point of one run.

    Points that leave the same bytes are one; what a process that went on from there does is the same.
    """
    train, points = {"steps": 4, "evaluate": 2}, 0
    running, left = toy.job("running", **train), dict[tuple[tuple[str, bytes], ...], RunSpec]()

    def keep() -> None:
        nonlocal points
        points += 1
        content = bytes_of(running.run.path)
        if content not in left:
            left[content] = toy.job(f"broken-{points}", **train)
            shutil.copytree(running.run.path, left[content].run.path)

    expected = digests(wholes(**train).run.path)
    assert perform_here(running, keep)["status"] == "finished"
    assert points > 12
    assert len(left) > 6, "an event, a state or predictions more each time"
    for point, broken in ((job.run.path.parents[2].name, job) for job in left.values()):
        assert run_state(broken.run).status != "finished"
        assert perform_apart(broken) == 0
        assert digests(broken.run.path) == expected, point


def bytes_of(folder: Path) -> tuple[tuple[str, bytes], ...]:
    """All that is in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return tuple((str(path.relative_to(folder)), path.read_bytes()) for path in files)


def test_a_cut_projection_is_saved_and_resumed_to_the_same_bits(toy: ToyStudy, tmp_path: Path) -> None:
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path / "tiny-gpt2"
    size = len(VOCABULARY)
    config = GPT2Config(vocab_size=size, n_embd=32, n_layer=2, n_head=4, n_positions=64, pad_token_id=0, eos_token_id=3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        GPT2Model(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    toy.source["model"] = str(folder)
    whole, broken = toy.job("whole", ["orthogonal_qk"]), toy.job("broken", ["orthogonal_qk"])
    assert perform_apart(whole) == 0
    assert perform_apart(broken, kill_at=16) == KILLED
    assert perform_apart(broken) == 0
    assert digests(broken.run.path) == digests(whole.run.path)
    frozen = json.loads(whole.run.card.read_text())["frozen"]
    assert frozen == [f"transformer.h.{i}.attn.c_attn.qk.{kind}" for i in (0, 1) for kind in ("weight", "bias")]


@pytest.mark.parametrize(("point", "phase"), [(2, "tokenising"), (10, "training"), (15, "evaluating")])
def test_asked_to_stop_in_any_phase_a_run_saves_and_goes_on(
    toy: ToyStudy, wholes: Wholes, point: int, phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fairtune.core.errors import Stopped

    whole, stopped = wholes(), toy.job("stopped")
    looks = 0

    def check_stop() -> None:
        nonlocal looks
        looks += 1
        if looks == point:
            raise Stopped

    if phase == "tokenising":
        monkeypatch.setenv("FAIRTUNE_CACHE", str(tmp_path / "empty"))
    with pytest.raises(Stopped):
        perform_here(stopped, check_stop)
    before = [e for e in all_events(stopped.run.events) if e["event"] == "step"]
    assert bool(before) == (phase != "tokenising")
    perform_here(stopped)
    assert digests(stopped.run.path) == digests(whole.run.path)
    resumed = [e for e in all_events(stopped.run.events) if e["event"] == "resumed"]
    assert resumed[-1]["step"] == len(before), "nothing that was done is done again"


@pytest.fixture(scope="module")
def killed(tiny_model: Path, tiny_task: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is left of a run that was killed at its 20th safe point, with states; tests take a copy."""
    job = ToyStudy(toy_source(tiny_model, tiny_task), tmp_path_factory.mktemp("killed")).job("killed")
    assert perform_apart(job, kill_at=20) == KILLED
    assert list(job.run.checkpoint.glob("step-*"))
    return job.run.path


def test_a_damaged_state_is_skipped_with_a_warning(toy: ToyStudy, wholes: Wholes, killed: Path) -> None:
    whole, broken = wholes(), toy.job("broken")
    shutil.copytree(killed, broken.run.path)
    newest = sorted(broken.run.checkpoint.glob("step-*"))[-1]
    weights = newest / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(content)
    assert perform_apart(broken) == 0
    assert digests(broken.run.path) == digests(whole.run.path)
    warnings = [e["text"] for e in counted_events(broken.run.events) if e["event"] == "warning"]
    assert any(newest.name in text and "model.safetensors" in text for text in warnings)


def test_without_any_valid_state_a_run_starts_again(toy: ToyStudy, wholes: Wholes, killed: Path) -> None:
    whole, broken = wholes(), toy.job("broken")
    shutil.copytree(killed, broken.run.path)
    newest = max(broken.run.checkpoint.glob("step-*"))
    last = int(newest.name.removeprefix("step-"))
    manifests = [*broken.run.checkpoint.glob("*/manifest.json")]
    for place, content in enumerate(("{}", "[]", '{"files": {}}', "[" * 100_000), start=1):
        another = newest.with_name(f"step-{last + place:09}")
        shutil.copytree(newest, another)
        (another / "manifest.json").write_text(content)
    for manifest in manifests:
        manifest.unlink()
    assert perform_apart(broken) == 0
    assert digests(broken.run.path) == digests(whole.run.path)
    *_, resumed = [event for event in counted_events(broken.run.events) if event["event"] == "resumed"]
    assert resumed["step"] == 0


def test_a_finished_run_leaves_no_states_behind(wholes: Wholes) -> None:
    job = wholes()
    assert not job.run.checkpoint.exists()
    assert run_state(job.run).status == "finished"
