"""A task of the catalogue in a first study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.study.starter import Starter, classes_text, yaml_word
from fairtune.tasks.catalogue import load_task, task_names
from fairtune.tasks.task import Task

MOST_TEXTS = 1000
"""Texts that are looked at for their length."""


@dataclass(frozen=True)
class StarterTask:
    """A task that a study is begun with."""

    task: Task

    @property
    def classes(self) -> Mapping[str, int]:
        """How often each label occurs among the training examples, the most frequent first."""
        counts = Counter(self.task.splits["train"].labels.tolist())
        return {self.task.labels[number]: count for number, count in counts.most_common()}

    @property
    def mean_length(self) -> float:
        """Characters of an example."""
        texts = self.task.splits["train"].texts
        some = [texts[place] for place in range(min(len(texts), MOST_TEXTS))]
        return sum(len(part) for text in some for part in text) / max(len(some), 1)

    def starter(self, name: str, _: Path) -> Starter:
        """The study that it begins."""
        written = f"task: {yaml_word(self.task.name)}  # {classes_text(self.classes)}; `fairtune tasks` lists others"
        trained = len(self.task.splits["train"])
        return Starter(name, f"the task {self.task.name}", written, self.classes, trained, self.mean_length)

    def lines(self) -> list[str]:
        """What is in it."""
        rows = ", ".join(f"{name} {len(split):,}" for name, split in self.task.splits.items())
        return [
            f"{self.task.name}: {rows}; {self.mean_length:,.0f} characters on average",
            f"  {classes_text(self.classes)}; selected and reported by {self.task.metric}",
        ]

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        rows = {name: len(split) for name, split in self.task.splits.items()}
        return {"task": self.task.name, "rows": rows, "labels": dict(self.classes), "metric": self.task.metric}


def find_starter_task(name: str) -> StarterTask | None:
    """The task of this name that classifies, if there is one.

    Raises:
        DataError: its data is not here and cannot be fetched.
    """
    return StarterTask(load_task(name)) if name in task_names() else None
