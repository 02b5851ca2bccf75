"""`fairtune data cache`: what is kept of data that was read and tokenised, and where."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.text import Text

from fairtune.cli.command import AsJson, console, print_json, report_errors
from fairtune.core.cache import AREAS, VARIABLE, cache_folder, clear, contents
from fairtune.core.numbers import plural, size_text

Clear = Annotated[bool, typer.Option("--clear", help="Remove every entry that no process is building now.")]


@report_errors
def cache(clear_it: Clear = False, as_json: AsJson = False) -> None:
    """Show what the cache holds, by kind, and where it is. Whatever is taken away is made again when it is needed."""
    folder = cache_folder()
    if clear_it:
        gone = clear()
        if as_json:
            print_json({"cache": str(folder), "removed": asdict(gone)})
            return
        removed = plural(gone.entries, "entry", "entries")
        console().print(Text(f"{folder}: {removed} removed, {size_text(gone.size)} freed."), soft_wrap=True)
        return
    areas = contents()
    if as_json:
        print_json({"cache": str(folder), "kinds": {name: asdict(area) for name, area in areas.items()}})
        return
    total = size_text(sum(area.size for area in areas.values()))
    console().print(Text(f"{folder}: {total if areas else 'empty'}"), soft_wrap=True)
    for name, area in areas.items():
        line = f"{name:<10}{plural(area.entries, 'entry', 'entries'):>16} {size_text(area.size):>9}  {AREAS[name]}"
        console().print(Text(line), soft_wrap=True)
    if areas:
        console().print(f"`fairtune data cache --clear` takes it away; {VARIABLE} moves it.")
