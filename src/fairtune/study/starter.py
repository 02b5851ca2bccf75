"""A first study: with controls, simple baselines and a comment on every line that one may want to change."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from fairtune.core.printable import printable
from fairtune.settings.values import LONGEST_NAME

SCHEMA_FILE = "fairtune-study.schema.json"
LONG_TEXTS, LONG_INPUT = 700, 256
"""Characters on average from which texts are long, and the tokens that they are then cut at: attention is paid by the square."""
UNBALANCED = 2.0
"""From so many times as many examples of the largest class as of the smallest, accuracy flatters those who ignore the latter."""
SMALL, MIDDLE, LARGE = 500, 2_000, 20_000
"""Training examples."""
QUICK = 500
"""Training examples of a short trial."""
CLASSES_SHOWN = 6


@dataclass(frozen=True)
class Starter:
    """What a first study is made from.

    Args:
        source: where its data comes from, for a comment.
        task: its section `task`, and what else is to be said of the data.
        classes: how often each label occurs, the most frequent first.
        trained: training examples, about.
        mean_length: characters of an example.
    """

    name: str
    source: str
    task: str
    classes: Mapping[str, int]
    trained: int
    mean_length: float

    def text(self, called: str) -> str:
        """What the study file says.

        Args:
            called: the name of the file.
        """
        parts = [self._head(shlex.quote(called)), self.task, self._settings(), self._arms(), self._ending()]
        return "\n".join(parts) + "\n"

    def _head(self, called: str) -> str:
        source, called = printable(self.source), printable(called)
        return f"""\
# yaml-language-server: $schema={SCHEMA_FILE}
# A study of {source}, written by `fairtune init`. Change what you like; `fairtune help study` explains every field.
#   fairtune plan {called}   # what will run, and what it can show
#   fairtune run {called}    # Ctrl-C saves, the same command goes on

study: {yaml_word(self.name)}  # its runs are kept under this name
"""

    def _settings(self) -> str:
        trained = self.trained
        epochs = 10 if trained < SMALL else 5 if trained < MIDDLE else 3 if trained < LARGE else 1
        batch_size = 16 if trained < MIDDLE else 32
        length, why = "auto", "tokens; auto covers 95 % of the texts"
        if self.mean_length > LONG_TEXTS:
            length, why = (
                str(LONG_INPUT),
                "tokens; longer texts are cut, and `fairtune data lengths` shows what that costs",
            )
        return f"""
model: minilm  # small and embedded; or a folder, or a hub id such as google-bert/bert-base-uncased
train:
  epochs: {epochs}  # passes over about {trained:,} training examples
  batch_size: {batch_size}
  max_length: {length}  # {why}
seeds: 5  # each arm runs once with each; three are the least for a verdict
"""

    def _arms(self) -> str:
        if is_unbalanced(self.classes):
            method = (
                "  weighted: {lr: 1e-4, methods: [{weighted_ce: {weights: balanced}}]}  # small classes count as much"
            )
        else:
            method = "  smoothing: {lr: 1e-4, methods: [{label_smoothing: {smoothing: 0.1}}]}  # less sure of its training labels"
        return f"""\
arms:
  # Ways to train. An arm with a method is compared with the arm that has the same settings and no method: its control.
  baseline: {{lr: 1e-4}}  # suits small models; one as large as BERT wants 2e-5, in every arm
  baseline-fast: {{lr: 3e-4}}  # no method, another learning rate: is what a method gains more than a better rate would?
{method}
  layerwise: {{lr: 1e-4, methods: [{{layerwise_lr: {{decay: 0.95}}}}]}}  # lower layers learn less. `fairtune methods` lists more
  # Simple baselines, in seconds: what a method has to beat to be worth its cost.
  majority: {{}}
  tfidf: {{}}
  linear-probe: {{}}"""

    def _ending(self) -> str:
        examples = min(QUICK, self.trained)
        return f"""
compare:
  to: baseline
  margin: 1.5%  # a loss that would not matter to you; it is what "not inferior" is judged by

# Let every arm choose its own learning rate on validation first:
# tune: {{space: {{lr: [3e-5, 1e-4, 3e-4]}}, trials: 3, seeds: 2}}
# Also time the arms against each other:
# time: true

profiles:
  quick:  # `--profile quick`: does everything work? Too little to learn much from, or to judge by
    study: {yaml_word(f"{self.name[: LONGEST_NAME - 6]}-quick")}
    train: {{epochs: 2, batch_size: 16, examples: {examples}, eval_examples: 300}}
    seeds: 3"""


def study_name(file: Path) -> str:
    """The name of a study of this file: what a file system and a terminal take."""
    stem = file.name.partition(".")[0] or file.name
    name = re.sub(r"[^A-Za-z0-9_+-]+", "-", stem).lstrip("_+-").rstrip("-")
    return name[: LONGEST_NAME - 10] or "my-study"


def is_unbalanced(classes: Mapping[str, int]) -> bool:
    """Whether the largest class is much larger than the smallest."""
    return max(classes.values()) >= UNBALANCED * min(classes.values())


def classes_text(classes: Mapping[str, int]) -> str:
    """The classes with their sizes, the largest first: `2 classes: pos 60 %, neg 40 %`."""
    total = sum(classes.values())
    shown = [f"{printable(name)[:30]} {_share(count / total)}" for name, count in list(classes.items())[:CLASSES_SHOWN]]
    more = ", ..." if len(classes) > CLASSES_SHOWN else ""
    return f"{len(classes)} classes: {', '.join(shown)}{more}"


def _share(share: float) -> str:
    return f"{share:.0%}" if share >= 0.005 else "below 1%"


def yaml_word(text: str) -> str:
    """A text in a line of YAML, in quotes where it has to be."""
    plain = re.fullmatch(r"[A-Za-z][\w./+-]*(?: [\w./+-]+)*", text, re.ASCII) is not None
    if plain and yaml.safe_load(text) == text:
        return text
    quoted: str = yaml.safe_dump(text, default_style='"', allow_unicode=False, width=10**9)
    return quoted.strip()
