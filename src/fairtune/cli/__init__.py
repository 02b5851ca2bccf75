"""The command line: one thin file a verb."""

from __future__ import annotations


def main() -> None:
    """Entry point of the `fairtune` command."""
    from fairtune.cli.app import app

    app()
