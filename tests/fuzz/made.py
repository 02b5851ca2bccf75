"""What targets damage copies of, made once in each process."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from fairtune.analysis.results import load_results
from fairtune.testing.toy import VOCABULARY, TaskFiles, make_tiny_model, make_tiny_task, make_tokenizer


@cache
def place() -> Path:
    """A folder that goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="fairtune-fuzz-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def model() -> Path:
    return make_tiny_model(place() / "tiny-bert")


@cache
def classifier() -> Path:
    """A trained classifier, small enough to be loaded a hundred times."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=64,
    )  # fmt: skip
    with torch.random.fork_rng():
        BertForSequenceClassification(config).save_pretrained(place() / "classifier")
    make_tokenizer().save_pretrained(place() / "classifier")
    return place() / "classifier"


@cache
def task() -> TaskFiles:
    (place() / "task").mkdir()
    return make_tiny_task(place() / "task")


@cache
def ledger() -> Path:
    """A runs folder with a study of two arms and two seeds, really trained, and what it says."""
    from fairtune.execution.study_run import run_plan
    from fairtune.monitor.terminal import QuietMonitor
    from fairtune.study.plan import make_plan
    from fairtune.study.study_file import load_study
    from tests.conftest import performing_here

    source = {
        "study": "toy",
        "task": task().as_study(),
        "model": str(model()),
        "train": {"steps": 2, "batch_size": 8, "max_length": 16},
        "seeds": 2,
        "arms": {"baseline": {}, "guided": {"methods": [{"bpsom": {"hidden": 4, "grid": 3}}]}},
        "execution": {"devices": "cpu"},
    }
    with performing_here():
        run_plan(make_plan(load_study(source)), place() / "runs", QuietMonitor())
    return place() / "runs"


@cache
def figures() -> dict[tuple[str, int], Any]:
    """What each run of the ledger scored."""
    return {(run.arm, run.seed): run.metrics for run in load_results(ledger(), "toy").runs}
