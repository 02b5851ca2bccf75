"""What a study's folder holds before its first run: the plan, the data card, and the texts that it is scored on."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import numpy as np

from fairtune.core.cache import key_of
from fairtune.core.errors import Stopped
from fairtune.core.files import remove_leftovers, write_sealed
from fairtune.core.stages import stage
from fairtune.ledger.predictions import EXAMPLES_FILE, AboutExamples, Examples, about_examples, write_examples
from fairtune.ledger.studies import write_study
from fairtune.settings.values import LANGUAGE_MODEL as TEXT
from fairtune.study.plan import Plan
from fairtune.tasks import Task, load_task
from fairtune.tasks.card.builder import card_of
from fairtune.tasks.splits import fixed_sample
from fairtune.tasks.task import Split
from fairtune.tasks.tokens.tokenization import tokenize

VERSION = 1
"""Raised whenever the same study would keep something else."""
SPLITS = ("validation", "test")
MOST = 5_000
"""Examples of a split that are kept: a fixed stratified sample where more are scored."""
LONGEST = 2_000
"""Characters of a text that are kept."""


def record_plan(plan: Plan, home: Path, reanalysed: bool = False, until_decided: int | None = None) -> None:
    """Keep the plan, before anything is run: `study.json` is the newest, `plans/` has each one with its time."""
    remove_leftovers(home)
    looks = {} if until_decided is None else {"until_decided": until_decided}
    write_study(home, {**plan.as_json(), **looks}, reanalysed)
    if plan.task.kind != TEXT and not plan.trials:  # of text, the plan's own counts say all there is to say
        _record_card(plan, home / "data.json")
        record_examples(plan, home)


def _record_card(plan: Plan, file: Path) -> None:
    """Keep the data card. It is a help to readers: without it, a study runs all the same and says why there is none."""
    content: dict[str, Any]
    try:
        content = card_of(**plan.study.data()).as_json()
    except Stopped:
        raise
    except Exception as error:
        content = {"problem": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(OSError):
        write_sealed(file, content)


def record_examples(plan: Plan, home: Path) -> None:
    """Keep the scored examples. They are a help to readers: without them a study runs all the same, and the file says why."""
    try:
        _write_examples(plan, home / EXAMPLES_FILE)
    except Stopped:
        raise
    except Exception as error:
        problem = AboutExamples(key="", scored={}, problem=f"{type(error).__name__}: {error}")
        with contextlib.suppress(OSError):
            write_examples(home / EXAMPLES_FILE, problem, {})


def _write_examples(plan: Plan, file: Path) -> None:
    task, most = load_task(**plan.study.data()), _scored(plan)
    scored = {name: min(len(task.splits[name]), most or len(task.splits[name])) for name in SPLITS}
    tokenizer = plan.tokenizer or plan.model
    key = key_of([VERSION, task.fingerprint, task.kinds, scored, MOST, LONGEST, tokenizer.identity])
    known = about_examples(file)
    if known is None or known.key != key:
        write_examples(file, AboutExamples(key, scored, tokenizer.name), _examples(plan, task, scored))


def _scored(plan: Plan) -> int | None:
    """How many examples of a split the arm scores that scores most; None is all."""
    sizes = [plan.study.settings(arm).eval_examples for arm in plan.study.arms]
    return None if None in sizes else max(size for size in sizes if size is not None)


def _examples(plan: Plan, task: Task, scored: dict[str, int]) -> dict[str, Examples]:
    from fairtune.models.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(Path(plan.tokenizer.folder) if plan.tokenizer else plan.model.fetch())
    found = {}
    for name, size in scored.items():
        # A sample is the head of a fixed order, so what is kept is among what is scored.
        split = fixed_sample(task.splits[name], min(size, MOST))
        with stage(f"keeping the {name} texts for the report", len(split)) as advance:
            tokens = []
            for piece in tokenize(split.texts, tokenizer):
                tokens.append(piece.lengths)
                advance(len(piece.lengths))
        found[name] = _kept(split, np.concatenate(tokens).astype(np.int32))
    return found


def _kept(split: Split, tokens: np.ndarray[tuple[int], np.dtype[np.int32]]) -> Examples:
    return Examples(
        ids=split.ids,
        texts=tuple(tuple(map(_cut, texts)) for texts in split.texts),
        labels=split.labels,
        kinds=split.kinds or (None,) * len(split),
        tokens=tokens,
    )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
