"""The report as tidy CSV: one file per kind of thing, one row per observation, every digit."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from io import StringIO
from typing import Any

from fairtune.analysis.ledger_runs import LedgerRun, metrics_of
from fairtune.analysis.results import Results
from fairtune.core.printable import printable
from fairtune.ledger.predictions import read_predictions
from fairtune.report.comparison_record import ComparisonRecord, comparison_records
from fairtune.report.content import ArmRow, Header, ReportContent

SCORES = ("study", "arm", "seed", "metric", "split", "weights", "value")
ARMS = (
    "study", "arm", "methods", "learner", "planned", "failed", "n", "metric", "mean", "sd", "low", "high", "confidence",
    "against", "verdict", "parameters", "trainable", "trainable_share", "flops_per_token", "peak_memory_bytes",
    "step_seconds_timed", "step_seconds_own",
)  # fmt: skip
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class CsvExporter:
    """Scores by run, comparisons and arms, each a file."""

    name, place = "csv", "csv"

    def files(self, content: ReportContent, results: Results) -> dict[str, bytes]:
        header = content.header
        columns = [field.name for field in fields(ComparisonRecord)]
        return {
            f"{self.place}/scores.csv": table_bytes(SCORES, score_rows(results)),
            f"{self.place}/comparisons.csv": table_bytes(columns, map(asdict, comparison_records(content))),
            f"{self.place}/arms.csv": table_bytes(ARMS, (_arm_row(header, row) for row in content.rows)),
        }


def score_rows(results: Results) -> Iterator[dict[str, Any]]:
    """Every metric of every finished run, by split and by which weights."""
    for run in results.runs:
        if run.status == "finished":
            for split, weights, found in _scored(results, run):
                for metric, value in found.items():
                    yield {
                        "study": results.study, "arm": run.arm, "seed": run.seed, "metric": metric, "split": split,
                        "weights": weights, "value": value,
                    }  # fmt: skip


def _scored(results: Results, run: LedgerRun) -> Iterator[tuple[str, str, dict[str, float]]]:
    yield "test", "best", run.metrics
    if results.kind == "language_model":
        yield "test", "last", run.last
    if read_predictions(run.folder.predictions, "validation").ids:
        yield "validation", "best", metrics_of(run.scored("validation"))


def _arm_row(header: Header, row: ArmRow) -> dict[str, Any]:
    own, versus = row.summaries[header.metric], row.versus
    return {
        "study": header.study,
        "arm": row.arm,
        "methods": row.methods,
        "learner": row.learner,
        "planned": row.planned,
        "failed": row.failed,
        "n": own.n,
        "metric": header.metric,
        "mean": own.mean,
        "sd": own.sd,
        "low": own.low,
        "high": own.high,
        "confidence": header.confidence,
        "against": versus.reference if versus is not None else None,
        "verdict": versus.word if versus is not None else "reference",
        "parameters": row.parameters,
        "trainable": row.trainable,
        "trainable_share": row.trainable_share,
        "flops_per_token": row.flops_per_token,
        "peak_memory_bytes": row.peak_memory.median if row.peak_memory is not None else None,
        "step_seconds_timed": row.timed.seconds if row.timed is not None else None,
        "step_seconds_own": row.step_seconds.median if row.step_seconds is not None else None,
    }


def table_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A table as UTF-8, with the columns' names first."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row[column]) for column in columns] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _cell(value: Any) -> str:
    """Numbers with every digit; what there is not, or is no finite number, is empty; no text is taken for a formula."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(float(value)) if isinstance(value, float) else str(value)
    text = printable("; ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    return f"'{text}" if text.startswith(FORMULA) else text
