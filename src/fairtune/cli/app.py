"""The `fairtune` command: a line for each verb, which is loaded when it is called."""

from __future__ import annotations

import typer

from fairtune.cli.verbs import Verb, VerbGroup
from fairtune.core.version import __version__


def study_fields_help() -> str:
    """The fields of a study file, for the help of the verbs that read one."""
    from fairtune.core.plugins import PluginError
    from fairtune.study.fields import field_docs

    lines = ["Fields of a study file, also for --set:"]
    try:
        docs = field_docs()
    except PluginError as error:  # the verbs that need methods refuse it; the others go on
        return str(error)
    for doc in docs:
        default = doc.default if doc.default in ("", "required") else f"default {doc.default}"
        facts = "; ".join(part for part in (doc.allowed, default) if part)
        lines.append(f"{doc.path.strip()}: {doc.help}{f' ({facts})' if facts else ''}")
    return "\n\n".join(line.replace("[", r"\[") for line in lines)


class Verbs(VerbGroup):
    """One line per verb, in the order of `fairtune --help`."""

    package = "fairtune.cli"
    verbs = (
        Verb(
            "validate", "Check a study file, with each of its profiles; all problems at once.", epilog=study_fields_help
        ),
        Verb(
            "plan",
            "Show the runs of a study without running them, and what they will be able to show.",
            epilog=study_fields_help,
        ),
        Verb(
            "run",
            "Run a study. Finished runs are kept, interrupted ones go on; Ctrl-C saves and stops.",
            epilog=study_fields_help,
        ),
        Verb(
            "time",
            "Time the arms of a study against each other, in turns in one process, with an A/A; nothing has to be trained before.",
            epilog=study_fields_help,
        ),
        Verb("status", "Show how far a study is, or all of them."),
        Verb("report", "Write a study's report (HTML, Markdown, JSON) and show its table."),
        Verb(
            "verdict",
            "Say what a study supports: what was planned and changed, what to mind, and a finding for every arm.",
        ),
        Verb("compare", "Put studies side by side (HTML, Markdown, JSON), or two runs: what differs, and by how much."),
        Verb("verify", "Read everything on record from end to end and say what is sound."),
        Verb("schema", "Print the JSON schema of a study file, for editors and checkers."),
        Verb(
            "inspect",
            "Show a model's card before any training: parameters, costs, attention, and what differs from the checkpoint.",
        ),
        Verb("export", "Export a finished run's model: a copy of it, or with --delta only what training changed."),
        Verb(
            "restore",
            "Rebuild the whole model of a delta, and prove that each tensor is the run's, bit for bit.",
            home="export:restore",
        ),
        Verb("som", "Draw the maps that a run with bpsom recorded (PNG, GIF and one page) and show their figures."),
        Verb("train", "Train a classifier of texts and save it as a folder, with its model card."),
        Verb(
            "predict",
            "Predict every row of a file or a stream; its columns are kept, `predicted` and `confidence` are added.",
        ),
        Verb("methods", "Show the methods and the named arms, or everything about one of them."),
        Verb(
            "tasks",
            "Show the tasks by name: size, metric, licence, where the data would come from here, and what is missing.",
        ),
        Verb("data", "Look at a task's data before anything is trained, or make some."),
    )


app = typer.Typer(
    name="fairtune",
    cls=Verbs,
    help="Fair trials of transformer training methods.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fairtune {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Show the version."),
) -> None:
    """Fair trials of transformer training methods."""
