"""`fairtune train`: from a file of texts and labels to a classifier in a folder."""

from __future__ import annotations

import functools
import itertools
import re
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fairtune.cli.command import (
    INTERRUPTED,
    AsJson,
    print_json,
    print_note,
    report_errors,
)
from fairtune.core.errors import DataError, FairtuneError, nearest, one_of
from fairtune.core.machine import wait_asleep
from fairtune.core.stages import stage
from fairtune.monitor.stage_view import show_stages
from fairtune.tasks.reading.columns import check_columns
from fairtune.tasks.reading.files import require_file, shards
from fairtune.tasks.reading.labels import some_rows
from fairtune.tasks.reading.reader import RowReader, form_note

if TYPE_CHECKING:
    from fairtune.classifier.labelled import Labelled
    from fairtune.classifier.text_classifier import TextClassifier

QUICK = "linear-probe"
OWN = ("lr", "epochs", "batch_size", "max_length", "patience")
"""Fields of `train` that are options of their own."""

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="CSV, TSV, JSONL or Parquet, also .gz, or a folder of such files.", show_default=False
    ),
]
Out = Annotated[
    Path,
    typer.Option("-o", "--out", metavar="DIR", help="Its folder, replaced if it is there.", show_default=False),
]
Model = Annotated[str, typer.Option("--model", metavar="MODEL", help="minilm, a folder or a hub id.")]
Text = Annotated[str, typer.Option("--text", metavar="COLUMN", help="The column with the texts.")]
Pair = Annotated[
    str | None,
    typer.Option("--pair", metavar="COLUMN", help="The column with the second text of a pair.", show_default=False),
]
Label = Annotated[str, typer.Option("--label", metavar="COLUMN", help="The column with the labels.")]
Test = Annotated[
    Path | None,
    typer.Option(
        "--test",
        metavar="FILE",
        help="Rows to score it on, with the same columns.",
        show_default=False,
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels", metavar="A,B,...", help="All classes, where one is called NA or the like.",
        show_default=False,
    ),
]  # fmt: skip
SkipUnlabelled = Annotated[
    bool, typer.Option("--skip-unlabelled", help="Leave out rows without a label: empty, NaN, NA ...")
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", show_default=False,
        help="Such as windows-1252; UTF-8 or its mark if absent.",
    ),
]  # fmt: skip
Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method", metavar="METHOD",
        help="A method, as 'focal={gamma: 2}'; may be repeated.",
    ),
]  # fmt: skip
Epochs = Annotated[
    float | None,
    typer.Option(metavar="N", help="Passes over the training rows, at most; 5 if absent.", show_default=False),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--lr", metavar="RATE", help="Learning rate; auto, by the model's size, if absent.", show_default=False
    ),
]
BatchSize = Annotated[int | None, typer.Option(metavar="N", help="Rows in one step; 16 if absent.", show_default=False)]
MaxLength = Annotated[
    str | None,
    typer.Option(metavar="TOKENS", help="Longer texts are cut; auto, for 95 %, if absent.", show_default=False),
]
Validation = Annotated[
    str | None,
    typer.Option(
        metavar="SHARE|FILE", help="What chooses the epoch; 0.1 if absent, 0 is none.",
        show_default=False,
    ),
]  # fmt: skip
Patience = Annotated[
    int | None,
    typer.Option(metavar="N", min=0, help="Epochs without a better score; 3 if absent, 0 never.", show_default=False),
]
Metric = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="What is better, such as accuracy; macro_f1 if absent.",
        show_default=False,
    ),
]
Quick = Annotated[
    bool,
    typer.Option(
        "--quick",
        help="In seconds: a logistic regression on a frozen model.",
    ),
]
NoBaselines = Annotated[bool, typer.Option("--no-baselines", help="Leave out majority, tfidf and linear-probe.")]
Seed = Annotated[
    int | None, typer.Option(metavar="N", help="Decides everything random; 0 if absent.", show_default=False)
]
Calibrate = Annotated[bool, typer.Option("--calibrate", help="Make probabilities mean what they say.")]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="auto, cpu, mps, cuda or cuda:1.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any field of `fairtune help study train`; repeatable."),
]


@report_errors
@show_stages()
def train(
    data: Data,
    out: Out,
    model: Model = "minilm",
    text: Text = "text",
    pair: Pair = None,
    label: Label = "label",
    labels: Labels = None,
    skip_unlabelled: SkipUnlabelled = False,
    encoding: Encoding = None,
    test: Test = None,
    method: Methods = None,
    epochs: Epochs = None,
    lr: Rate = None,
    batch_size: BatchSize = None,
    max_length: MaxLength = None,
    validation: Validation = None,
    patience: Patience = None,
    metric: Metric = None,
    seed: Seed = None,
    calibrate: Calibrate = False,
    device: Device = "auto",
    settings: Settings = None,
    quick: Quick = False,
    no_baselines: NoBaselines = False,
    as_json: AsJson = False,
) -> None:
    """Train a classifier of texts and save it as a folder, with its model card.

    The folder loads in `fairtune predict`, `TextClassifier.load` and transformers. Ctrl-C saves the best so far.
    """
    wait_asleep()  # before anything imports torch
    texts = [text] if pair is None else [text, pair]
    files = [data, test, None if validation is None or _number(validation) is not None else Path(validation)]
    with stage(f"reading {data.name}"):
        for file in filter(None, files):
            _check_header(file, [*texts, label], encoding)

    if quick:
        _require_quick(
            {"--method": method, "--epochs": epochs, "--lr": lr, "--batch-size": batch_size, "--patience": patience,
             "--set": settings}
        )  # fmt: skip
    from fairtune.cli.options import read_methods
    from fairtune.models.sources import check_model

    check_model(model)  # before seconds of imports
    methods = [use.as_json() for use in read_methods([_as_yaml(option) for option in method or []])]
    fields = _fields(settings or [])
    if patience is not None:
        fields["patience"] = patience or None
    given = {
        "epochs": epochs, "lr": lr, "batch_size": batch_size, "metric": metric, "seed": seed,
        "max_length": int(max_length) if max_length and re.fullmatch(r"[0-9]{1,9}", max_length) else max_length,
    }  # fmt: skip
    chosen = {
        **fields, **{name: value for name, value in given.items() if value is not None}, "model": model, "methods": methods,
        "calibrate": calibrate, "device": device, **({"head": QUICK} if quick else {}),
    }  # fmt: skip

    with stage("loading the libraries that train"):
        from fairtune.classifier.labelled import read_labelled
        from fairtune.classifier.model_folder import require_free
        from fairtune.classifier.text_classifier import TextClassifier  # noqa: F401 - torch: seconds, told of here
        from fairtune.cli.train_summary import facts_of, show_summary

    require_free(out.expanduser().resolve())  # before the work, not after it
    listed = [name.strip() for name in (labels or "").split(",") if name.strip()]
    read = functools.partial(
        read_labelled,
        texts=texts,
        label=label,
        skip_unlabelled=skip_unlabelled,
        classes=listed,
        encoding=encoding,
    )
    rows = _told(read(data))
    _require_listed(rows, listed)
    tested = None if test is None else _told(read(test)).with_labels_of(rows)
    if validation is not None:
        share = _number(validation)
        held = None if share is not None else _told(read(Path(validation))).with_labels_of(rows)
        chosen["validation"] = share if held is None else (held.texts, held.labels)
    classifier, notes, seconds = _fitted(chosen, rows)
    place = classifier.save(out)
    facts = facts_of(classifier, rows, tested, place, seconds, notes)
    if tested is not None:  # scored after it was saved, so that nothing is lost; now the card tells of it, too
        figures = {"data": tested.where.name, "figures": facts["test"], "notes": facts["test_notes"]}
        classifier._provenance = replace(classifier._provenance, test=figures)
    if not no_baselines and not classifier.partial_:
        facts["baselines"] = _baselines(classifier, rows, tested)
        classifier._provenance = replace(classifier._provenance, baselines=facts["baselines"])
    if tested is not None or facts["baselines"] is not None:
        classifier.save(out)
    if as_json:
        print_json(facts)
    else:
        show_summary(facts)
    if classifier.partial_:
        print_note("fairtune: stopped. The best so far is saved; its card and its signature say `partial`.")
        raise typer.Exit(INTERRUPTED)


def _check_header(path: Path, columns: Sequence[str], encoding: str | None) -> None:
    """Refuse a file that lacks a column, before seconds go into importing what would train on it.

    Raises:
        DataError: it is not there, its first rows cannot be read, or they lack a column.
    """
    require_file(path)
    for file in shards(path)[:1]:  # each is read in a moment, all of them by those who need their rows
        reader = RowReader(str(file), encoding=encoding)
        for rows in itertools.islice(reader, 1):
            check_columns(rows.where, rows.columns, columns)
        if note := form_note(reader):
            print_note(note)


def _told(rows: Labelled) -> Labelled:
    """The rows, after it was said which were left out."""
    if rows.without:
        count, places = len(rows.without), some_rows(rows.without)
        print_note(
            f"{rows.where.name}: {count:,} of {count + len(rows):,} rows have no label and are left out (rows {places})."
        )
    return rows


def _require_listed(rows: Labelled, listed: Sequence[str]) -> None:
    """Refuse a label that `--labels` does not list.

    Raises:
        DataError: there is one.
    """
    for name, count in rows.counts().items():
        if listed and name not in listed:
            raise DataError(
                f"{rows.where}: the label '{name}' occurs {count:,} times but is not among --labels: {one_of(listed)}."
                f"{nearest(name, listed)}"
            )


def _fitted(parameters: dict[str, Any], rows: Labelled) -> tuple[TextClassifier, list[str], float]:
    """A classifier, also where Ctrl-C ended its training; what there is to know of it; and the seconds that it took."""
    from fairtune.classifier.text_classifier import TextClassifier
    from fairtune.study.problems import Problem, StudyError

    classifier = TextClassifier(**parameters)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            classifier.fit(rows.texts, rows.labels)
        except StudyError as error:
            problems = [Problem("fairtune train", problem.path, problem.message) for problem in error.problems]
            raise StudyError(problems) from None
        except KeyboardInterrupt:
            if not hasattr(classifier, "predictor_"):
                print_note("\nfairtune: stopped before anything was learned, so nothing was saved.")
                raise typer.Exit(INTERRUPTED) from None
            print_note("\nfairtune: stopping: saving the best so far.")
    notes = [str(warning.message) for warning in caught if issubclass(warning.category, UserWarning)]
    return classifier, list(dict.fromkeys(notes)), time.perf_counter() - began


def _require_quick(options: dict[str, Any]) -> None:
    """Refuse options of a training that does not take place.

    Raises:
        FairtuneError: there is one.
    """
    for name, value in options.items():
        if value not in (None, []):
            raise FairtuneError(
                f"{name}: --quick leaves the model as it is, so there is no training to set; remove one."
            )


def _baselines(classifier: TextClassifier, rows: Labelled, tested: Labelled | None) -> dict[str, Any] | None:
    """What simple learners reach; the classifier is saved already, so that what goes wrong here costs nothing."""
    from fairtune.classifier.baselines import baselines_of

    print_note("Fitting simple baselines to compare it with; `--no-baselines` skips that.")
    test = None if tested is None else (tested.where.name, tested.texts, tested.labels)
    try:
        return baselines_of(classifier, rows.texts, rows.labels, test)
    except (FairtuneError, ValueError) as error:
        print_note(f"No baselines: {error}")
    except KeyboardInterrupt:
        print_note("No baselines: stopped. The classifier is saved.")
    return None


def _as_yaml(option: str) -> str:
    """`focal={gamma: 2}` as a study file has it."""
    found = re.fullmatch(r"\s*(\w+)\s*=\s*(.+)", option, re.DOTALL)
    return f"{found[1]}: {found[2]}" if found else option


def _fields(settings: Sequence[str]) -> dict[str, Any]:
    """Fields of `train`: those that the classifier has parameters for, and the others together.

    Raises:
        FairtuneError: one is not KEY=VALUE.
    """
    from fairtune.study.yaml_tree import YamlProblem, parse_yaml

    found: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        key = key.strip().removeprefix("train.")
        if not equals or not key:
            raise FairtuneError(f"--set {setting}: write KEY=VALUE, such as warmup=0.06.")
        try:
            (found if key in OWN else others)[key] = parse_yaml(value).data
        except YamlProblem as problem:
            raise FairtuneError(f"--set {setting}: not valid YAML: {problem.message}") from None
    return {**found, "train": others} if others else found


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
