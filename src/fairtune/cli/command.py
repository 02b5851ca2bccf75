"""What all verbs share: their options, how they answer, and how they fail."""

from __future__ import annotations

import functools
import json
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, ParamSpec

import typer

from fairtune.core.console import Console
from fairtune.core.errors import FairtuneError, Stopped, one_of
from fairtune.core.files import finite
from fairtune.core.plugins import ConsentNeeded, allowed_files, plugins_allowed
from fairtune.core.printable import LINES, printable, printable_json

if TYPE_CHECKING:
    from fairtune.study.plan import Plan

FAILED_RUN, WRONG_INPUT, INTERRUPTED = 1, 2, 130
P = ParamSpec("P")

StudyFile = Annotated[Path, typer.Argument(metavar="FILE", help="The study file.", show_default=False)]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a field, such as train.epochs=2; may be repeated."),
]
Profile = Annotated[str | None, typer.Option("--profile", metavar="NAME", help="Use one of the study's profiles.")]
Runs = Annotated[Path, typer.Option("--runs", metavar="FOLDER", help="The folder that keeps the runs.")]
Arms = Annotated[
    str | None,
    typer.Option(
        "--arms", metavar="A,B", help="Only these arms, and those they are compared with.", show_default=False
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="Go on with a study that is refused as worthless; plan and report say so.")
]
AllowPlugins = Annotated[
    bool,
    typer.Option(
        "--allow-plugins", help="Execute the modules that the study names under `plugins`; needed once per file."
    ),
]
NamedIn = Annotated[
    Path | None,
    typer.Option("--study", metavar="FILE", help="Also know the methods of the plug-ins that this file names."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Answer with JSON.")]


def read_arms(option: str | None) -> list[str] | None:
    """The names in `--arms a,b`; None where it was not given."""
    found = None if option is None else [name.strip() for name in option.split(",") if name.strip()]
    if found == []:
        raise FairtuneError("--arms: it names no arm; give some of the study's, such as --arms baseline,focal.")
    return found


def choice_text(plan: Plan, chosen: Sequence[str]) -> str | None:
    """What to say where only some arms are meant; None where all are."""
    others = [arm for arm in plan.study.arms if arm not in chosen]
    if not others:
        return None
    return (
        f"{len(chosen)} of {len(plan.study.arms)} arms: {one_of(chosen)}. The plan stays whole: its hash and the comparisons that "
        f"are corrected together are those of all arms, and {one_of(others)} can be run later."
    )


def console() -> Console:
    """Standard output; at least 100 columns where it is not a terminal."""
    found = Console()
    return found if found.is_terminal else Console(width=100)


def print_json(value: Any) -> None:
    typer.echo(printable_json(json.dumps(finite(value), indent=1, ensure_ascii=False)))


def print_text(text: str) -> None:
    """Lines on standard output, as they are; what a plug-in's help has in it is no command to the terminal."""
    typer.echo(printable(text, LINES))


def print_note(text: str) -> None:
    """Lines on standard error, where they are never among the answers."""
    typer.echo(printable(text, LINES), err=True)


@contextmanager
def reading_study(allow_plugins: bool) -> Iterator[None]:
    """Plug-ins that a study names meanwhile are allowed if the user said so, and named once."""
    before = allowed_files()
    with plugins_allowed(allow_plugins):
        yield
    for file in allowed_files():
        if file not in before:
            print_note(f"fairtune: executed, and allowed from now on: {file}")


def report_errors(verb: Callable[P, None]) -> Callable[P, None]:
    """A verb whose errors are reported in a sentence, with exit code 2, and whose interruption says how to go on.

    On a terminal, a plug-in that was not allowed yet is asked about, and the verb begins again.
    """

    @functools.wraps(verb)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            verb(*args, **kwargs)
        except ConsentNeeded as needed:
            if not (sys.stdin.isatty() and sys.stderr.isatty()):
                _refuse(needed, bool(kwargs.get("as_json")))
            print_note(f"fairtune: {needed.question}")
            if not typer.confirm("Execute this code, now and from now on?", err=True):
                print_note("fairtune: not allowed; nothing was executed.")
                raise typer.Exit(WRONG_INPUT) from None
            with plugins_allowed():
                wrapped(*args, **kwargs)
        except FairtuneError as error:
            _refuse(error, bool(kwargs.get("as_json")))
        except (Stopped, KeyboardInterrupt):
            command = shlex.join(["fairtune", *sys.argv[1:]])
            print_note(f"\nfairtune: stopped. What was done is saved; go on with: {command}")
            raise typer.Exit(INTERRUPTED) from None

    return wrapped


def _refuse(error: FairtuneError, as_json: bool) -> NoReturn:
    if as_json:
        print_json({"error": str(error), "problems": error.as_json()})
    for line in printable(str(error), LINES).splitlines():
        print_note(f"fairtune: {line}")
    raise typer.Exit(WRONG_INPUT) from None


@contextmanager
def leave_quietly(code: int) -> Iterator[None]:
    """Ctrl-C leaves a view of what others do, and there is nothing to go on with.

    Args:
        code: to exit with then.
    """
    try:
        yield
    except (Stopped, KeyboardInterrupt):
        raise typer.Exit(code) from None
