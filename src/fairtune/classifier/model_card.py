"""The model card: a README.md that says what a classifier was made of, how well it does and how surely that is known."""

from __future__ import annotations

import json
from typing import Any

import yaml

from fairtune.analysis.scales import Scale, scale_of
from fairtune.classifier.provenance import Provenance
from fairtune.core.markdown import (
    code,
    fenced,
    items,
    plain,
    table,
)
from fairtune.core.numbers import DASH
from fairtune.core.printable import capital, printable, printable_json
from fairtune.settings.metrics import METRICS, title_of

MOST_CLASSES = 50


def model_card(provenance: Provenance, name: str) -> str:
    """The card as Markdown, with the front matter that the hub reads.

    Args:
        name: of the folder.
    """
    sections = [
        [_front_matter(provenance), "", f"# {plain(name)}", "", *_opening(provenance)],
        ["## Use", "", *_use(provenance, name)],
        ["## Data", "", *_data(provenance)],
        ["## Training", "", *_training(provenance)],
        ["## Validation", "", *_validation(provenance)],
        *([["## Test", "", *_test(provenance.test)]] if provenance.test is not None else []),
        *([["## Baselines", "", *_baselines(provenance.baselines)]] if provenance.baselines is not None else []),
        ["## Probabilities", "", *_probabilities(provenance)],
        ["## Limits", "", *items(_limits(provenance))],
        ["## Origin", "", *_origin(provenance)],
    ]
    return printable("\n\n".join("\n".join(lines) for lines in sections), keep="\n") + "\n"


def _front_matter(provenance: Provenance) -> str:
    model = provenance.settings["model"]["name"]
    fields: dict[str, Any] = {
        "library_name": "transformers",
        **({} if _is_probe(provenance) else {"pipeline_tag": "text-classification"}),  # it would draw a head of its own
        "tags": ["fairtune"],
    }
    if "/" in model:
        fields["base_model"] = printable(model.partition("@")[0])
    if provenance.validation is not None:
        names = [METRICS[row["metric"]].hub_name for row in provenance.validation if row["metric"] in METRICS]
        fields["metrics"] = list(dict.fromkeys(name for name in names if name))
    return f"---\n{yaml.safe_dump(fields, sort_keys=False, allow_unicode=True)}---"


def _opening(provenance: Provenance) -> list[str]:
    what = "pairs of texts" if provenance.width == 2 else "texts"
    labels = provenance.classes.names
    named = ", ".join(plain(label) for label in labels[:MOST_CLASSES])
    lines = [f"Tells {what} of {len(labels)} classes apart: {named}{' ...' if len(labels) > MOST_CLASSES else ''}."]
    if provenance.partial:
        lines += [
            "",
            f"**Partial: training was interrupted.** It has the weights of step {provenance.step:,}; "
            f"{provenance.steps:,} were planned.",
        ]
    return lines


def _use(provenance: Provenance, name: str) -> list[str]:
    pair = provenance.width == 2
    ours = '[("first text", "second text")]' if pair else '["a text", "another one"]'
    theirs = '{"text": "first text", "text_pair": "second text"}' if pair else '["a text", "another one"]'
    folder = printable_json(json.dumps(name, ensure_ascii=False))
    return [
        "```python",
        "from fairtune import TextClassifier",
        "",
        f"classifier = TextClassifier.load({folder})",
        f"classifier.predict_proba({ours})",
        "```",
        "",
        *(_encoder_use(provenance, folder) if _is_probe(provenance) else _plain_use(provenance, folder, theirs)),
    ]


def _is_probe(provenance: Provenance) -> bool:
    return "learner" in provenance.settings


def _encoder_use(provenance: Provenance, folder: str) -> list[str]:
    return [
        "The encoder alone loads in plain transformers; the head is in `learner.safetensors` (weights and biases, for the mean of "
        "the last states scaled to length 1):",
        "",
        "```python",
        "from transformers import AutoModel",
        "",
        f"encoder = AutoModel.from_pretrained({folder})",
        "```",
        "",
        f"Texts are cut after {provenance.max_length} tokens, as when it was fitted.",
    ]


def _plain_use(provenance: Provenance, folder: str, theirs: str) -> list[str]:
    return [
        "Or in plain transformers, with the same labels and probabilities:",
        "",
        "```python",
        "from transformers import pipeline",
        "",
        f'classifier = pipeline("text-classification", model={folder}, truncation=True)',
        f"classifier({theirs})",
        "```",
        "",
        f"Texts are cut after {provenance.max_length} tokens, as in training; `truncation=True` does that in a pipeline.",
    ]


def _data(provenance: Provenance) -> list[str]:
    counts, names = provenance.data["counts"], provenance.classes.names
    totals = {split: sum(found.values()) for split, found in counts.items()}
    shown = names[:MOST_CLASSES]
    rows = [[plain(label), *(f"{counts[split][label]:,}" for split in counts)] for label in shown]
    if len(names) > len(shown):
        rest = [f"{sum(counts[split][label] for label in names[len(shown) :]):,}" for split in counts]
        rows.append([f"{len(names) - len(shown)} more", *rest])
    rows.append(["all", *(f"{total:,}" for total in totals.values())])
    return [
        *table(["class", *map(plain, counts)], rows),
        "",
        f"Validation split: {plain(provenance.data['held_out'])}.",
        f"sha256 of labels, texts and split: {code(provenance.data['fingerprint'])}.",
    ]


def _training(provenance: Provenance) -> list[str]:
    settings = provenance.settings
    if _is_probe(provenance):
        chosen = next(row["C"] for row in provenance.history if row["best"])
        title = title_of(settings["metric"])
        return items(
            [
                f"model: {plain(settings['model']['name'])}, {code(settings['model']['identity'])}, none of it trained",
                "head: logistic regression on the mean of the last states, scaled to length 1",
                f"strength: {code(f'C: {chosen:g}')} of {len(provenance.history)}, the best of validation by {title}",
                f"seed: {settings['seed']}, which decides what is held out",
            ]
        )
    methods = [code(json.dumps(use, ensure_ascii=False)) for use in settings["methods"]] or ["none: plain fine-tuning"]
    chosen = f"the best of validation by {title_of(settings['metric'])}" if provenance.validation else "the last ones"
    train = ", ".join(code(f"{name}: {_word(value)}") for name, value in settings["train"].items() if value is not None)
    return items(
        [
            f"model: {plain(settings['model']['name'])}, {code(settings['model']['identity'])}",
            f"methods: {'; '.join(methods)}",
            f"settings: {train}",
            f"seed: {settings['seed']}",
            f"weights: of step {provenance.step:,} of {provenance.steps:,} (epoch {provenance.epoch}), {chosen}",
        ]
    )


def _validation(provenance: Provenance) -> list[str]:
    if provenance.validation is None:
        return [
            "None was measured: there was no validation split, or training was interrupted before its first evaluation."
        ]
    return [
        *_figures(provenance.validation),
        "",
        f"These examples also chose the {'strength' if _is_probe(provenance) else 'epoch'}, so the figures lean to the good side: "
        "report on examples of your own that no fit has seen. The intervals count the luck of examples, not that of the seed.",
    ]


def _test(test: dict[str, Any]) -> list[str]:
    notes = " ".join(plain(note) for note in test["notes"])
    origin = (
        f"On {plain(test['data'])}, after training. The intervals count the luck of examples, not that of the seed."
    )
    return [*_figures(test["figures"]), "", f"{origin} {notes}".strip()]


def _baselines(found: dict[str, Any]) -> list[str]:
    scale = scale_of(found["metric"])
    rows = [
        [
            plain(row["name"]), scale.value(row["value"]), f"{scale.value(row['low'])} to {scale.value(row['high'])}",
            DASH if row["gain"] is None else _gain(scale, row),
        ]
        for row in found["rows"]
    ]  # fmt: skip
    heads = ["", scale.heading, "95 % interval", "this one is ahead by"]
    what = f"On the same {found['n']:,} rows ({plain(found['data'])}), each fitted on the same training rows."
    return [*table(heads, rows), "", f"{what} {plain(found['sentence'])}"]


def _gain(scale: Scale, row: dict[str, Any]) -> str:
    low, high = (scale.signed(row[end]) for end in ("gain_low", "gain_high"))
    return f"{scale.signed(row['gain'])} ({low} to {high})"


def _figures(figures: list[dict[str, Any]]) -> list[str]:
    scales = [scale_of(row["metric"]) for row in figures]
    mixed = any(scale.plain for scale in scales)
    rows = [
        [
            scale.heading if scale.plain else scale.title,
            scale.value(row["value"]),
            f"{scale.value(row['low'])} to {scale.value(row['high'])}",
            f"{row['n']:,}",
        ]
        for row, scale in zip(figures, scales, strict=True)
    ]
    heading = "metric" if mixed else "metric (× 100)"
    return list(table([heading, "value", "95 % interval", "n"], rows))


def _probabilities(provenance: Provenance) -> list[str]:
    found = provenance.calibration
    if found is None:
        return ["Not calibrated: a confidence of 0.9 need not mean that 9 of 10 are right."]
    text = [
        f"Calibrated by a temperature of {found.temperature:.4g}, which is folded into the last layer's weights. Measured on the "
        f"{found.n:,} validation examples that it was found on, the expected calibration error (15 bins) went from "
        f"{found.ece_before:.4f} to {found.ece_after:.4f} and the mean loss from {found.nll_before:.4f} to {found.nll_after:.4f}; "
        "on other examples it gains less."
    ]
    return [*text, "", f"{plain(capital(found.note))}."] if found.note else text


def _limits(provenance: Provenance) -> list[str]:
    known = [
        f"Every text gets one of the {len(provenance.labels)} labels, also one that fits none of them.",
        "It knows the kind of text that it was trained on; on other kinds nothing was measured.",
    ]
    return [*known, *(plain(capital(note)) + "." * (not note.endswith(".")) for note in provenance.notes)]


def _origin(provenance: Provenance) -> list[str]:
    where = provenance.environment
    packages = ", ".join(f"{name} {version}" for name, version in where["packages"].items())
    machine = f"Python {where['python']} on {where['system']}, {where['cpu']}, device {where['device']}"
    made = plain(f"Made by fairtune {where['fairtune']}; {machine}; {packages}.")
    return [made, "", *fenced([provenance.signature])]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
