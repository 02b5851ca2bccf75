"""The head of a report as Markdown: title, what was studied, what was planned."""

from __future__ import annotations

from collections.abc import Iterator

from fairtune.core.markdown import plain, prose
from fairtune.report.content import Header, tokenizer_text


def title_lines(header: Header) -> Iterator[str]:
    yield f"# {plain(header.study)}"
    yield ""
    runs = ", ".join(f"{count} {status}" for status, count in header.statuses.items())
    seeds = ", ".join(map(str, header.seeds))
    scratch = ", trained from scratch" if header.from_scratch else ""
    tokenizer = f" · tokenizer {tokenizer_text(header.text)}" if header.text is not None else ""
    yield plain(
        f"{header.task} · {header.model}{scratch}{tokenizer} · {header.metric_title} · "
        f"seeds {seeds} · runs: {runs} · plan {header.plan} · "
        f"fairtune {header.fairtune}"
    )
    yield ""


def design_line(line: str) -> str:
    """A line of the design, which may be an item of a list."""
    return f"- {prose(line[2:])}" if line.startswith("- ") else f"{prose(line)}  "
