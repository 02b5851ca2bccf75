"""`fairtune init`: from a file of texts and labels to a study that can be run."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from fairtune.cli.command import AsJson, print_json, print_note, print_text, report_errors
from fairtune.core.errors import DataError, FairtuneError, one_of
from fairtune.core.files import read_json, write_atomically
from fairtune.study.schema import study_json_schema
from fairtune.study.starter import SCHEMA_FILE, Starter, file_starter, study_name, task_starter

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, TSV, JSONL or Parquet, also .gz, a folder of such files, or a task by name.",
        show_default=False,
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
    seen = _looked_at(data, text or (), label, encoding, file)
    written = seen.text(name, file)
    _require_fit(written, data)
    schema = _write(file, written)
    if as_json:
        own = {"study": name, "file": str(file), "schema": None if schema is None else str(schema), "next": _next(file)}
        print_json({**own, **seen.json})
        return
    for line in _lines(seen, file):
        print_text(line)
    if schema is None:
        print_note(f"{SCHEMA_FILE} is there and not fairtune's, so it was left as it is: no help from your editor.")


def _looked_at(data: Path, text: Sequence[str], label: str | None, encoding: str | None, file: Path) -> Starter:
    from fairtune.tasks.catalogue import load_task, task_names

    if not data.exists() and str(data) in task_names():
        if text or label or encoding:
            raise FairtuneError(
                f"{data} is a task by name, whose columns are known; leave out --text, --label and --encoding."
            )
        return task_starter(load_task(str(data)))
    from fairtune.tasks.column_choice import choose_task_columns, describe_file, require_classes, require_header

    facts = describe_file(data, encoding)
    if facts.format == "txt":
        raise DataError(f"{data}: plain text has no label column; give CSV, TSV, JSONL or Parquet.")
    columns = choose_task_columns(facts, text, label)
    if not (text and label):
        require_header(facts, columns)
    return file_starter(data, facts, columns, require_classes(facts, columns.label), encoding, file)


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
    if isinstance(study["task"], dict):
        study["task"]["train"] = str(data.resolve())
    try:
        load_task(**load_study(study).data())
    except DataError as error:
        said = str(error).replace(str(data.resolve()), str(data))  # as the user calls it
        raise DataError(f"{said} Nothing was written.") from None


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


def _lines(seen: Starter, file: Path) -> list[str]:
    """What was seen, what was taken for what, and how to go on."""
    lines = list(seen.lines)
    rare = [name for name, count in seen.classes.items() if count < RARE]
    if rare:
        names = f"{one_of(rare[:SHOWN])}{' ...' if len(rare) > SHOWN else ''}"
        lines.append(
            f"  Fewer than {RARE} rows: {names}. That is too few to learn from and to be scored by; merge or remove such classes, "
            "or find more."
        )
    return [
        *lines,
        f"Wrote {file}, with comments on what to change, and {SCHEMA_FILE} for your editor.",
        "",
        "Next:",
        *(f"  {command}" for command in _next(file)[:-1]),
        f"  {_next(file)[-1]}    (--profile quick: a short trial of it)",
    ]


def _next(file: Path) -> list[str]:
    return [f"fairtune {verb} {shlex.quote(str(file))}" for verb in ("plan", "run")]
