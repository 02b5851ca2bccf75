"""Reads the log of the original program."""

from __future__ import annotations

import gzip
import re
from dataclasses import dataclass, field
from pathlib import Path

TRACE = Path(__file__).parent / "trace"


@dataclass
class Example:
    """What is printed while one example is learned."""

    moved: list[tuple[int, int, int]]  # x, y (from 1) and distance to the winner
    activations: list[float]
    pulled_by: tuple[int, int] | None = None  # x, y of the partial winner whose SOM error was used
    errors: list[list[float]] = field(default_factory=list)  # a hidden unit: by back-propagation, of the map, combined


@dataclass
class Map:
    """A printed `Class labeling SOM`, by (x, y) from 1."""

    reliability: dict[tuple[int, int], int] = field(default_factory=dict)
    label: dict[tuple[int, int], str | None] = field(default_factory=dict)
    third: dict[tuple[int, int], int] = field(default_factory=dict)
    weighted: float = 0.0


@dataclass
class Pass:
    """A pass over one of the three files."""

    learned: list[Example] = field(default_factory=list)
    activations: list[list[float]] = field(default_factory=list)
    std: list[float] = field(default_factory=list)
    map: Map | None = None
    score: str = ""


def read_log() -> list[Pass]:
    """The passes in their order: learning, labelling, development, test, and so on."""
    lines = gzip.decompress((TRACE / "t.log.gz").read_bytes()).decode("latin-1").splitlines()
    passes, now, moved = [], Pass(), []
    for number, line in enumerate(lines):
        if found := re.fullmatch(r"SOM1 x=(\d) y=(\d) updated \(distance=(\d)\)", line):
            moved.append(tuple(map(int, found.groups())))
        elif line.startswith("L1:"):
            now.activations.append([float(value) for value in line[3:].split(",") if value.strip()])
        elif line.startswith("Example="):
            now.learned.append(Example(moved, now.activations[-1]))
            moved = []
            if found := re.search(r"x=(\d) y=(\d)", line):
                now.learned[-1].pulled_by = (int(found[1]), int(found[2]))
        elif re.match(r"U\d: BP_ERROR=", line):
            now.learned[-1].errors.append([float(value) for value in re.findall(r"-?\d\.\d+", line)])
        elif re.match(r"\d/8 LRN=", line):
            now.score = line
            passes.append(now)
            now = Pass()
        elif line.startswith("Class labeling SOM"):
            passes[-1].map = _read_map(lines[number + 3 : number + 13])
        elif line.startswith("STD:"):
            passes[-1].std = [float(value) for value in line.split()[1:]]
    return passes


def _read_map(lines: list[str]) -> Map:
    found = Map()
    for y in (1, 2, 3):
        reliabilities, labels, thirds = lines[3 * (y - 1) : 3 * y]
        assert int(labels[:3]) == y
        for x in (1, 2, 3):
            field_of = slice(4 * x, 4 * x + 3)
            found.reliability[x, y] = int(reliabilities[field_of])
            found.label[x, y] = labels[field_of][1] if labels[field_of].strip() else None
            found.third[x, y] = int(thirds[field_of])
    found.weighted = float(lines[9].split()[-1])
    return found
