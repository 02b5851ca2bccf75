"""`fairtune data ...`: looking at a task's data before anything is trained. One file per verb."""

from __future__ import annotations

import typer

from fairtune.cli.verbs import Verb, VerbGroup


def _kinds_help() -> str:
    from fairtune.cli.data.make_titles import kinds_help

    return kinds_help()


class DataVerbs(VerbGroup):
    """One line per verb, in the order of `fairtune data --help`."""

    package = "fairtune.cli.data"
    verbs = (
        Verb(
            "cache",
            "Show what the cache holds, by kind, and where it is. Whatever is taken away is made again when it is needed.",
        ),
        Verb(
            "card",
            "Show rows, balance, duplicates, contradictory labels, texts that splits share, lengths and languages of a task.",
        ),
        Verb("lengths", "Show how long a task's examples are in tokens, and what each max_length cuts and costs."),
        Verb(
            "make-titles",
            "Make a balanced set of correct and wrong titles by corrupting correct ones the way extraction fails.",
            home="make_titles:make",
            epilog=_kinds_help,
        ),
        Verb(
            "prepare",
            "Read and check a study's data, fetch its model, and tokenise, so that training can begin at once: "
            "also without network.",
        ),
    )


data = typer.Typer(
    name="data",
    cls=DataVerbs,
    help="Look at a task's data before anything is trained, or make some.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
