"""A model's card in the terminal: what trains, what it costs, how its queries and keys lie."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from fairtune.core.numbers import (
    error_size,
    megabytes,
    millions,
    ratio,
    significant,
)
from fairtune.report.init_cards import FRESH, Origin, origin_of
from fairtune.report.sections.start.attention import LayerRow, layer_rows
from fairtune.report.terminal import shown


def card_view(facts: dict[str, Any]) -> Group:
    """The card of `fairtune inspect`; fits in 100 columns."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, style="cyan")
    grid.add_column(overflow="fold")
    for name, text in _lines(facts):
        grid.add_row(f"  {name}", Text(shown(text)))
    model = facts["model"]
    title = Text.assemble((shown(model["name"]), "bold"), f"  {facts['architecture']}, {model['identity'][:12]}")
    rows = layer_rows(facts["attention"])
    return Group(title, grid, "", _layers(rows, _origin(facts))) if rows else Group(title, grid)


def _origin(facts: dict[str, Any]) -> Origin:
    return origin_of(facts["model"].get("preset") is not None)


def _lines(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield from _methods(facts["methods"])
    yield "parameters", _parameters(facts["parameters"])
    yield "weights" if _origin(facts) is FRESH else "checkpoint", _checkpoint(facts)
    for note in facts.get("notes", ()):
        yield "note", note
    yield "attention", _attention(facts)
    costs = facts["costs"]
    yield "training", _memory(costs)
    if "flops_per_token" in costs:
        yield "products", _products(costs, _origin(facts))
        yield "bound", _bound(costs["speedup_bound"], _origin(facts))
    yield from _logits(facts)


def _methods(methods: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for place, use in enumerate(methods):
        ((name, fields),) = use.items()
        settings = ", ".join(f"{field}: {_yaml(value)}" for field, value in fields.items() if value is not None)
        yield "" if place else "methods", f"{name} {{{settings}}}" if settings else name


def _yaml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _parameters(counts: dict[str, Any]) -> str:
    total, frozen = int(counts["total"]), int(counts["frozen"])
    head = f"{total:,}: {int(counts['trainable']):,} train, {frozen:,} are frozen"
    return f"{head} ({100 * frozen / total:.2f} %)" if frozen else f"{total:,}, all of them train"


def _checkpoint(facts: dict[str, Any]) -> str:
    changed = [change["name"] for change in facts["changed"]]
    named = f" ({changed[0]}{f' and {len(changed) - 1} more' if len(changed) > 1 else ''})" if changed else ""
    same = "equal a second draw of the fresh weights" if _origin(facts) is FRESH else "equal its file"
    return (
        f"{facts['same']} tensors {same} bit for bit, {len(changed)} differ{named}, "
        f"{len(facts['new'])} new, {len(facts['unverified'])} not verified"
    )


def _attention(facts: dict[str, Any]) -> str:
    found = facts["queries_and_keys"]
    if not found:
        return str(facts["attention"]["problem"])
    keys = f" ({found['key_heads']} of keys)" if found["key_heads"] != found["heads"] else ""
    return (
        f"{found['layers']} layers, {found['heads']} heads{keys} of {found['head_dim']}; "
        f"Q and K hold {found['parameters']:,} parameters ({100 * found['share']:.2f} %)"
    )


def _memory(costs: dict[str, Any]) -> str:
    saved = [costs[f"{part}_bytes_saved"] for part in ("gradient", "optimizer")]
    text = f"{megabytes(costs['gradient_bytes'])} MB of gradients, {megabytes(costs['optimizer_bytes'])} MB of AdamW's state"
    return text + (f"; freezing saves {megabytes(sum(saved))} MB" if any(saved) else "")


def _products(costs: dict[str, Any], origin: Origin) -> str:
    now, before = costs["flops_per_token"], costs["checkpoint_flops_per_token"]
    text = f"{millions(now['forward'])} MFLOP per token forward, {millions(now['backward'])} backward"
    return (
        text
        if now == before
        else f"{text} ({origin.named}: {millions(before['forward'])}, {millions(before['backward'])})"
    )


def _bound(speedup: float, origin: Origin) -> str:
    if speedup == 1:
        return f"no faster a step than training all of {origin.named}: no matrix product is saved"
    return (
        f"at most {ratio(speedup)} times as fast per step as training all of {origin.named} "
        f"(a ratio of step times of {ratio(1 / speedup)}), by matrix products alone"
    )


def _logits(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    probe, summary = facts["measured_on"], facts["attention"].get("summary") or {}
    if probe["batch"] is None:
        hint = "." if _origin(facts) is FRESH else " Or name another task with --task."
        yield "logits", f"not measured, nor matrix products. {probe['problem']}{hint}"
    elif summary.get("logit_spread") is not None:
        text = f"spread {significant(summary['logit_spread'])}"
        text += f", in {_origin(facts).named} {significant(summary['checkpoint_logit_spread'])}"
        yield "logits", f"{text} ({probe['batch'][0]} examples of {probe['task']}, {probe['batch'][1]} tokens wide)"


def _layers(rows: list[LayerRow], origin: Origin) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1), collapse_padding=True, pad_edge=False, show_edge=False)
    table.add_column("block", justify="right", no_wrap=True)
    table.add_column("part", no_wrap=True)
    measured = any(row.logit_spread is not None for row in rows)
    heads = ["worst error of\northogonality", "row norm\n(least to most)", f"in the\n{origin.name}"]
    heads.append("cosine of\nrow spaces")
    for head in [*heads, "spread of logits\n(before)" if origin is FRESH else "spread of logits\n(checkpoint's)"]:
        if measured or not head.startswith("spread"):
            table.add_column(head, justify="right", no_wrap=True)
    table.add_column("frozen", no_wrap=True)
    for row in rows:
        spread = f"{significant(row.logit_spread)} ({significant(row.checkpoint_logit_spread)})"
        cells = [
            str(row.block),
            row.part,
            error_size(row.orthogonality_error),
            f"{significant(row.row_norm)} ({significant(row.row_norm_min)} to {significant(row.row_norm_max)})",
            significant(row.checkpoint_row_norm),
            significant(row.row_space_cosine),
            *([significant(None) if row.logit_spread is None else spread] if measured else []),
            "yes" if row.frozen else "no",
        ]
        table.add_row(*(Text(shown(cell)) for cell in cells))
    return table
