"""What many tests share: a tiny BERT with its tokenizer on disk, and a toy task that it can learn."""

from __future__ import annotations

import atexit
import csv
import gc
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test talks to a network
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # tests run side by side, and tiny models lose more by threads than they gain

os.environ["FAIRTUNE_CACHE"] = tempfile.mkdtemp(prefix="fairtune-tests-")  # never the user's own
atexit.register(shutil.rmtree, os.environ["FAIRTUNE_CACHE"], ignore_errors=True)
if "FAIRTUNE_TEST_WARM" not in os.environ:  # pytest's workers inherit it; once it is gone, the warm processes end
    os.environ["FAIRTUNE_TEST_WARM"] = tempfile.mkdtemp(prefix=f"fairtune-warm-{os.getpid()}-")
    atexit.register(shutil.rmtree, os.environ["FAIRTUNE_TEST_WARM"], ignore_errors=True)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so a shell starts jobs in the background; tests press Ctrl-C
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # while modules are imported and tests collected, which leaves no garbage


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="only tests without torch, figures and processes, for `make quick`"
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick") and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        from tests.quick import be_quick

        be_quick()


def pytest_collection_finish() -> None:
    """What was imported is no garbage either: the collections that every run asks for need not look through it."""
    gc.collect()
    gc.freeze()
    gc.enable()


GOOD = ["good", "great", "fine", "lovely", "brilliant", "warm"]
BAD = ["bad", "worst", "dull", "poor", "boring", "cold"]
PLAIN = ["a", "the", "film", "book", "story", "plot", "was", "is", "and", "with", "some", "very", "in", "its", "way"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY = [*SPECIAL, *GOOD, *BAD, *PLAIN, *(f"w{i}" for i in range(40))]


def make_tokenizer() -> Any:
    """A BERT-like tokenizer of whole words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(VOCABULARY)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def make_tiny_model(folder: Path) -> Path:
    """Fill a folder with a random BERT of two layers, without a head: config.json, model.safetensors, tokenizer files."""
    import torch
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=len(VOCABULARY),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=128,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("models") / "tiny-bert")


@dataclass(frozen=True)
class TaskFiles:
    """The files of a toy task: one of two kinds of words decides the label."""

    train: Path
    validation: Path
    test: Path

    def as_study(self) -> dict[str, Any]:
        """The task as a study file gives it."""
        return {
            "name": "toy",
            "train": str(self.train),
            "validation": str(self.validation),
            "test": str(self.test),
            "text": "text",
            "label": "label",
        }


@pytest.fixture(scope="session")
def tiny_task(tmp_path_factory: pytest.TempPathFactory) -> TaskFiles:
    return make_tiny_task(tmp_path_factory.mktemp("tasks"))


def make_tiny_task(folder: Path) -> TaskFiles:
    """CSV files of a learnable task: 200 training, 60 validation and 60 test rows, columns `text` and `label`."""
    generator = random.Random(7)
    files = {}
    for split, size in (("train", 200), ("validation", 60), ("test", 60)):
        files[split] = folder / f"{split}.csv"
        with files[split].open("w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow(["text", "label"])
            for i in range(size):
                words = [*generator.choices(PLAIN, k=generator.randint(3, 12)), generator.choice((BAD, GOOD)[i % 2])]
                generator.shuffle(words)
                writer.writerow([" ".join(words), ("neg", "pos")[i % 2]])
    return TaskFiles(**files)


@contextmanager
def performing_here() -> Iterator[None]:
    """Studies whose runs are performed in this process, for what comes before and after them.

    Starting a worker costs more than all the rest of a small study; what only workers can get wrong is tested in
    execution/test_studies.py.
    """
    from fairtune.execution import conducting, performing

    class Here:
        disk_full = False

        def __init__(self, devices: list[str], _: Path, listen: Any) -> None:
            self._device, self._listen = devices[0], listen

        def run(self, jobs: list[Any]) -> None:
            for job in jobs:
                result = performing.perform(job, self._device, lambda: None, lambda _: None)
                self._listen("ended", job, {"type": "ended", "result": result})

    performing._task.cache_clear()  # a task of the same name may have other data in another test
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conducting, "LocalExecutor", Here)
        yield
    performing._task.cache_clear()


@pytest.fixture
def performed_here() -> Iterator[None]:
    with performing_here():
        yield


@pytest.fixture(scope="session", autouse=True)
def templates_compiled_once() -> Iterator[None]:
    """A page's template is compiled once per session, not once per page; a command writes one page and never notices."""
    from jinja2 import Environment

    compiled: dict[tuple[Any, ...], Any] = {}
    compile_template = Environment.compile

    def once(self: Environment, source: Any, *place: Any, **options: Any) -> Any:
        look = (self.autoescape, self.undefined, self.trim_blocks, self.lstrip_blocks, *self.filters, *self.globals)
        key = (source, place, *sorted(options.items()), look)
        if key not in compiled:
            compiled[key] = compile_template(self, source, *place, **options)
        return compiled[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Environment, "compile", once)
        yield


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are made and left empty, for tests of what a report says in words: drawing takes longer than all the rest."""
    from matplotlib.figure import Figure

    def save(_: Figure, file: Any, *__: Any, **___: Any) -> None:
        file.write('<svg width="1" height="1"></svg>')

    monkeypatch.setattr(Figure, "savefig", save)
