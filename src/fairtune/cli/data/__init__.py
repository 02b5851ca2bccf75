"""`fairtune data ...`: looking at a task's data before anything is trained. One file per verb."""

from __future__ import annotations

import typer

from fairtune.cli.verbs import Verb, VerbGroup


class DataVerbs(VerbGroup):
    """One line per verb, in the order of `fairtune data --help`."""

    package = "fairtune.cli.data"
    example = "fairtune data card movie-reviews"
    verbs = (
        Verb(
            "cache",
            "Show what the cache holds, by kind, and where it is. Whatever is taken away is made again when it is needed.",
            "fairtune data cache",
        ),
        Verb(
            "card",
            "Show rows, balance, duplicates, contradictory labels, texts that splits share, lengths and languages of a task.",
            "fairtune data card '{train: reviews.csv, text: review, label: stars}'",
        ),
        Verb(
            "lengths",
            "Show how long a task's examples are in tokens, and what each max_length cuts and costs.",
            "fairtune data lengths movie-reviews --model minilm",
        ),
        Verb(
            "make-titles",
            "Make a balanced set of correct and wrong titles by corrupting correct ones the way extraction fails.",
            "fairtune data make-titles made.csv --from refs.bib",
            home="make_titles:make",
            see="`fairtune help titles` lists the kinds with their weights.",
        ),
        Verb(
            "prepare",
            "Read and check a study's data, fetch its model, and tokenise, so that training can begin at once: "
            "also without network.",
            "fairtune data prepare studies/movie-reviews.yaml",
            see="`fairtune help study` explains every field of a study file, also for --set.",
        ),
    )


data = typer.Typer(
    name="data",
    cls=DataVerbs,
    help="Look at a task's data before anything is trained, or make some.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
