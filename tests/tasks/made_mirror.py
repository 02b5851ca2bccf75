"""Small mirrors of the published tasks: the layout and the columns of the real ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from fairtune.tasks.definitions import DEFINITIONS, TEXTS, Definition

Row = dict[str, Any]


def write_split(mirror: Path, folder: str, split: str, rows: list[Row]) -> Path:
    file = mirror / folder / f"{split}.jsonl.gz"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    return file


def read_split(mirror: Path, folder: str, split: str) -> list[Row]:
    file = mirror / folder / f"{split}.jsonl.gz"
    return [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]


def sentences(split: str, n: int, secret: bool = False) -> list[Row]:
    """Rows as sst2 has them; the labels of a secret split are -1."""
    return [{"sentence": f"{split} sentence {i}", "label": -1 if secret else i % 2, "idx": i} for i in range(n)]


def pairs(split: str, n: int) -> list[Row]:
    """Rows as mnli and xnli have them."""
    return [{"premise": f"{split} {i // 3}", "hypothesis": f"so {i}", "label": i % 3} for i in range(n)]


def make_sst2(mirror: Path, secret: bool = False) -> Path:
    write_split(mirror, "sst2", "train", sentences("train", 40))
    write_split(mirror, "sst2", "validation", sentences("validation", 21))
    write_split(mirror, "sst2", "test", sentences("test", 16, secret))
    return mirror


def make_inference(mirror: Path, language: str = "de") -> Path:
    """mnli, and xnli in a language."""
    write_split(mirror, "mnli", "train", pairs("train", 60))
    write_split(mirror, "mnli", "validation_matched", pairs("validation", 32))
    write_split(mirror, f"xnli/{language}", "validation", pairs(f"{language} validation", 24))
    write_split(mirror, f"xnli/{language}", "test", pairs(f"{language} test", 30))
    return mirror


def make_task(mirror: Path, task: Definition, rows: int = 60) -> Path:
    """Every split that a published task reads, each with texts of its own, its labels in turn."""
    for data, split in task.places().values():
        made = [
            {
                **{column: f"{column} {i} of {data.folder} {split}" for column in task.text},
                "label": i % len(task.labels),
            }
            for i in range(rows)
        ]
        write_split(mirror, data.folder, split, made)
    return mirror


def make_titles(mirror: Path) -> Path:
    """600 correct titles, and 20 that were judged."""
    fields = ("graph", "speech", "protein", "market", "image", "storage", "query", "network", "grammar", "sensor")
    things = (
        "learning", "parsing", "folding", "models", "retrieval", "analysis", "design", "search", "control", "planning",
    )  # fmt: skip
    names = [f"{a.title()} {b} for {c} and {d}" for a in fields for b in things for c in fields[:2] for d in things[:3]]
    write_split(mirror, "titles", "some_source", [{"title": title} for title in names])
    judged = [{"id": i, "title": f"Judged {i}", "label": i % 2, "original": None} for i in range(20)]
    write_split(mirror, "titles", "citeseerx", judged)
    return mirror


def make_everything(mirror: Path, documents: int = 20) -> Path:
    """All published tasks, and the texts for language models."""
    for task in DEFINITIONS:
        make_task(mirror, task)
    for text in TEXTS:
        for data, split in text.places().values() if not text.data.package else []:
            write_split(mirror, data.folder, split, [{"text": f"{split} {i}"} for i in range(documents)])
    return mirror
