"""Everything cached that a study needs before it trains, so that it can be made ahead: where there is network, or many cores."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fairtune.core import cache
from fairtune.models.sources import find_model
from fairtune.models.tokenizers import tokenizer_folder
from fairtune.settings.sections import Train
from fairtune.study.expand import text_of, tokenized
from fairtune.study.plan import make_plan
from fairtune.study.schema import Study
from fairtune.tasks import load_task
from fairtune.tasks.card.builder import card_of
from fairtune.tasks.corpora import is_text, load_corpus
from fairtune.tasks.tokens.blocks import TextTask
from fairtune.tasks.tokens.encoded_splits import encode_task

Report = Callable[["PreparedPart"], None]


@dataclass
class PreparedPart:
    """One thing that was made, or was there.

    Args:
        counts: what it holds, such as rows and tokens.
        size: bytes that it added to the cache.
        made: whether any of it had to be made or fetched.
    """

    what: str
    counts: dict[str, int] = field(default_factory=dict)
    size: int = 0
    seconds: float = 0.0
    made: bool = False

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def prepare_study(study: Study, report: Report = lambda _: None) -> tuple[str, list[PreparedPart]]:
    """Fill the cache for a study.

    Args:
        report: called after each part.

    Returns:
        Where the data came from, and the parts.
    """
    parts: list[PreparedPart] = []

    def done(part: PreparedPart) -> None:
        parts.append(part)
        report(part)

    return _text(study, done) if is_text(study.task) else _task(study, done), parts


def _task(study: Study, report: Report) -> str:
    """The task's examples, its card, the model, and the examples as tokens for each arm that needs other ones."""
    from fairtune.models.tokenizers import load_tokenizer

    with _part("data, read and checked", report) as part:
        plan = make_plan(study, force=True)  # what is wrong with it as a trial is said when it is planned or run
        part.counts = dict(plan.task.rows)
        task = load_task(**study.data())
        card_of(**study.data())
    models = {model.identity: model for arm, model in plan.models.items() if plan.study.uses_model(arm)}
    for identity, model in models.items():
        with _part(f"model {model.name}", report) as part:
            folder = Path(plan.tokenizer.folder) if plan.tokenizer else model.fetch()
            tokenizer, part.made = load_tokenizer(folder), model.folder is None and model.preset is None
        arms = [arm for arm, own in plan.models.items() if own.identity == identity and plan.study.uses_model(arm)]
        for train in _different(plan.study, arms, "max_length", "examples", "eval_examples"):
            with _part(f"tokens, at most {train.longest} per example", report) as part:
                found = encode_task(task, tokenizer, train.longest, train.sizes, seed=plan.study.seeds[0])
                part.counts = {
                    "examples": sum(map(len, found.values())),
                    "tokens": sum(len(split.tokens) for split in found.values()),
                }
    return plan.task.source


def _text(study: Study, report: Report) -> str:
    """Token blocks of all splits, and of the training text for each arm that uses another part of it."""
    model, corpus = find_model(study.model), load_corpus(study.task)
    if model.preset is None:
        with _part(f"model {model.name}", report) as part:
            model, part.made = model.fetched(), model.folder is None
    with _part("tokenizer", report) as part:
        model, tokenizer = tokenized(study, model, text_of(corpus))
        part.what, part.counts = f"tokenizer {tokenizer.name}", {"tokens": tokenizer.vocabulary}
    words = tokenizer_folder(Path(tokenizer.folder), padding=False)
    text, differing = TextTask(corpus, words), _different(study, study.arms, "tokens")
    for split, train in [
        *(("train", each) for each in differing),
        ("validation", differing[0]),
        ("test", differing[0]),
    ]:
        first = f", the first {train.tokens:,}" if train.tokens and split == "train" else ""
        with _part(f"token blocks, {split}{first}", report) as part:
            counts = asdict(text.blocks(split, train).counts)
            part.counts = {name: int(count) for name, count in counts.items() if name != "cut"}
    return corpus.source


def _different(study: Study, arms: Iterable[str], *fields: str) -> list[Train]:
    """The training settings of the arms that differ in these fields."""
    settings = [study.settings(arm) for arm in arms]
    return list({tuple(getattr(train, name) for name in fields): train for train in settings}.values())


@contextmanager
def _part(what: str, report: Report) -> Iterator[PreparedPart]:
    part, started, before = PreparedPart(what), time.perf_counter(), len(cache.built)
    yield part
    new = cache.built[before:]
    part.size, part.made = sum(map(cache.size_of, new)), part.made or bool(new)
    part.seconds = time.perf_counter() - started
    report(part)
