"""`fairtune data ...`: looking at a task's data before anything is trained. One file per verb."""

from __future__ import annotations

import typer

from fairtune.cli.data import cache, card, lengths, make_titles, prepare

data = typer.Typer(
    name="data",
    help="Look at a task's data before anything is trained, or make some.",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data.command("cache")(cache.cache)
data.command("card")(card.card)
data.command("lengths")(lengths.lengths)
data.command("make-titles", epilog=make_titles.kinds_help())(make_titles.make)
data.command("prepare")(prepare.prepare)
