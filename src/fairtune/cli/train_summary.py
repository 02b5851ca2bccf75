"""What `fairtune train` says at the end: data, scores with their intervals, the worst mistakes, and how to go on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from fairtune.analysis.scales import Scale, scale_of
from fairtune.cli.command import console
from fairtune.core.printable import printable, with_printable_texts
from fairtune.settings.metrics import METRICS, metrics_of_kind

if TYPE_CHECKING:
    from fairtune.classifier.evaluation import Mistakes
    from fairtune.classifier.labelled import Labelled
    from fairtune.classifier.text_classifier import TextClassifier

MOST_CLASSES, MOST_MISTAKES, SHOWN = 12, 5, 60


def facts_of(
    classifier: TextClassifier, rows: Labelled, tested: Labelled | None, place: Path, seconds: float, notes: list[str]
) -> dict[str, Any]:
    """Everything that is reported, as plain data."""
    provenance = classifier._provenance
    found = None if tested is None else classifier.errors(tested.texts, tested.labels)
    leak = _leak(rows, tested)
    counts = {**provenance.data["counts"], **({} if tested is None else {"test": dict(tested.counts())})}
    return {
        "folder": str(place),
        "model": provenance.settings["model"]["name"],
        "methods": provenance.settings["methods"],
        "head": provenance.settings.get("learner", {}).get("name"),
        "data": str(rows.where),
        "classes": [str(one) for one in classifier.classes_],
        "counts": counts,
        "held_out": provenance.data["held_out"],
        "max_length": provenance.max_length,
        "metric": provenance.settings["metric"],
        "epoch": provenance.epoch,
        "step": provenance.step,
        "steps": provenance.steps,
        "partial": provenance.partial,
        "validation": provenance.validation,
        "temperature": provenance.temperature,
        "test_data": None if tested is None else str(tested.where),
        "test": None if found is None else found.overall.reset_index().to_dict("records"),
        "mistakes": [] if found is None else _mistakes(found),
        "seconds": seconds,
        "device": str(classifier.predictor_.device),
        "notes": list(dict.fromkeys(map(printable, [*notes, *provenance.notes, *leak]))),
        "test_notes": leak,
        "baselines": None,
        "signature": provenance.signature,
        "predict": f"fairtune predict {shlex.quote(str(place))} FILE -o OUT",
    }


def _leak(rows: Labelled, tested: Labelled | None) -> list[str]:
    shared = 0 if tested is None else tested.shared(rows)
    return [f"{shared:,} of the test texts are training texts too, so the test figures flatter it."] if shared else []


def _mistakes(found: Mistakes) -> list[dict[str, Any]]:
    names = [name for name in ("text", "pair", "label", "predicted", "confidence") if name in found.columns]
    worst = found[names].head(MOST_MISTAKES)
    rows = worst.index.tolist()
    values: list[dict[str, Any]] = [dict(zip(names, row, strict=True)) for row in worst.itertuples(index=False)]
    return [{"row": row + 1, **own} for row, own in zip(rows, values, strict=True)]


def show_summary(facts: dict[str, Any]) -> None:
    out, facts = console(), with_printable_texts(facts)
    methods = [name for use in facts["methods"] for name in use]
    model = " + ".join([facts["model"], *methods, *([facts["head"]] if facts["head"] else [])])
    out.print(
        Text.assemble(
            (facts["folder"], "bold"), ("  partial" if facts["partial"] else "", "yellow"), "  ", (model, "dim")
        )
    )
    out.print()
    out.print(_classes(facts))
    out.print()
    scored = {name: facts[name] for name in ("validation", "test") if facts[name] is not None}
    if scored:
        out.print(_figures(scored, facts["classes"]))
        out.print()
    if facts["baselines"] is not None:
        out.print(_baselines(facts["baselines"]))
        out.print(Text(facts["baselines"]["sentence"]))
        out.print()
    for name, value in _lines(facts).items():
        out.print(Text.assemble((f"{name:<12}", "dim"), value), soft_wrap=True)
    if facts["mistakes"]:
        out.print()
        out.print(Text(f"Its most confident mistakes on {facts['test_data']}:"))
        out.print(_mistake_table(facts))
    out.print()
    out.print(Text.assemble("Saved; README.md is its card. Predict with: ", (facts["predict"], "cyan")), soft_wrap=True)


def _classes(facts: dict[str, Any]) -> Table:
    splits = list(facts["counts"])
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("class", no_wrap=True, overflow="ellipsis")
    for split in splits:
        table.add_column(split, justify="right")
    for name in facts["classes"][:MOST_CLASSES]:
        table.add_row(Text(name), *(f"{facts['counts'][split].get(name, 0):,}" for split in splits))
    rest = facts["classes"][MOST_CLASSES:]
    if rest:
        sums = [sum(facts["counts"][split].get(name, 0) for name in rest) for split in splits]
        table.add_row(Text(f"{len(rest)} others", style="dim"), *(f"{number:,}" for number in sums))
    totals = [f"{sum(facts['counts'][split].values()):,}" for split in splits]
    table.add_row(Text("all", style="dim"), *(Text(total, style="dim") for total in totals))
    return table


def _lines(facts: dict[str, Any]) -> dict[str, str]:
    kept = f"epoch {facts['epoch']} (step {facts['step']:,} of {facts['steps']:,})"
    lines = {"data": f"{facts['data']}; validation: {facts['held_out']}"}
    if facts["head"]:
        title = scale_of(facts["metric"]).title
        lines["kept"] = f"the strength that is best by {title} on validation, which flatters it a little there"
    elif facts["validation"] is None:
        lines["validation"] = f"none, so the last weights are kept: {kept}"
    else:
        title = scale_of(facts["metric"]).title
        lines["kept"] = f"{kept}, the best by {title} on validation, which flatters it a little there"
    if facts["temperature"] != 1.0:
        lines["calibrated"] = f"temperature {facts['temperature']:.3f}"
    lines["time"] = f"{facts['seconds']:.1f} s on {facts['device']}; texts of at most {facts['max_length']} tokens"
    notes = [*facts["notes"], *(facts["baselines"] or {"notes": []})["notes"]]
    lines |= {f"note {number}": note for number, note in enumerate(notes, start=1)}
    lines["signature"] = facts["signature"]
    return lines


def _figures(scored: dict[str, list[dict[str, Any]]], classes: list[str]) -> Table:
    """One row per figure of merit, one column per split."""
    table = Table(box=None, padding=(0, 3, 0, 0))
    table.add_column("95 % intervals", no_wrap=True)
    for split, figures in scored.items():
        table.add_column(f"{split}, n = {figures[0]['n']:,}", no_wrap=True)
    for name in metrics_of_kind("classify"):
        cells = [figure for figures in scored.values() for figure in figures if figure["metric"] == name]
        if cells:
            table.add_row(Text(_title(name, classes)), *(Text(_with_interval(figure)) for figure in cells))
    return table


def _baselines(found: dict[str, Any]) -> Table:
    """The classifier and simple learners on the same rows."""
    scale = scale_of(found["metric"])
    table = Table(box=None, padding=(0, 3, 0, 0))
    table.add_column(f"{found['data']}, n = {found['n']:,}", no_wrap=True)
    for head in (scale.heading, "accuracy (%)", "it is ahead by"):
        table.add_column(head, no_wrap=True)
    for row in found["rows"]:
        value = Text("-") if row["value"] is None else Text(_with_interval({"metric": found["metric"], **row}))
        ahead = "" if row["gain"] is None else f"{scale.signed(row['gain'])} [{_ends(scale, row)}]"
        table.add_row(Text(row["name"]), value, Text(f"{100 * row['accuracy']:.2f}"), Text(ahead))
    return table


def _ends(scale: Scale, row: dict[str, Any]) -> str:
    return ", ".join(scale.signed(row[end]) for end in ("gain_low", "gain_high"))


def figure_text(figure: dict[str, Any], classes: list[Any]) -> str:
    """A figure of merit with its interval: `accuracy 91.20 [88.05, 93.61]`."""
    return f"{_title(figure['metric'], classes)} {_with_interval(figure)}"


def _title(metric: str, classes: list[Any]) -> str:
    title = scale_of(metric).title
    named = METRICS[metric].classes == "two classes" or (metric == "average_precision" and len(classes) == 2)
    return f"{title} of {classes[1]}" if named else title


def _with_interval(figure: dict[str, Any]) -> str:
    value = scale_of(figure["metric"]).value
    return f"{value(figure['value'])} [{value(figure['low'])}, {value(figure['high'])}]"


def _mistake_table(facts: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("row", "label", "predicted", "confidence"):
        table.add_column(name, no_wrap=True, justify="right" if name in ("row", "confidence") else "left")
    table.add_column("text", no_wrap=True, overflow="ellipsis")
    for one in facts["mistakes"]:
        text = " | ".join(" ".join(one[part].split()) for part in ("text", "pair") if part in one)
        cells = [str(one["row"]), str(one["label"]), str(one["predicted"]), f"{100 * one['confidence']:.1f} %"]
        table.add_row(*map(Text, cells), Text(text[:SHOWN] + ("…" if len(text) > SHOWN else ""), style="dim"))
    return table
