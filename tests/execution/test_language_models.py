"""Runs of language models, from the text to the result: every token of the text scored once, the same bits every time."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

from fairtune.analysis.ledger_runs import metrics_of
from fairtune.core.errors import Stopped
from fairtune.execution.prepare import prepare_run
from fairtune.export import export_model
from fairtune.ledger.events import EventLog, counted_events
from fairtune.ledger.predictions import TextScores, read_predictions
from fairtune.methods import registry
from fairtune.methods.base import Batch, Method
from fairtune.models.loader import load_language_model
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import load_tokenizer
from fairtune.study.run_spec import RunSpec
from fairtune.tasks.corpora import load_corpus
from fairtune.tasks.tokens.blocks import TokenBlocks, token_blocks
from fairtune.training import language_modelling, samples
from fairtune.training.language_modelling import LanguageModelling
from tests.execution.conftest import digests, perform_apart, perform_here
from tests.execution.made_texts import job_of, make_model, study_of
from tests.tasks.made_tokenizers import STORIES, byte_level, in_memory

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
MIRROR = os.environ.get("FAIRTUNE_MIRROR", "")
STORIES15M = Path(MIRROR) / "weights" / "stories15m"
SCORED = ("validation", "test", "final")


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny-gpt")


@pytest.fixture
def study(gpt: Path, tmp_path: Path) -> dict[str, Any]:
    return study_of(gpt, tmp_path)


@pytest.fixture(scope="module")
def finished(gpt: Path, tmp_path_factory: pytest.TempPathFactory) -> RunSpec:
    """A finished run, to look at."""
    folder = tmp_path_factory.mktemp("finished")
    job = job_of(study_of(gpt, folder), folder / "runs")
    assert done(job)["status"] == "finished"
    return job


def done(job: RunSpec, check_stop: Callable[[], None] = lambda: None) -> dict[str, Any]:
    result = perform_here(job, check_stop)
    assert result["status"] == "finished", result
    return result


def events(job: RunSpec, kind: str) -> list[dict[str, Any]]:
    return [event for event in counted_events(job.run.events) if event["event"] == kind]


def ready(job: RunSpec) -> Any:
    """The run of a job before its first step."""
    job.run.path.mkdir(parents=True, exist_ok=True)
    return prepare_run(job, "cpu", EventLog(job.run.events), lambda: None)


def test_the_result_is_what_its_documents_say(finished: RunSpec) -> None:
    result = json.loads(finished.run.result.read_text())
    assert tuple(sorted(result["metrics"])) == tuple(sorted(SCORED))
    assert result["metric"] == "perplexity"
    for split in SCORED:
        found = result["metrics"][split]
        assert found["perplexity"] == pytest.approx(math.exp(found["loss"]), rel=1e-14)
        stored = read_predictions(finished.run.predictions, split)
        assert isinstance(stored, TextScores)
        assert metrics_of(stored) == found
        assert found["bits_per_byte"] == pytest.approx(stored.nll.sum() / math.log(2) / stored.bytes.sum())
        assert found["word_perplexity"] == pytest.approx(math.exp(stored.nll.sum() / stored.words.sum()))
    selected = min(events(finished, "evaluation")[:2], key=lambda event: event["perplexity"])
    assert selected["step"] == result["best_step"]
    assert selected["perplexity"] == result["metrics"]["validation"]["perplexity"]


def test_a_stop_while_the_test_split_is_scored_leaves_the_last_weights(study: dict[str, Any], tmp_path: Path) -> None:
    """The best weights are in the model by then; a state saved with them would be scored as the last step's."""
    study["train"] |= {"lr": 0.3, "evaluate": 1, "steps": 6}  # the last weights are worse than the best
    whole, stopped = (job_of(study, tmp_path / name) for name in ("whole", "stopped"))
    assert done(whole)["best_step"] != 6

    def stop() -> None:
        if any(event.get("split") == "final" for event in counted_events(stopped.run.events)):
            raise Stopped

    with pytest.raises(Stopped):
        perform_here(stopped, stop)
    done(stopped)
    assert digests(stopped.run.path) == digests(whole.run.path)


def test_every_token_of_the_text_is_scored_and_nothing_else(finished: RunSpec) -> None:
    run = ready(finished).run
    for split, name in (("validation", "validation"), ("test", "test"), ("test", "final")):
        blocks, stored = run.objective.text[split], read_predictions(finished.run.predictions, name)
        assert isinstance(stored, TextScores)
        assert stored.tokens.sum() == blocks.counts.tokens - blocks.counts.documents, "EOS is not scored"
        assert (stored.bytes.sum(), stored.words.sum()) == (blocks.counts.bytes, blocks.counts.words)
        assert len(stored.ids) == blocks.counts.documents


def independent(folder: Path, blocks: TokenBlocks, length: int) -> list[float]:
    """The losses of all tokens of the text, with plain transformers and all logits at once."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    found = []
    for inputs, targets in blocks.windows(length):
        with torch.inference_mode():
            logits = model(torch.from_numpy(inputs.astype(np.int64))[None]).logits[0].double()
        wanted = torch.from_numpy(targets.astype(np.int64))
        losses = -torch.log_softmax(logits, -1).gather(1, wanted[:, None])[:, 0]
        found += losses[torch.from_numpy(targets != blocks.eos)].tolist()
    return found


def test_the_test_loss_is_that_of_plain_transformers(finished: RunSpec) -> None:
    blocks = ready(finished).run.objective.text["test"]
    losses = independent(finished.run.model, blocks, 32)
    recorded = json.loads(finished.run.result.read_text())["metrics"]["test"]["loss"]
    assert len(losses) == blocks.counts.tokens - blocks.counts.documents
    assert recorded == pytest.approx(np.mean(losses), rel=1e-5)


def with_beginning() -> Any:
    """A tokenizer that begins each text with a token of its own, as Llama's does."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    tokens = byte_level().backend_tokenizer.__class__.from_str(byte_level().backend_tokenizer.to_str())
    tokens.add_special_tokens(["<s>"])
    bos = tokens.token_to_id("<s>")
    tokens.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", bos)])
    return PreTrainedTokenizerFast(tokenizer_object=tokens, eos_token="<|end|>", bos_token="<s>")


@pytest.mark.parametrize("length", [3, 16, 33, 64, 5000])
@pytest.mark.parametrize("begins", [False, True], ids=["eos", "bos and eos"])
def test_windows_hold_each_token_of_the_text_once_and_know_only_what_is_before_it(length: int, begins: bool) -> None:
    tokenizer = with_beginning() if begins else byte_level()
    texts = [*STORIES[:5], "a", " ".join(STORIES[5:8]), "b", "c"]
    blocks = token_blocks(in_memory([texts], f"windows-{begins}"), "train", tokenizer)
    assert blocks.bos == (tokenizer.bos_token_id if begins else None)
    expected = [token for text in texts for token in tokenizer(text, add_special_tokens=False)["input_ids"]]
    targets = np.concatenate([targets for _, targets in blocks.windows(length)])
    assert [token for token in targets.tolist() if token not in (blocks.eos, blocks.bos)] == expected
    starts = set((np.cumsum(blocks.documents[:, 0]) - blocks.documents[:, 0]).tolist())
    for inputs, targets in blocks.windows(length):
        assert len(inputs) == len(targets) <= length
        assert inputs[1:].tolist() == targets[:-1].tolist(), "an input is never its own target"
    for start, _ in blocks.spans(length):
        begun = start - begins in starts
        assert begun or max(blocks.documents[:, 0]) > length, "only long documents are cut"


def test_scores_do_not_depend_on_the_batch(finished: RunSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ready(finished).run
    found = []
    for most in (1, 100, 2048, 100_000):
        monkeypatch.setitem(language_modelling.TOKENS_PER_BATCH, "cpu", most)
        found.append(run.objective.evaluate(run.model, "test", CPU, (), lambda: None).arrays["nll"])
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-5)


def test_a_model_that_knows_the_next_token_has_no_loss() -> None:
    """And one that repeats its input, as a shift by one would make the best of all, has much."""

    class Oracle(torch.nn.Module):
        def __init__(self, shift: int) -> None:
            super().__init__()
            self.shift = shift
            self.anything = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids: Tensor) -> Any:
            """Each token is followed by the next number; the text below is made so."""
            logits = 50.0 * torch.nn.functional.one_hot((input_ids + self.shift) % 30, 30)
            return type("Answer", (), {"logits": logits.float()})

    documents = np.array([[11, 20, 10], [8, 14, 7]], np.uint32)
    stream = np.concatenate([np.arange(1, 11), [0], np.arange(1, 8), [0]]).astype(np.uint16)
    from fairtune.tasks.tokens.blocks import TextCounts

    blocks = TokenBlocks("made", Path(), stream, documents, TextCounts(2, 19, 34, 17), eos=0)
    text = LanguageModelling(dict.fromkeys(("train", "validation", "test"), blocks), 8, "perplexity")
    right = text.evaluate(Oracle(1), "test", CPU, (), lambda: None)
    assert right.metrics["loss"] == pytest.approx(0, abs=1e-6)
    assert right.metrics["token_accuracy"] == 1
    assert right.arrays["correct"].tolist() == [10, 7]
    wrong = text.evaluate(Oracle(0), "test", CPU, (), lambda: None)
    assert wrong.metrics["loss"] == pytest.approx(50)
    assert wrong.metrics["token_accuracy"] == 0


def test_same_plan_and_seed_give_the_same_bits_and_another_seed_others(
    study: dict[str, Any], finished: RunSpec, tmp_path: Path
) -> None:
    again, other = job_of(study, tmp_path / "again"), job_of(study, tmp_path / "other", seed=1)
    done(again)
    done(other)
    assert digests(again.run.path) == digests(finished.run.path)
    assert again.run.samples.read_bytes() == finished.run.samples.read_bytes()
    assert digests(other.run.path) != digests(finished.run.path)


@pytest.mark.parametrize("point", [2, 6, 9, 14])
def test_stopped_anywhere_a_run_goes_on_to_the_same_bits(
    study: dict[str, Any], finished: RunSpec, tmp_path: Path, point: int
) -> None:
    job, looks = job_of(study, tmp_path / "runs"), 0

    def check_stop() -> None:
        nonlocal looks
        looks += 1
        if looks == point:
            raise Stopped

    with pytest.raises(Stopped):
        perform_here(job, check_stop)
    done(job)
    assert digests(job.run.path) == digests(finished.run.path)


def test_killed_a_run_goes_on_to_the_same_bits(study: dict[str, Any], finished: RunSpec, tmp_path: Path) -> None:
    job = job_of(study, tmp_path / "runs")
    assert perform_apart(job, kill_at=9) != 0
    assert list(job.run.checkpoint.glob("step-*")), "it had saved a state"
    done(job)
    assert digests(job.run.path) == digests(finished.run.path)
    assert [event["step"] for event in events(job, "step")] == list(range(1, 9))


def test_two_batches_of_four_make_the_step_of_one_of_eight(study: dict[str, Any], tmp_path: Path) -> None:
    still = {"steps": 3, "evaluate": 3, "warmup": 0}
    model = AutoModelForCausalLM.from_pretrained(study["model"])
    for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop"):
        setattr(model.config, name, 0.0)
    model.save_pretrained(tmp_path / "still")
    load_tokenizer(Path(study["model"]), padding=False).save_pretrained(tmp_path / "still")
    study["model"] = str(tmp_path / "still")
    whole = job_of(study, tmp_path / "whole", batch_size=8, **still)
    parts = job_of(study, tmp_path / "parts", batch_size=4, accumulate=2, **still)
    losses = [[event["loss"] for event in events(job, "step")] for job in (whole, parts) if done(job)]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    metrics = [json.loads(job.run.result.read_text())["metrics"]["test"]["loss"] for job in (whole, parts)]
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-3)


def test_the_rate_warms_up_and_ends_at_zero(finished: RunSpec) -> None:
    rates = [event["lr"] for event in events(finished, "step")]
    assert rates[:3] == pytest.approx([0.0, 0.5e-2, 1e-2])
    assert rates[2:] == pytest.approx([1e-2 * (1 + math.cos(math.pi * step / 6)) / 2 for step in range(6)])


def test_half_precision_trains_and_is_scored(study: dict[str, Any], finished: RunSpec, tmp_path: Path) -> None:
    job = job_of(study, tmp_path / "runs", precision="bf16")
    found, whole = done(job)["metrics"]["test"]["loss"], json.loads(finished.run.result.read_text())
    assert found == pytest.approx(whole["metrics"]["test"]["loss"], rel=0.02)
    assert {tensor.dtype for tensor in load_file(job.run.model / "model.safetensors").values()} == {torch.float32}


def test_epochs_are_passes_over_all_blocks(study: dict[str, Any], tmp_path: Path) -> None:
    del study["train"]["steps"]
    job = job_of(study, tmp_path / "runs", epochs=2, batch_size=16, evaluate="epoch")
    result = done(job)
    blocks = len(ready(job).run.objective)
    assert result["steps"] == 2 * math.ceil(blocks / 16)
    assert (result["examples"], result["tokens"]) == (2 * blocks, 2 * 32 * blocks)
    assert [event["epoch"] for event in events(job, "epoch")] == [1, 2]


def test_the_best_and_the_last_weights_are_scored_apart(study: dict[str, Any], tmp_path: Path) -> None:
    wild = job_of(study, tmp_path / "wild", lr=3.0, schedule="constant", warmup=0, evaluate=1, steps=4)
    result = done(wild)
    assert result["best_step"] < result["steps"]
    assert result["metrics"]["final"]["loss"] > result["metrics"]["test"]["loss"]
    kept = independent(wild.run.model, ready(wild).run.objective.text["test"], 32)
    assert np.mean(kept) == pytest.approx(result["metrics"]["test"]["loss"], rel=1e-4), "the best weights are kept"
    tame = done(job_of(study, tmp_path / "tame", lr=1e-3, schedule="constant"))
    assert tame["best_step"] == tame["steps"]
    assert tame["metrics"]["final"] == tame["metrics"]["test"]


def test_patience_ends_a_run_that_gets_no_better(study: dict[str, Any], tmp_path: Path) -> None:
    job = job_of(study, tmp_path / "runs", lr=3.0, schedule="constant", warmup=0, evaluate=1, patience=2, steps=30)
    result = done(job)
    assert result["stopped_early"]
    assert result["steps"] == result["best_step"] + 2 < 30


SMALL = {"max_length": 16, "steps": 2, "batch_size": 2, "evaluate": 2}


@pytest.mark.parametrize("preset", ["gpt-mini", "llama-mini"])
def test_arms_from_scratch_share_their_start_but_for_queries_and_keys(preset: str, tmp_path: Path) -> None:
    study = study_of({"preset": preset, "context": 16}, tmp_path, **SMALL)
    study["tokenizer"] = {"train": 300}
    plain = job_of(study, tmp_path / "plain")
    frozen = job_of(study, tmp_path / "frozen", methods=[{"orthogonal_qk": {"init": "headwise"}}])
    starts = {}
    for name, job in (("plain", plain), ("frozen", frozen)):
        starts[name] = {n: p.clone() for n, p in ready(job).run.model.named_parameters()}
    shared = starts["plain"].keys() & starts["frozen"].keys()
    changed = {name for name in shared if not torch.equal(starts["plain"][name], starts["frozen"][name])}
    if preset == "llama-mini":
        assert changed == {f"model.layers.{i}.self_attn.{p}_proj.weight" for i in range(4) for p in "qk"}
    else:
        assert not changed
        assert starts["plain"].keys() - shared == {
            f"transformer.h.{i}.attn.c_attn.{kind}" for i in range(4) for kind in ("weight", "bias")
        }, "these were cut, to freeze a part of them"

    result = done(frozen)
    card = json.loads(frozen.run.card.read_text())
    assert card["frozen"]
    assert result["frozen"]["unchanged"]
    assert result["frozen"]["tensors"] == len(card["frozen"])
    whole, drawn = load_file(frozen.run.model / "model.safetensors"), starts["frozen"]
    if preset == "llama-mini":
        assert all(torch.equal(whole[name], drawn[name]) for name in card["frozen"])
        assert not torch.equal(whole["model.layers.0.mlp.up_proj.weight"], drawn["model.layers.0.mlp.up_proj.weight"])
    else:
        part = "transformer.h.0.attn.c_attn"
        assert torch.equal(whole[f"{part}.weight"][:, :512].T, drawn[f"{part}.qk.weight"])
        assert not torch.equal(whole[f"{part}.weight"][:, 512:].T, drawn[f"{part}.v.weight"])
    untouched = ready(plain).card
    assert not any(untouched[kind] for kind in ("changed", "new", "unverified", "frozen"))
    assert untouched["same"] == len(starts["plain"])


@pytest.mark.parametrize("methods", [[{"peft": {"type": "lora"}}], ["bitfit"]], ids=["lora", "bitfit"])
def test_methods_that_train_few_weights(study: dict[str, Any], tmp_path: Path, methods: list[Any]) -> None:
    if methods != ["bitfit"]:
        pytest.importorskip("peft")
    job = job_of(study, tmp_path / "runs", methods=methods, steps=4)
    result = done(job)
    assert result["parameters"]["trainable"] < result["parameters"]["total"] / 4
    losses = independent(job.run.model, ready(job).run.objective.text["test"], 32)
    assert result["metrics"]["test"]["loss"] == pytest.approx(np.mean(losses), rel=1e-4)


class SharpConfig(registry.MethodConfig):
    """A loss of its own."""


class Sharp(Method):
    """Twice the usual loss, from all the logits."""

    name, config_class = "sharp", SharpConfig

    def loss(self, outputs: Any, batch: Batch) -> Tensor:
        logits, labels = outputs.logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten()
        return 2 * torch.nn.functional.cross_entropy(logits, labels)


def test_a_method_with_a_loss_sees_the_logits(
    study: dict[str, Any], finished: RunSpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry.registered()
    monkeypatch.setitem(registry._registered, "sharp", Sharp)
    job = job_of(study, tmp_path / "runs", methods=["sharp"])
    result = done(job)
    usual = events(finished, "step")[0]["loss"]
    assert events(job, "step")[0]["loss"] == pytest.approx(2 * usual, rel=1e-5)
    whole = json.loads(finished.run.result.read_text())["metrics"]["test"]
    assert result["metrics"]["test"]["loss"] == pytest.approx(whole["loss"], rel=0.05), "scored as everyone is"


def test_samples_are_the_same_prompts_and_the_same_draws(
    study: dict[str, Any], finished: RunSpec, tmp_path: Path
) -> None:
    texts = json.loads(finished.run.samples.read_text())
    assert len(texts) == samples.PROMPTS
    assert len({text["prompt"] for text in texts}) == samples.PROMPTS
    other = job_of(study, tmp_path / "other", methods=["bitfit"])
    done(other)
    theirs = json.loads(other.run.samples.read_text())
    assert [text["prompt"] for text in theirs] == [text["prompt"] for text in texts]
    held_out = Path(study["task"]["validation"]).read_text()
    assert all(f'"text": "{text["prompt"]}' in held_out for text in texts), "beginnings of held-out documents"


def test_prompts_of_the_study_are_used_however_long(study: dict[str, Any], tmp_path: Path) -> None:
    prompts = ["The owl", "The fox ran by the hill. " * 40, "🙂"]
    study["prompts"] = prompts
    jobs = [job_of(study, tmp_path / name) for name in "ab"]
    for job in jobs:
        done(job)
    found = [json.loads(job.run.samples.read_text()) for job in jobs]
    assert found[0] == found[1]
    assert [text["prompt"] for text in found[0]] == prompts
    assert all(text["continuation"] for text in found[0])


def test_a_prompt_begins_as_documents_do_without_showing_it(tmp_path: Path) -> None:
    study = study_of(make_model(tmp_path / "beginning", vocabulary=401), tmp_path, **SMALL)
    with_beginning().save_pretrained(tmp_path / "tokenizer")
    study["tokenizer"] = str(tmp_path / "tokenizer")
    job = job_of(study, tmp_path / "runs")
    done(job)
    texts = json.loads(job.run.samples.read_text())
    assert all(text["prompt"].startswith("The ") for text in texts)
    stored = read_predictions(job.run.predictions, "test")
    assert isinstance(stored, TextScores)
    blocks = ready(job).run.objective.text["test"]
    assert stored.tokens.sum() == blocks.counts.tokens - 2 * blocks.counts.documents, "neither BOS nor EOS is scored"


def test_a_model_as_narrow_as_its_blocks_writes_samples(tmp_path: Path) -> None:
    study = study_of(make_model(tmp_path / "narrow", positions=16), tmp_path, **SMALL)
    study["prompts"] = ["The owl slept by the river. The owl sang by the wood. The owl"]
    job = job_of(study, tmp_path / "runs")
    done(job)
    assert json.loads(job.run.samples.read_text())[0]["continuation"]


def test_an_exported_model_writes_on_in_plain_transformers(finished: RunSpec, tmp_path: Path) -> None:
    done = export_model(finished.run.path, tmp_path / "out")
    assert "AutoModelForCausalLM" in done.loading[-1]
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    ids = tokenizer("The owl", return_tensors="pt", return_token_type_ids=False)
    answer = model.generate(**ids, max_new_tokens=12, do_sample=False)
    assert tokenizer.decode(answer[0]).startswith("The owl")
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id


@pytest.mark.skipif(not MIRROR or not STORIES15M.is_dir(), reason="FAIRTUNE_MIRROR has no weights/stories15m")
def test_a_real_llama_knows_its_stories() -> None:
    tokenizer = load_tokenizer(STORIES15M, padding=False)
    whole = token_blocks(load_corpus("tinystories"), "validation", tokenizer)
    ends = np.cumsum(whole.documents[:, 0])
    from dataclasses import replace

    few = replace(whole, stream=whole.stream[: ends[19]], documents=whole.documents[:20])
    text = LanguageModelling(dict.fromkeys(("train", "validation", "test"), few), 256, "perplexity")
    network = load_language_model(find_model(str(STORIES15M)), tokenizer).network
    found = text.evaluate(network, "validation", CPU, (), lambda: None)
    assert 0.9 < found.metrics["loss"] < 1.15
    assert found.metrics["token_accuracy"] > 0.65
