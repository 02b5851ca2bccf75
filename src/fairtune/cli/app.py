"""The `fairtune` command, put together from its verbs. Nothing that `--help` needs imports torch."""

from __future__ import annotations

import typer

from fairtune.cli import (
    export,
    inspect,
    methods,
    plan,
    predict,
    report,
    run,
    schema,
    som,
    status,
    tasks,
    time,
    train,
    validate,
    verdict,
    verify,
)
from fairtune.cli.command import Verbs
from fairtune.cli.data import data
from fairtune.core.plugins import PluginError
from fairtune.core.version import __version__
from fairtune.study.fields import field_docs

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


def study_fields_help() -> str:
    """The fields of a study file, for the help of the verbs that read one."""
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


_FIELDS = study_fields_help()
app.command("validate", epilog=_FIELDS)(validate.validate)
app.command("plan", epilog=_FIELDS)(plan.plan)
app.command("run", epilog=_FIELDS)(run.run)
app.command("time", epilog=_FIELDS)(time.time)
app.command("status")(status.status)
app.command("report")(report.report)
app.command("verdict")(verdict.verdict)
app.command("verify")(verify.verify)
app.command("schema")(schema.schema)
app.command("inspect")(inspect.inspect)
app.command("export")(export.export)
app.command("restore")(export.restore)
app.command("som")(som.som)
app.command("train")(train.train)
app.command("predict")(predict.predict)
app.command("methods")(methods.methods)
app.command("tasks")(tasks.tasks)
app.add_typer(data)
