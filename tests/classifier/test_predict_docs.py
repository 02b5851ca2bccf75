"""What docs/predict.md says is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.main import get_command

from fairtune.cli.app import app
from fairtune.tasks.reading.reader import FIRST_ROWS, MOST_ROWS
from fairtune.training.classification import MANY_TOKENS, TOKENS_PER_BATCH
from tests.documented import DOCS, examples, run_python

PAGE = "predict.md"


def test_the_example_runs(tmp_path: Path) -> None:
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    from fairtune.testing.toy import VOCABULARY, make_tokenizer

    config = BertConfig(
        vocab_size=len(VOCABULARY), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    with torch.random.fork_rng():
        BertForSequenceClassification(config).save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    code = examples(PAGE, "python")["In Python"]
    names = run_python(code, {"distilbert/distilbert-base-uncased-finetuned-sst-2-english": tmp_path}, PAGE)
    assert names["logits"].shape == (2, 2)


def test_every_option_in_the_commands_is_there() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    commands: Any = vars(get_command(app))["commands"]
    for verb in ("train", "predict"):
        known = {name for option in commands[verb].params for name in option.opts}
        lines = re.findall(rf"fairtune {verb} ((?:.*\\\n)*.*)", text)
        used = {word for line in lines for word in re.findall(r"(?<!\S)--?[a-z][a-z-]*", line.partition("|")[0])}
        assert used, verb
        assert used <= known, used - known


def test_its_numbers_are_those_of_the_code() -> None:
    text = (DOCS / PAGE).read_text(encoding="utf-8")
    assert f"({FIRST_ROWS} at first, then up to {MOST_ROWS})" in text
    assert f"({TOKENS_PER_BATCH['cpu']} on a CPU, {MANY_TOKENS} on a GPU" in text
