"""`fairtune schema`: the JSON schema of study files."""

from __future__ import annotations

import typer

from fairtune.cli.command import print_json, report_errors
from fairtune.study.schema import study_json_schema


@report_errors
def schema(as_json: bool = typer.Option(True, "--json", hidden=True)) -> None:  # noqa: ARG001 - it is JSON anyway
    """Print the JSON schema of a study file, for editors and checkers."""
    print_json(study_json_schema())
