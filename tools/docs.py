"""Write the reference pages: `docs/study-file.md` from the schema of a study, `docs/cli.md` from the verbs.

    make docs

A test fails where a page is not what is written here, so that neither can tell less or other than the program.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from fairtune.cli.app import Verbs, app
from fairtune.core.markdown import code, fenced, table
from fairtune.study.fields import FieldDoc, field_docs, method_names

DOCS = Path(__file__).parent.parent / "docs"
MADE = "<!-- Made by `make docs`; change the help texts in the code, not this page. -->"
STUDY_INTRODUCTION = (
    "A study is one YAML file. Every field is here, with what it allows and its default; `fairtune help study FIELD` tells the "
    "same in the terminal, and `fairtune init my.csv` writes a first study for your data. An editor checks a study as you write "
    "it, if its first line is `# yaml-language-server: $schema=fairtune-study.schema.json`; `fairtune schema` prints that file. "
    "Any field can be changed for one command: `fairtune run my.yaml --set train.epochs=2`, an entry of a list by its number: "
    "`--set arms.mine.methods.0.focal.gamma=3`."
)
CLI_INTRODUCTION = (
    "`fairtune` alone says what to do first, `fairtune --help` lists the verbs, `fairtune VERB --help` explains one. Where "
    "`--json` is listed, it answers with JSON. Exit codes: 0 all is well, 1 a run failed or something on record is not sound, "
    "2 something that was given has to be fixed, 130 interrupted."
)
LONGEST = 200
"""Characters of what a field allows; longer lists are cut."""
STUDY = """\
study: my-reviews                # its runs are kept under this name
task: {train: reviews.csv, text: review, label: stars}
model: minilm
train: {epochs: 3, batch_size: 32, max_length: auto}
seeds: 5
arms:
  baseline:      {lr: 5e-5}
  baseline-fast: {lr: 2e-4}      # the same at another rate
  focal:         {lr: 5e-5, methods: [{focal: {gamma: 2}}]}
  tfidf:         {}              # a simple baseline
compare: {to: baseline, margin: 1.5%}
profiles:
  quick: {train: {epochs: 1, examples: 500}, seeds: 3}"""
SECTIONS = {
    "task": "task:\n  train: data/reviews.csv\n  text: review\n  label: stars\n  metric: macro_f1\n"
    "  holdout: {validation: 0.1, test: 0.2}",
    "model": "model: {preset: gpt-mini, context: 256}\ntokenizer: {train: 8000}",
    "tokenizer": "task: {kind: language_model, train: books.txt}\nmodel: gpt-mini\ntokenizer: {train: 8000}",
    "train": "train:\n  lr: 5e-5\n  epochs: 3\n  batch_size: 32\n  max_length: auto\n  warmup: 0.1",
    "arms": "arms:\n  baseline: {lr: 2e-5}\n  oelm-freeze: {lr: 2e-5}                      # a named arm\n"
    "  mine: {lr: 2e-5, methods: [fgm, {focal: {gamma: 2}}]}\n  bag-of-words: {learner: tfidf}",
    "tune": "tune:\n  space: {lr: {low: 1e-5, high: 1e-3, log: true}, batch_size: [16, 32]}\n  trials: 8\n  seeds: 2\n"
    "  budget: {epochs: 1}",
    "compare": "compare: {to: baseline, margin: 1.5%, also: [roc_auc]}",
    "claims": "arms:\n  baseline: {}\n  focal: {methods: [focal]}\n"
    "claims:\n  - {arm: focal, better_than: baseline, by: 0.5%}\n  - {arm: focal, faster: 1.3x}\n"
    "  - {arm: focal, as_good_as: baseline, within: 1 points}",
    "execution": "execution: {devices: cpu, workers: 2, checkpoint_every: 10min}",
    "track": "track:\n  tensorboard: {folder: tb}\n  wandb: {project: my-project, offline: true}",
    "time": "time: {minutes: 5, precision: 2%}",
}
"""What a section looks like."""


def study_page() -> str:
    """The reference of study files."""
    docs, methods = field_docs(), method_names()
    fields = [doc for doc in docs if doc.path.partition(".")[0] not in methods]
    alone = [doc for doc in fields if "." not in doc.path and doc.path not in SECTIONS]
    lines = [
        "# A study file",
        "",
        MADE,
        "",
        STUDY_INTRODUCTION,
        "",
        *fenced(STUDY.splitlines(), "yaml"),
        "",
        "## The study itself",
        "",
        *_fields(alone),
    ]
    for section, example in SECTIONS.items():
        own = [doc for doc in fields if doc.path.partition(".")[0] == section]
        lines += ["", f"## {section}", "", own[0].help, "", *fenced(example.splitlines(), "yaml"), "", *_fields(own)]
    lines += [
        "",
        "## Methods",
        "",
        "What an arm can list under `methods`: a name alone, or a name with settings. `fairtune methods` shows them with the named "
        "arms that use them.",
    ]
    for name in methods:
        first, *settings = [doc for doc in docs if doc.path.partition(".")[0] == name]
        written = first.example or f"methods: [{name}]"
        example = ["arms:", "  baseline: {}", f"  mine: {{{written}}}"]
        lines += [
            "",
            f"### {name}",
            "",
            first.help,
            "",
            *fenced(example, "yaml"),
            *([""] if settings else []),
            *_fields(settings),
        ]
    return "\n".join(lines) + "\n"


def _fields(docs: Sequence[FieldDoc]) -> Iterator[str]:
    if docs:
        yield from table(("field", "allowed", "default", "what it is"), [_field(doc) for doc in docs])


def _field(doc: FieldDoc) -> tuple[str, str, str, str]:
    allowed = doc.allowed
    if len(allowed) > LONGEST:
        allowed = f"{', '.join(sorted(allowed.split(', '))[:4])} ...: `fairtune help study {doc.path}` lists all"
    default = doc.default if doc.default in ("", "required") else code(doc.default)
    example = f" Example: {code(doc.example)}" if doc.example else ""
    return _cell(code(doc.path)), _cell(allowed or "a section"), _cell(default), _cell(f"{doc.help}{example}")


def cli_page() -> str:
    """The reference of the command line."""
    root: Any = typer.main.get_command(app)
    groups = list(dict.fromkeys(verb.group for verb in Verbs.verbs))
    lines = [
        "# The command line",
        "",
        MADE,
        "",
        CLI_INTRODUCTION,
    ]
    for group in groups:
        lines += ["", f"## {group}"]
        for verb in Verbs.verbs:
            if verb.group == group:
                lines += _verb(root.commands[verb.name], f"fairtune {verb.name}")
    return "\n".join(lines) + "\n"


def _verb(command: Any, words: str) -> Iterable[str]:
    page = command.page(words)
    below = getattr(command, "commands", {})
    yield from ("", f"### {words.removeprefix('fairtune ')}", "", " ".join([page.summary, *page.more]), "")
    if below:
        yield f"Verbs below it: {', '.join(code(f'{words} {name}') for name in below)}."
        for name in below:
            yield from _verb(below[name], f"{words} {name}")
        return
    yield from fenced([page.usage, page.example])
    yield ""
    entries = [entry for heading in page.lists for entry in page.lists[heading] if "--help" not in entry.values]
    yield from table(("", ""), [(_cell(code(entry.name)), _cell(entry.help)) for entry in entries])
    if page.ending:
        yield from ("", page.ending)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


PAGES = {"study-file.md": study_page, "cli.md": cli_page}


def main() -> None:
    """Write both pages, or with --check say which would change."""
    for name, make in PAGES.items():
        file, text = DOCS / name, make()
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        if "--check" in sys.argv:
            sys.exit(f"{file} is out of date; `make docs` writes it")
        file.write_text(text, encoding="utf-8")
        print(f"wrote {file}")


if __name__ == "__main__":
    main()
