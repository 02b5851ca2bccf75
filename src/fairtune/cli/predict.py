"""`fairtune predict`: a file of texts, or a stream of them, with the answers of a classifier."""

from __future__ import annotations

import itertools
import re
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtune.cli.command import (
    INTERRUPTED,
    AsJson,
    print_json,
    print_note,
    report_errors,
)
from fairtune.core.errors import DataError, FairtuneError, one_of
from fairtune.core.machine import wait_asleep
from fairtune.settings.metrics import metrics_of_kind
from fairtune.settings.values import DEVICE
from fairtune.tasks.reading.columns import check_columns

if TYPE_CHECKING:
    from fairtune.classifier.prediction import OpenedClassifier, PredictionOutcome
    from fairtune.classifier.row_output import RowOutput
    from fairtune.tasks.reading.reader import RowReader

MOST_SHOWN = 3
Model = Annotated[
    str,
    typer.Argument(
        metavar="DIR", help="A folder that `train` wrote, or any classifier of transformers.", show_default=False
    ),
]
Input = Annotated[
    str,
    typer.Argument(metavar="[FILE]", help="CSV, TSV, JSONL, Parquet or plain text, also .gz; `-` is standard input."),
]
Out = Annotated[
    str,
    typer.Option(
        "-o", "--out", metavar="OUT", help="CSV, TSV, JSONL or Parquet by its ending; `-` is standard output."
    ),
]
Text = Annotated[
    str | None,
    typer.Option(
        "--text", metavar="COLUMN", help="The column with the texts; as at training if absent.", show_default=False
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(
        "--pair", metavar="COLUMN", help="The column with the second text of a pair; as at training if absent.",
        show_default=False,
    ),
]  # fmt: skip
Label = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="The column with right answers, to be scored; as at training if it is there.",
        show_default=False,
    ),
]  # fmt: skip
Format = Annotated[
    str | None,
    typer.Option(
        "--format", metavar="FORMAT", show_default=False,
        help="csv, tsv, jsonl, parquet or txt (one text per line), where the name does not say. Standard input is JSONL if its "
        "first line is an object, else txt.",
    ),
]  # fmt: skip
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", show_default=False,
        help="How FILE is encoded, such as windows-1252; UTF-8, or what its first bytes say, if absent.",
    ),
]  # fmt: skip
Every = Annotated[bool, typer.Option("--probabilities", help="Add a column with the probability of each class.")]
Prefix = Annotated[str, typer.Option("--prefix", metavar="NAME_", help="Put before the names of the added columns.")]
SafeCsv = Annotated[
    bool,
    typer.Option(
        "--safe-csv",
        help="In CSV and TSV, put a ' before cells that begin with = + - @, which spreadsheets take for formulas.",
    ),
]
Device = Annotated[str, typer.Option("--device", metavar="DEVICE", help="auto, cpu, mps, cuda or cuda:1.")]
BatchTokens = Annotated[
    int | None,
    typer.Option(
        "--batch-tokens", metavar="N", min=1, help="Padded tokens in a batch; what suits the device if absent.",
        show_default=False,
    ),
]  # fmt: skip


@report_errors
def predict(
    model: Model,
    file: Input = "-",
    out: Out = "-",
    text: Text = None,
    pair: Pair = None,
    label: Label = None,
    input_format: Format = None,
    encoding: Encoding = None,
    every: Every = False,
    prefix: Prefix = "",
    safe_csv: SafeCsv = False,
    device: Device = "auto",
    batch_tokens: BatchTokens = None,
    as_json: AsJson = False,
) -> None:
    """Predict every row of a file or a stream; its columns are kept, `predicted` and `confidence` are added.

    Rows are answered some at a time, so a file may be larger than memory. OUT has its name when it is whole; after Ctrl-C or a
    bad row, what was done is in OUT.partial. Where the right labels are there, accuracy and F1 are given with their intervals.
    """
    wait_asleep()  # before torch is imported
    from fairtune.classifier.row_output import RowOutput, quiet_standard_output
    from fairtune.tasks.reading.reader import RowReader, form_note

    if as_json and out == "-":
        raise FairtuneError("--json tells of the predictions on standard output; write them to a file with -o FILE.")
    if not re.fullmatch(DEVICE, device):
        raise FairtuneError(f"--device {device}: unknown; allowed: auto, cpu, mps, cuda, or one of several as cuda:1.")
    if file == "-" and sys.stdin.isatty():
        print_note("Reading texts from the terminal, one per line; end with Ctrl-D.")
    source = RowReader(file, input_format, encoding=encoding)
    if note := form_note(source):
        print_note(note)
    sink = RowOutput(out, source.format, safe_csv)
    try:
        outcome, opened, scored = _predicted(
            model, source, sink, (text, pair, label), (every, prefix), device, batch_tokens
        )
    except BrokenPipeError:
        quiet_standard_output()
        return
    except KeyboardInterrupt:
        print_note(f"\nfairtune: stopped. {_kept(sink)}")
        raise typer.Exit(INTERRUPTED) from None
    except FairtuneError as error:
        if not sink.rows or sink.kept is None:
            raise
        raise DataError(f"{error} {_kept(sink)}") from None
    facts = _facts(outcome, opened, scored, sink)
    if as_json:
        print_json(facts)
        return
    for line in _lines(facts):
        print_note(line)


def _predicted(
    model: str, source: RowReader, sink: RowOutput, columns: tuple[str | None, str | None, str | None],
    added: tuple[bool, str], device: str, batch_tokens: int | None,
) -> tuple[PredictionOutcome, OpenedClassifier, str | None]:  # fmt: skip
    from fairtune.classifier.prediction import (
        PredictionRequest,
        open_classifier,
        predict_rows,
        text_columns,
    )
    from fairtune.classifier.progress import row_progress

    text, pair, label = columns
    rows = iter(source)
    first = next(rows)  # before the model, whose loading takes longer than seeing that a column is missing
    check_columns(source.where, first.columns, [name for name in columns if name is not None])
    opened = open_classifier(model, device, batch_tokens)
    trained = None if source.format == "txt" else opened.columns
    texts = text_columns(source.where, first.columns, (text, pair), trained, opened.width)
    scored = label or (opened.label if opened.label in first.columns else None)
    request = PredictionRequest(opened.classes, texts, scored, *added)
    with row_progress() as progress, sink:
        return predict_rows(request, opened.predictor, itertools.chain([first], rows), sink, progress), opened, scored


def _kept(sink: RowOutput) -> str:
    if not sink.rows or sink.kept is None:
        return f"{sink.rows:,} rows were written." if sink.file is None else "No row was done, so nothing was written."
    return f"The {sink.rows:,} rows that were done are in {sink.kept}."


def _facts(outcome: PredictionOutcome, opened: OpenedClassifier, label: str | None, sink: RowOutput) -> dict[str, Any]:
    from fairtune.classifier.evaluation import overall

    n = int(outcome.matrix.sum())
    return {
        "rows": outcome.rows,
        "seconds": outcome.seconds,
        "rows_per_second": outcome.rows / outcome.seconds if outcome.seconds else None,
        "device": str(opened.predictor.device),
        "out": None if sink.file is None else str(sink.file),
        "label": label,
        "classes": opened.classes,
        "figures": overall(outcome.matrix) if n else [],
        "unlabelled": outcome.unlabelled,
        "unknown_labels": dict(outcome.unknown),
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    from fairtune.cli.train_summary import figure_text

    where = f" -> {facts['out']}" if facts["out"] else ""
    speed = f"{facts['rows_per_second']:,.0f} per second on {facts['device']}"
    lines = [f"{facts['rows']:,} rows in {facts['seconds']:.1f} s, {speed}{where}"]
    figures = {figure["metric"]: figure for figure in facts["figures"]}
    scores = [figures[name] for name in metrics_of_kind("classify") if name in figures]
    if scores:
        text = ", ".join(figure_text(figure, facts["classes"]) for figure in scores)
        lines.append(f"against '{facts['label']}': {text} (95 %, n = {scores[0]['n']:,})")
    if facts["unknown_labels"]:
        names = list(facts["unknown_labels"])
        more = " ..." if len(names) > MOST_SHOWN else ""
        count = sum(facts["unknown_labels"].values())
        lines.append(
            f"not scored: {count:,} rows with labels that the model has no class for ({one_of(names[:MOST_SHOWN])}{more})"
        )
    if facts["label"] and facts["unlabelled"]:
        lines.append(f"not scored: {facts['unlabelled']:,} rows without a label")
    return lines
