"""`fairtune schema`: the JSON schema of study files, or of suite files."""

from __future__ import annotations

from typing import Annotated

import typer

from fairtune.cli.command import print_json, report_errors
from fairtune.study.schema import study_json_schema

OfSuite = Annotated[bool, typer.Option("--suite", help="That of a suite file instead.")]


@report_errors
def schema(
    of_suite: OfSuite = False,
    as_json: bool = typer.Option(True, "--json", hidden=True),  # noqa: ARG001 - it is JSON anyway
) -> None:
    """Print the JSON schema of a study file, for editors and checkers."""
    if not of_suite:
        print_json(study_json_schema())
        return
    from fairtune.study.suite_file import suite_json_schema

    print_json(suite_json_schema())
