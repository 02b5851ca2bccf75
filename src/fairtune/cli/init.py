"""`fairtune init`: from a file of texts and labels to a study that can be run."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from fairtune.cli.command import AsJson, print_json, print_note, report_errors
from fairtune.core.errors import DataError, FairtuneError, one_of
from fairtune.core.files import read_json, write_atomically
from fairtune.core.printable import printable
from fairtune.study.schema import study_json_schema
from fairtune.study.starter import SCHEMA_FILE, Starter, classes_text, study_name

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, JSONL or Parquet, also .gz, or a folder of such files.", show_default=False
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option("--text", metavar="COLUMN", help="The column with the texts; twice for pairs; guessed if absent."),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label", metavar="COLUMN", help="The column with the labels; guessed if absent.", show_default=False
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "-o", "--out", metavar="FILE", help="The study file; named after the data, in this folder, if absent.",
        show_default=False,
    ),
]  # fmt: skip
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", show_default=False,
        help="How the data is encoded, such as windows-1252; UTF-8, or what its first bytes say, if absent.",
    ),
]  # fmt: skip
Force = Annotated[bool, typer.Option("--force", help="Replace a study file that exists.")]
RARE = 10
"""Rows of a class below which it may be missing in a split."""
SHOWN = 5
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


@report_errors
def init(
    data: Data,
    text: Text = None,
    label: Label = None,
    out: Out = None,
    encoding: Encoding = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Look at a file of texts and labels and write a study for it.

    The study has controls and simple baselines, settings that fit the size of the data, and a comment on what to change.
    """
    name = study_name(data)
    file = out or Path(f"{name}.yaml")
    _require_free(file, data, force)
    from fairtune.tasks.column_choice import choose_task_columns, require_classes
    from fairtune.tasks.reading.file_facts import describe_file

    facts = describe_file(data, encoding)
    if facts.format == "txt":
        raise DataError(f"{data}: plain text has no label column; give CSV, TSV, JSONL or Parquet.")
    columns = choose_task_columns(facts, text or (), label)
    starter = Starter(name, data, facts, columns, require_classes(facts, columns.label), encoding)
    written = starter.text(file)
    _require_fit(written, data)
    schema = _write(file, written)
    if as_json:
        print_json(_facts(starter, file, schema))
        return
    for line in _lines(starter, file):
        typer.echo(printable(line))
    if schema is None:
        print_note(f"{SCHEMA_FILE} is there and not fairtune's, so it was left as it is: no help from your editor.")


def _require_free(file: Path, data: Path, force: bool) -> None:
    if file.suffix.lower() not in (".yaml", ".yml"):
        raise FairtuneError(f"-o {file}: a study file ends in .yaml or .yml.")
    if not file.parent.is_dir():
        raise FairtuneError(f"-o {file}: there is no folder {file.parent}; make it first.")
    if file.is_dir() or (file.exists() and not force):
        raise FairtuneError(f"{file}: there is one already; choose another name with -o FILE, or add --force.")
    if data.exists() and file.exists() and file.samefile(data):
        raise FairtuneError(f"{file}: that is the data itself.")


def _require_fit(written: str, data: Path) -> None:
    """Refuse data that no plan could be made for, before anything is written.

    Raises:
        FairtuneError: what is wrong with the data.
    """
    from fairtune.study.study_file import load_study
    from fairtune.study.yaml_tree import parse_yaml
    from fairtune.tasks.catalogue import load_task

    study: Any = parse_yaml(written).data
    study["task"]["train"] = str(data.resolve())
    try:
        load_task(**load_study(study).data())
    except DataError as error:
        raise DataError(f"{error} Nothing was written.") from None


def _write(file: Path, written: str) -> Path | None:
    """The study and, beside it, the schema by which an editor checks it; None where another file has that name."""
    schema = file.parent / SCHEMA_FILE
    known = read_json(schema) or {}
    content = study_json_schema()
    try:
        write_atomically(file, written.encode())
        if schema.exists() and known.get("title") != content["title"]:
            return None
        write_atomically(schema, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode())
    except OSError as error:
        raise FairtuneError(f"{file}: cannot be written: {error.strerror or error}.") from None
    return schema


def _lines(starter: Starter, file: Path) -> list[str]:
    """What was seen, what was taken for what, and how to go on."""
    facts, columns = starter.facts, starter.columns
    rows = f"{facts.rows:,} rows" if facts.whole else f"the first {facts.rows:,} rows"
    form = f", separated by {DELIMITERS.get(facts.delimiter, facts.delimiter)}" if facts.delimiter else ""
    texts = " and ".join(columns.text)
    lines = [
        f"{starter.file}: {rows}, {len(facts.columns)} columns{form}",
        f"  text   {texts} ({columns.why_text}): {starter.mean_length:,.0f} characters on average",
        f"  label  {columns.label} ({columns.why_label}): {classes_text(starter.classes)}",
    ]
    if starter.unlabelled:
        lines.append(f"  {starter.unlabelled:,} rows have no label and are skipped (`unlabelled: skip`).")
    rare = [name for name, count in starter.classes.items() if count < RARE]
    if rare:
        names = f"{one_of(rare[:SHOWN])}{' ...' if len(rare) > SHOWN else ''}"
        lines.append(
            f"  Fewer than {RARE} rows: {names}. That is too few to learn from and to be scored by; merge or remove such classes, "
            "or find more."
        )
    study = shlex.quote(str(file))
    return [
        *lines,
        f"Wrote {file}, with comments on what to change, and {SCHEMA_FILE} for your editor.",
        "",
        "Next:",
        f"  fairtune plan {study}",
        f"  fairtune run {study}    (--profile quick: a short trial of it)",
    ]


def _facts(starter: Starter, file: Path, schema: Path | None) -> dict[str, Any]:
    facts, columns = starter.facts, starter.columns
    return {
        "study": starter.name,
        "file": str(file),
        "schema": None if schema is None else str(schema),
        "rows": facts.rows,
        "all_rows": facts.whole,
        "format": facts.format,
        "delimiter": facts.delimiter,
        "encoding": facts.encoding,
        "columns": list(facts.columns),
        "text": list(columns.text),
        "label": columns.label,
        "why": {"text": columns.why_text, "label": columns.why_label},
        "labels": dict(starter.classes),
        "unlabelled": starter.unlabelled,
        "next": [f"fairtune plan {shlex.quote(str(file))}", f"fairtune run {shlex.quote(str(file))}"],
    }
