"""The examples that published scores of a task are measured on: how many, of which split, and by which metric."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReportedSplit:
    """What papers report a task on.

    Args:
        split: its usual name; GLUE's test labels are not public, so papers report the development set.
        metric: that the task is usually scored by.
        other: another split that some papers report, with its size.
    """

    task: str
    examples: int
    split: str
    metric: str = "accuracy"
    other: str = ""

    def __str__(self) -> str:
        return f"{self.task}, {self.split} set"


_SPLITS = (
    ReportedSplit("sst2", 872, "development", other="the test set has 1,821: --n 1821"),
    ReportedSplit("mnli", 9_815, "matched development", other="the mismatched one has 9,832: --n 9832"),
    ReportedSplit("mnli/mismatched", 9_832, "mismatched development"),
    ReportedSplit("cola", 1_043, "development", "mcc"),
    ReportedSplit("mrpc", 408, "development", other="the test set has 1,725: --n 1725"),
    ReportedSplit("qnli", 5_463, "development"),
    ReportedSplit("qqp", 40_430, "development", "f1"),
    ReportedSplit("rte", 277, "development"),
    ReportedSplit("wnli", 71, "development"),
    ReportedSplit("xnli", 5_010, "test", other="the development set has 2,490: --n 2490"),
    ReportedSplit("imdb", 25_000, "test"),
    ReportedSplit("ag_news", 7_600, "test"),
    ReportedSplit("titles", 976, "test", other="the held-out half has 488: --n 488"),
)


def reported_tasks() -> list[str]:
    return [split.task for split in _SPLITS if "/" not in split.task]


def reported_split(task: str) -> ReportedSplit | None:
    """What a task is usually reported on; languages and variants go by the task's first name."""
    by_name = {split.task: split for split in _SPLITS}
    return by_name.get(task) or by_name.get(task.partition("/")[0])
