"""The command line: one thin file per verb."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `fairtune` command."""
    from fairtune.core.console import make_messages_printable

    make_messages_printable()  # before typer is imported, which remembers how exceptions are shown
    from fairtune.cli.app import app

    app()
