"""`fairtune schema`: the JSON schema of study files."""

from __future__ import annotations

import typer

from fairtune.cli.command import answers, print_json
from fairtune.study.schema import study_json_schema


@answers
def schema(as_json: bool = typer.Option(True, "--json", hidden=True)) -> None:  # noqa: ARG001 - it is JSON anyway
    """Print the JSON schema of a study file, for editors and checkers."""
    print_json(study_json_schema())
