"""`fairtune help`: a verb, the fields of a study, or what else has a page."""

from __future__ import annotations

import re
import shutil
import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtune.cli.command import AllowPlugins, AsJson, NamedIn, print_json, print_text, reading_study, report_errors
from fairtune.cli.verb_page import NARROWEST, WIDEST, Entry, list_text
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.core.printable import printable

if TYPE_CHECKING:
    from fairtune.study.fields import FieldDoc

Topic = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC",
        help="A verb, `study`, `study FIELD` such as `study train.epochs`, or `titles`; all topics if absent.",
        show_default=False,
    ),
]
TOPICS = {
    "VERB": "What `fairtune VERB --help` says, such as `run` or `data card`; `fairtune --help` lists all.",
    "study": "The fields of a study file, section by section.",
    "study FIELD": "One of them: train, train.epochs, arms, arms.focal, tune ...",
    "titles": "The kinds of wrong titles that `fairtune data make-titles` makes.",
}


@report_errors
def show_help(
    topic: Topic = None, study: NamedIn = None, allow_plugins: AllowPlugins = False, as_json: AsJson = False
) -> None:
    """Explain a verb, or a field of a study file."""
    if study is not None:
        from fairtune.study.study_file import load_plugins

        with reading_study(allow_plugins):
            load_plugins(study)
    words = topic or []
    if not words:
        _show_topics(as_json)
    elif words[0] == "study" and len(words) <= 2:
        _show_study(words[1] if len(words) == 2 else None, as_json)
    elif words == ["titles"]:
        _show_titles(as_json)
    else:
        _show_verb(words, as_json)


def _show_topics(as_json: bool) -> None:
    if as_json:
        print_json(TOPICS)
        return
    print_text(list_text("fairtune help ...", [Entry(name, help) for name, help in TOPICS.items()], _width()))


def _show_verb(words: list[str], as_json: bool) -> None:
    """The help of a verb, also of one below another."""
    from fairtune.cli.app import app

    command: Any = typer.main.get_command(app)
    for place, word in enumerate(words):
        known = list(getattr(command, "commands", ()))
        if word not in known:
            topics = [*known, *(() if place else ("study", "titles"))]
            raise FairtuneError(
                f"there is no help on '{' '.join(words)}'; topics are: {one_of(topics)}.{nearest(word, topics)}"
            )
        command = command.commands[word]
    page = command.page(" ".join(["fairtune", *words]))
    if as_json:
        print_json(asdict(page))
    else:
        print_text(page.text())


def _show_study(name: str | None, as_json: bool) -> None:
    """All fields in short, or one of them and what is below it."""
    from fairtune.study.fields import field_docs, find_fields, method_names

    docs = field_docs() if name is None else find_fields(name)
    if as_json:
        print_json([asdict(doc) for doc in docs])
        return
    methods = method_names()
    if name is None:
        sections = [doc for doc in docs if doc.path == "arms.NAME" or ("." not in doc.path and doc.path not in methods)]
        entries = [Entry(doc.path.partition(".")[0], _beginning(doc.help)) for doc in sections]
        print_text("A study is one YAML file: a task, a model, arms (ways to train) and seeds.\n")
        print_text(f"{list_text('Fields', entries, _width())}\n")
    else:
        for doc in docs:
            print_text(f"{_field_text(doc)}\n")
    if name is None or docs[0].path == "arms.NAME":
        print_text("\n".join(_wrapped(f"Methods of arms: {one_of(methods)}.")))
    further = "a section such as `fairtune help study train`, a field `train.epochs`, a method `arms.focal`"
    if name is None:
        print_text("\n".join(_wrapped(f"More: {further}. On the command line: --set train.epochs=2.")))


def _beginning(text: str) -> str:
    """The first thing that a text says."""
    return re.split(r"[.;:] ", text, maxsplit=1)[0].rstrip(".") + "."


def _field_text(doc: FieldDoc) -> str:
    """A field with all that is known of it."""
    needed = " It must be given." if doc.default == "required" else ""
    lines = [printable(doc.path), *_wrapped(f"{doc.help}{needed}")]
    for title, text in (
        ("Allowed", doc.allowed),
        ("Default", "" if doc.default == "required" else doc.default),
        ("Example", doc.example),
    ):
        if text:
            lines += _wrapped(f"{title}: {text}", "  ")
    return "\n  ".join(lines)


def _show_titles(as_json: bool) -> None:
    from fairtune.tasks.titles import KINDS

    found = list(KINDS.values())
    if as_json:
        print_json([{"kind": kind.name, "weight": kind.weight, "help": kind.help} for kind in found])
        return
    heading = "Kinds of wrong titles, with their weights for --weight"
    print_text(list_text(heading, [Entry(f"{kind.name} ({kind.weight:g})", kind.help) for kind in found], _width()))


def _width() -> int:
    return min(max(shutil.get_terminal_size().columns, NARROWEST), WIDEST)


def _wrapped(text: str, indent: str = "") -> list[str]:
    """Lines of a text; what a plug-in says of itself may hold anything."""
    return textwrap.wrap(
        printable(text), _width() - 2, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    )
