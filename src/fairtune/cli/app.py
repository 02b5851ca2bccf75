"""The `fairtune` command: a line for each verb, which is loaded when it is called."""

from __future__ import annotations

from pathlib import Path

import typer

from fairtune.cli.verbs import Verb, VerbGroup
from fairtune.core import __version__

FIRST, RUN, READ, MODELS = "First steps", "Running a study", "Reading results", "Models and data"
DEMO = "studies/movie-reviews.yaml"
FIELDS = "`fairtune help study` explains every field of a study file, also for --set."
WELCOME = """\
fairtune: fair trials of transformer training methods. Three ways in:

  {demo}
      Try it: a small study with its controls, trained and reported in minutes.

  fairtune init my.csv
      Your own data: looks at the file and writes a study for it, ready to run.

  fairtune train my.csv --text TEXT --label LABEL -o my-model
      A classifier rather than a study; `fairtune predict` then answers with it.

`fairtune --help` lists all verbs, `fairtune VERB --help` explains one, and
`fairtune help study` every field of a study file."""
DEMO_HERE = f"fairtune run {DEMO} --profile demo"
DEMO_ELSEWHERE = "fairtune init movie-reviews && fairtune run movie-reviews.yaml --profile quick"
"""Where the repository's studies are not at hand."""


class Verbs(VerbGroup):
    """One line per verb, in the order of `fairtune --help`."""

    package = "fairtune.cli"
    example = f"fairtune run {DEMO} --profile demo"
    see = "`fairtune help study` explains study files."
    verbs = (
        Verb(
            "init",
            "Look at a file of texts and labels and write a study for it.",
            "fairtune init reviews.csv --text review --label stars",
            group=FIRST,
            see="`fairtune help study` explains every field of a study file.",
        ),
        Verb(
            "tasks",
            "Show the tasks by name: size, metric, licence, where the data would come from here, and what is missing.",
            "fairtune tasks sst2",
            short="Show the tasks by name, and where their data would come from.",
            group=FIRST,
        ),
        Verb(
            "methods",
            "Show the methods and the named arms, or everything about one of them.",
            "fairtune methods focal",
            group=FIRST,
        ),
        Verb(
            "help",
            "Explain a verb, or a field of a study file.",
            "fairtune help study train.epochs",
            home="help:show_help",
            group=FIRST,
        ),
        Verb(
            "validate",
            "Check a study or suite file with its profiles; all problems at once.",
            f"fairtune validate {DEMO}",
            group=RUN,
            see=FIELDS,
        ),
        Verb(
            "plan",
            "Show the runs of a study without running them, and what they will be able to show.",
            f"fairtune plan {DEMO} --profile demo",
            short="Show the runs of a study without running them.",
            group=RUN,
            see=FIELDS,
        ),
        Verb(
            "run",
            "Run a study. Finished runs are kept, interrupted ones go on; Ctrl-C saves and stops.",
            f"fairtune run {DEMO} --profile demo",
            short="Run a study; Ctrl-C saves, the same command goes on.",
            group=RUN,
            see=FIELDS,
        ),
        Verb(
            "suite",
            "Run several studies of the same arms in turn, then give one verdict per arm over tasks (HTML, Markdown, JSON).",
            "fairtune suite suites/oelm.yaml --profile laptop",
            short="Run studies of the same arms: one verdict over tasks.",
            group=RUN,
            see="docs/suites.md explains suite files.",
        ),
        Verb(
            "time",
            "Time the arms of a study against each other, in turns in one process, with an A/A; nothing has to be trained before.",
            f"fairtune time {DEMO} --profile demo --minutes 2",
            short="Time the arms of a study against each other.",
            group=RUN,
            see=FIELDS,
        ),
        Verb("status", "Show how far a study is, or all of them.", "fairtune status movie-reviews-demo", group=RUN),
        Verb(
            "watch",
            "Watch a study in the terminal: arms with n and intervals, runs under way, devices, failures, time left.",
            "fairtune watch movie-reviews-demo",
            short="Watch a study in the terminal while it runs.",
            group=RUN,
            see="`fairtune dash` shows it in the browser.",
        ),
        Verb(
            "dash",
            "Show studies in the browser while they run, and after.",
            "fairtune dash movie-reviews-demo",
            group=RUN,
            see="`fairtune watch` shows them in the terminal.",
        ),
        Verb(
            "track",
            "Send a study to TensorBoard, MLflow, W&B or trackio: one row per arm, its runs below; again for what is new.",
            "fairtune track movie-reviews-demo --to tensorboard",
            short="Send a study to TensorBoard, MLflow, W&B or trackio.",
            group=RUN,
        ),
        Verb(
            "report",
            "Write a study's report (HTML, Markdown, JSON) and show its table.",
            "fairtune report movie-reviews-demo",
            group=READ,
        ),
        Verb(
            "verdict",
            "Say what a study supports: what was planned and changed, what to mind, and a finding for every arm.",
            "fairtune verdict movie-reviews-demo",
            short="Say what a study supports, arm by arm.",
            group=READ,
        ),
        Verb(
            "compare",
            "Put studies side by side (HTML, Markdown, JSON), or two runs: what differs, and by how much.",
            "fairtune compare movie-reviews-demo elsewhere/movie-reviews-demo",
            short="Put studies side by side, or two runs.",
            group=READ,
        ),
        Verb(
            "claims",
            "Answer published claims from the runs on record: supported, contradicted, not separable, implausible, or not yet run.",
            "fairtune claims --only oelm",
            short="Answer published claims from the runs on record.",
            group=READ,
        ),
        Verb(
            "check",
            "Say what test set and seeds alone allow to say about two printed figures, and which of them cannot be.",
            "fairtune check '93.12 vs 91.28' --n 872 --seeds 1",
            short="Check printed figures: what luck alone would give.",
            group=READ,
        ),
        Verb(
            "verify", "Read everything on record from end to end and say what is sound.", "fairtune verify", group=READ
        ),
        Verb(
            "som",
            "Draw the maps that a run with bpsom recorded (PNG, GIF and one page) and show their figures.",
            "fairtune som bpsom-sst2/bpsom/seed-0 -o maps",
            short="Draw the maps of a run with bpsom.",
            group=READ,
        ),
        Verb(
            "train",
            "Train a classifier of texts and save it as a folder, with its model card.",
            "fairtune train reviews.csv --text review --label stars -o my-model",
            short="Train a classifier of texts and save it as a folder.",
            group=MODELS,
        ),
        Verb(
            "predict",
            "Predict every row of a file or a stream; its columns are kept, `predicted` and `confidence` are added.",
            "fairtune predict my-model more.csv -o answers.csv",
            short="Predict every row of a file or a stream.",
            group=MODELS,
        ),
        Verb(
            "inspect",
            "Show a model's card before any training: parameters, costs, attention, and what differs from the checkpoint.",
            "fairtune inspect minilm --method oelm-freeze",
            short="Show a model's card: parameters, costs, attention.",
            group=MODELS,
        ),
        Verb(
            "export",
            "Export a finished run's model for transformers; of a PEFT arm, the adapter.",
            "fairtune export movie-reviews-demo/oelm-freeze/seed-0 my-model",
            short="Export a finished run's model, or its PEFT adapter.",
            group=MODELS,
        ),
        Verb("data", "Look at a task's data before anything is trained, or make some.", group=MODELS),
        Verb(
            "schema",
            "Print the JSON schema of a study file, for editors and checkers.",
            "fairtune schema > fairtune-study.schema.json",
            group=MODELS,
        ),
    )


app = typer.Typer(
    name="fairtune",
    cls=Verbs,
    help="Fair trials of transformer training methods.",
    invoke_without_command=True,
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
    context: typer.Context,
    version: bool = typer.Option(  # noqa: ARG001 - answered before anything else
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Fair trials of transformer training methods."""
    if context.invoked_subcommand is None:
        typer.echo(WELCOME.format(demo=DEMO_HERE if Path(DEMO).is_file() else DEMO_ELSEWHERE))
