"""The user's own file in a first study: the section `task`, with what was seen in the file beside it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.study.starter import Starter, classes_text, is_unbalanced, yaml_word
from fairtune.tasks.column_choice import ColumnChoice
from fairtune.tasks.reading.file_facts import FileFacts

HELD_OUT = 0.3
"""Share of the rows that is not trained on."""
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@dataclass(frozen=True)
class StarterFile:
    """A file that a study is begun with.

    Args:
        file: the data.
        classes: how often each label occurs, the most frequent first.
        encoding: of the file, where the user said it.
    """

    file: Path
    facts: FileFacts
    columns: ColumnChoice
    classes: Mapping[str, int]
    encoding: str | None = None

    @property
    def unlabelled(self) -> int:
        """Rows without a label, of those that were looked at."""
        return self.facts.columns[self.columns.label].missing

    @property
    def mean_length(self) -> float:
        """Characters of an example."""
        return sum(self.facts.columns[name].mean_length for name in self.columns.text)

    def starter(self, name: str, folder: Path) -> Starter:
        """The study that it begins.

        Args:
            folder: of the study file, where its paths start.
        """
        trained = round(sum(self.classes.values()) * (1 - HELD_OUT))
        return Starter(name, self.file.name, self._task(name, folder), self.classes, trained, self.mean_length)

    def lines(self) -> list[str]:
        """What was seen in it, and what was taken for what."""
        facts, columns = self.facts, self.columns
        rows = f"{facts.rows:,} rows" if facts.whole else f"the first {facts.rows:,} rows"
        form = f", separated by {DELIMITERS.get(facts.delimiter, facts.delimiter)}" if facts.delimiter else ""
        lines = [
            f"{self.file}: {rows}, {len(facts.columns)} columns{form}",
            f"  text   {' and '.join(columns.text)} ({columns.why_text}): {self.mean_length:,.0f} characters on average",
            f"  label  {columns.label} ({columns.why_label}): {classes_text(self.classes)}",
        ]
        if self.unlabelled:
            lines.append(f"  {self.unlabelled:,} rows have no label and are skipped (`unlabelled: skip`).")
        return lines

    def as_json(self) -> dict[str, Any]:
        """The same as data."""
        facts, columns = self.facts, self.columns
        return {
            "rows": facts.rows,
            "all_rows": facts.whole,
            "format": facts.format,
            "delimiter": facts.delimiter,
            "encoding": facts.encoding,
            "columns": list(facts.columns),
            "text": list(columns.text),
            "label": columns.label,
            "why": {"text": columns.why_text, "label": columns.why_label},
            "labels": dict(self.classes),
            "unlabelled": self.unlabelled,
        }

    @property
    def _mixed_labels(self) -> bool:
        """Whether some labels are numbers and others are not, which a study has to say is meant."""
        return len({re.fullmatch(r"[+-]?[0-9]*\.?[0-9]*", name) is not None for name in self.classes}) > 1

    def _task(self, name: str, folder: Path) -> str:
        text = self.columns.text
        lines = [
            "task:",
            f"  name: {yaml_word(name)}",
            f"  train: {yaml_word(relative_path(self.file, folder))}  # a tenth is held out to select by, a fifth to report",
            "  # test: other.csv  # rows to report instead of that fifth, if you have some that nobody has seen",
            f"  text: {yaml_word(text[0]) if len(text) == 1 else f'[{yaml_word(text[0])}, {yaml_word(text[1])}]'}",
            f"  label: {yaml_word(self.columns.label)}  # {classes_text(self.classes)}",
        ]
        if self._mixed_labels:
            lines.append(f"  labels: [{', '.join(map(yaml_word, self.classes))}]  # some are numbers, some are not")
        if self.encoding:
            lines.append(f"  encoding: {yaml_word(self.encoding)}")
        if self.unlabelled:
            lines.append(f"  unlabelled: skip  # {self.unlabelled:,} rows have no label; `refuse` stops at them")
        if is_unbalanced(self.classes):
            lines.append(
                "  metric: macro_f1  # the classes are of unequal size, and accuracy would hardly see the small ones"
            )
        else:
            lines.append("  metric: accuracy  # or macro_f1, roc_auc, log_loss ...")
        lines.append("dedupe: true  # no training on what is tested, nor twice on the same text")
        return "\n".join(lines)


def relative_path(file: Path, folder: Path) -> str:
    """A file's path from a folder, as a study file has it."""
    try:
        found = Path(os.path.relpath(file.resolve(), folder.resolve())).as_posix()
    except ValueError:  # another drive
        return file.resolve().as_posix()
    return f"./{found}" if found.startswith("~") else found
