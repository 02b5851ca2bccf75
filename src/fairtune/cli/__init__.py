"""The command line: one thin file per verb."""

from __future__ import annotations

import sys


def main() -> None:
    """Entry point of the `fairtune` command."""
    from fairtune.core.console import make_messages_printable

    make_messages_printable()  # before typer is imported, which remembers how exceptions are shown
    if sys.argv[1:2] == ["worker"]:  # what clusters start on their nodes; no verb for people
        from fairtune.execution.executors.node import perform_specs

        sys.exit(perform_specs(sys.argv[2:]))
    from fairtune.cli.app import app

    app()
