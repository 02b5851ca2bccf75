"""A first study, of the user's own file or of a task: with controls, simple baselines and a comment on what one may change."""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from fairtune.core.printable import printable
from fairtune.settings.values import LONGEST_NAME
from fairtune.tasks.reading.columns import SEPARATORS
from fairtune.tasks.reading.labels import is_number

if TYPE_CHECKING:
    from fairtune.tasks.column_choice import ColumnChoice, FileFacts
    from fairtune.tasks.task import Task

SCHEMA_FILE = "fairtune-study.schema.json"
LONG_TEXTS, LONG_INPUT = 700, 256
"""Characters on average from which texts are long, and the tokens that they are then cut at: attention is paid by the square."""
UNBALANCED = 2.0
"""From so many times as many examples of the largest class as of the smallest, accuracy says little of the latter."""
HELD_OUT = 0.3
"""Share of a file's rows that is not trained on."""
CLASSES_SHOWN, MOST_TEXTS = 6, 1000
WEIGHTED = "weighted: {lr: 1e-4, methods: [{weighted_ce: {weights: balanced}}]}  # small classes count as much"
SMOOTHED = "smoothing: {lr: 1e-4, methods: [{label_smoothing: {smoothing: 0.1}}]}  # less sure of its training labels"
STUDY = """\
# yaml-language-server: $schema={schema}
# A study of {source}, written by `fairtune init`. Change what you like; `fairtune help study` explains every field.
#   fairtune plan {called}   # what will run, and what it can show
#   fairtune run {called}    # Ctrl-C saves, the same command goes on

study: {name}  # its runs are kept under this name

{task}

model: minilm  # small and embedded; or a folder, or a hub id such as google-bert/bert-base-uncased
train:
  epochs: {epochs}  # passes over about {trained:,} training examples
  batch_size: {batch_size}
  max_length: {length}
seeds: 5  # each arm runs once with each; three are the least for a verdict

arms:
  # Ways to train. An arm with a method is compared with the arm that has the same settings and no method: its control.
  baseline: {{lr: 1e-4}}  # suits small models; one as large as BERT wants 2e-5, in every arm
  baseline-fast: {{lr: 3e-4}}  # no method, another learning rate: is what a method gains more than a better rate would?
  {method}
  layerwise: {{lr: 1e-4, methods: [{{layerwise_lr: {{decay: 0.95}}}}]}}  # lower layers learn less. `fairtune methods` lists more
  # Simple baselines, in seconds: what a method has to beat to be worth its cost.
  majority: {{}}
  tfidf: {{}}
  linear-probe: {{}}

compare:
  to: baseline
  margin: 1.5%  # a loss that would not matter to you; it is what "not inferior" is judged by

# Let every arm choose its own learning rate on validation first:
# tune: {{space: {{lr: [3e-5, 1e-4, 3e-4]}}, trials: 3, seeds: 2}}
# Also time the arms against each other:
# time: true

profiles:
  quick:  # `--profile quick`: does everything work? Too little to learn much from, or to judge by
    study: {quick}
    train: {{epochs: 2, batch_size: 16, examples: {examples}, eval_examples: 300}}
    seeds: 3
"""


@dataclass(frozen=True)
class Starter:
    """What a first study is made from: where its data comes from, its section `task`, and what was seen in the data.

    Args:
        classes: how often each label occurs, the most frequent first.
        trained: training examples, about.
        lines, json: what was seen in the data, and what was taken for what.
    """

    source: str
    task: str
    classes: Mapping[str, int]
    trained: int
    mean_length: float
    lines: list[str]
    json: dict[str, Any]

    def text(self, name: str, file: Path) -> str:
        """What the study file says."""
        trained, length = self.trained, "auto  # tokens; auto covers 95 % of the texts"
        if self.mean_length > LONG_TEXTS:
            length = f"{LONG_INPUT}  # tokens; longer texts are cut, and `fairtune data lengths` shows what that costs"
        return STUDY.format(
            schema=SCHEMA_FILE,
            source=printable(self.source),
            called=printable(shlex.quote(file.name)),
            name=_word(name),
            task=self.task,
            epochs=10 if trained < 500 else 5 if trained < 2_000 else 3 if trained < 20_000 else 1,
            trained=trained,
            batch_size=16 if trained < 2_000 else 32,
            length=length,
            method=WEIGHTED if _is_unbalanced(self.classes) else SMOOTHED,
            quick=_word(f"{name[: LONGEST_NAME - 6]}-quick"),
            examples=min(500, trained),
        )


def task_starter(task: Task) -> Starter:
    """A study of a task of the catalogue."""
    train = task.splits["train"]
    counts = {task.labels[number]: count for number, count in Counter(train.labels.tolist()).most_common()}
    texts = [train.texts[place] for place in range(min(len(train), MOST_TEXTS))]
    mean_length = sum(len(part) for text in texts for part in text) / max(len(texts), 1)
    rows = {name: len(split) for name, split in task.splits.items()}
    shown = ", ".join(f"{name} {count:,}" for name, count in rows.items())
    lines = [
        f"{task.name}: {shown}; {mean_length:,.0f} characters on average",
        f"  {_classes_text(counts)}; selected and reported by {task.metric}",
    ]
    written = f"task: {_word(task.name)}  # {_classes_text(counts)}; `fairtune tasks` lists others"
    answer = {"task": task.name, "rows": rows, "labels": counts, "metric": task.metric}
    return Starter(f"the task {task.name}", written, counts, len(train), mean_length, lines, answer)


def file_starter(
    file: Path, facts: FileFacts, columns: ColumnChoice, classes: Mapping[str, int], encoding: str | None, out: Path
) -> Starter:
    """A study of the user's own file.

    Args:
        classes: how often each label occurs, the most frequent first.
        encoding: of the file, where the user said it.
        out: the study file, where its paths start.
    """
    texts, shown = ", ".join(map(_word, columns.text)), _classes_text(classes)
    unlabelled = facts.rows - facts.columns[columns.label].filled
    mean_length = sum(facts.columns[name].mean_length for name in columns.text)
    train = Path(os.path.relpath(file.resolve(), out.parent.resolve())).as_posix()
    train = _word(f"./{train}" if train.startswith("~") else train)
    task = [
        "task:",
        f"  name: {_word(study_name(file))}",
        f"  train: {train}  # a tenth is held out to select by, a fifth to report",
        "  # test: other.csv  # rows to report instead of that fifth, if you have some that nobody has seen",
        f"  text: {texts if len(columns.text) == 1 else f'[{texts}]'}",
        f"  label: {_word(columns.label)}  # {shown}",
    ]
    if len(set(map(is_number, classes))) > 1:
        task.append(f"  labels: [{', '.join(map(_word, classes))}]  # some are numbers, some are not")
    if encoding:
        task.append(f"  encoding: {_word(encoding)}")
    if unlabelled:
        task.append(f"  unlabelled: skip  # {unlabelled:,} rows have no label; `refuse` stops at them")
    metric = "accuracy  # or macro_f1, roc_auc, log_loss ..."
    if _is_unbalanced(classes):
        metric = "macro_f1  # the classes are of unequal size, and accuracy would hardly see the small ones"
    task += [f"  metric: {metric}", "dedupe: true  # no training on what is tested, nor twice on the same text"]
    form = f", separated by {SEPARATORS[facts.delimiter]}" if facts.delimiter else ""
    lines = [
        f"{file}: {'' if facts.whole else 'the first '}{facts.rows:,} rows, {len(facts.columns)} columns{form}",
        f"  text   {' and '.join(columns.text)} ({columns.why_text}): {mean_length:,.0f} characters on average",
        f"  label  {columns.label} ({columns.why_label}): {shown}",
        *([f"  {unlabelled:,} rows have no label and are skipped (`unlabelled: skip`)."] if unlabelled else []),
    ]
    looked = {"rows": facts.rows, "all_rows": facts.whole, "format": facts.format, "delimiter": facts.delimiter}
    looked |= {"encoding": facts.encoding, "columns": list(facts.columns)}
    taken = {"text": list(columns.text), "label": columns.label}
    why = {"text": columns.why_text, "label": columns.why_label}
    answer = {**looked, **taken, "why": why, "labels": dict(classes), "unlabelled": unlabelled}
    trained = round(sum(classes.values()) * (1 - HELD_OUT))
    return Starter(file.name, "\n".join(task), classes, trained, mean_length, lines, answer)


def study_name(file: Path) -> str:
    """The name of a study of this file: what a file system and a terminal take."""
    stem = file.name.partition(".")[0] or file.name
    name = re.sub(r"[^A-Za-z0-9_+-]+", "-", stem).lstrip("_+-").rstrip("-")
    return name[: LONGEST_NAME - 10] or "my-study"


def _is_unbalanced(classes: Mapping[str, int]) -> bool:
    return max(classes.values()) >= UNBALANCED * min(classes.values())


def _classes_text(classes: Mapping[str, int]) -> str:
    """The classes with their sizes, the largest first: `2 classes: pos 60 %, neg 40 %`."""
    total = sum(classes.values())
    shown = [
        f"{printable(name)[:30]} {f'{count / total:.0%}' if count / total >= 0.005 else 'below 1%'}"
        for name, count in list(classes.items())[:CLASSES_SHOWN]
    ]
    return f"{len(classes)} classes: {', '.join(shown)}{', ...' if len(classes) > CLASSES_SHOWN else ''}"


def _word(text: str) -> str:
    """A text in a line of YAML, in quotes where it has to be."""
    plain = re.fullmatch(r"[A-Za-z][\w./+-]*(?: [\w./+-]+)*", text, re.ASCII) is not None
    if plain and yaml.safe_load(text) == text:
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=False, width=10**9)
    return quoted.strip()
