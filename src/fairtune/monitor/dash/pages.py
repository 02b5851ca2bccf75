"""The pages of the live view as the server first sends them: whole without a script, which then keeps them up to date."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from fairtune.analysis.scales import scale_of
from fairtune.core.numbers import DASH, low_to_high
from fairtune.core.printable import capital, clip, with_printable_texts
from fairtune.monitor.study_view import StudyView
from fairtune.monitor.time_left import duration_text
from fairtune.report.figures.palette import ARMS

DASHES = ((), (7, 3), (2, 3), (7, 3, 2, 3))
"""Of lines of arms once the colours are used up, as the report draws them."""
LONGEST_SHOWN = 80
"""Letters of a name; a longer one is cut, and its run's own panel has it whole."""
STATES = ("finished", "running", "failed", "interrupted", "damaged", "waiting")
"""Of runs, in the order in which a bar shows them."""


def make_formats(metric: str | None) -> dict[str, Any]:
    """How the script writes figures of a metric, and the colours of arms."""
    scale = scale_of(metric or "")
    return {
        "title": scale.title if metric else "score",
        "heading": capital(scale.heading) if metric else "Score",
        "unit": scale.unit,
        "factor": scale.factor,
        "plain": scale.plain,
        "lower_is_better": scale.lower_is_better,
        "difference": scale.difference,
        "colours": list(ARMS),
        "dashes": [list(dash) for dash in DASHES],
    }


def render_study(view: StudyView) -> str:
    """The page of a study."""
    view = with_printable_texts(view)
    return _render("study", view=view, scale=scale_of(view.metric or ""), formats=make_formats(view.metric))


def render_studies(studies: Sequence[Mapping[str, Any]], runs: str) -> str:
    """The page that lists all studies.

    Args:
        studies: each with `study`, `state`, `about`, `counts`, `total`, `left`, `problem` and the number of its `arms`.
        runs: the folder that holds them, as it is shown.
    """
    return _render("studies", studies=with_printable_texts(list(studies)), runs=with_printable_texts(runs))


def render_problem(text: str) -> str:
    """A page that says why there is no other."""
    return _render("problem", text=with_printable_texts(text))


def tell_counts(counts: Mapping[str, int] | None) -> str:
    """Runs by state: `6 finished, 2 running, 7 waiting`."""
    found = [(state, (counts or {}).get(state, 0)) for state in STATES]
    return ", ".join(f"{number:,} {state}" for state, number in found if number) or "no runs yet"


@cache
def _environment() -> Environment:
    """Everything that a template is given is escaped."""
    made = Environment(
        loader=PackageLoader("fairtune.monitor.dash", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        clip=lambda text, most=LONGEST_SHOWN: clip(text, most), quoted=lambda text: quote(text, safe="")
    )
    made.globals.update(dash=DASH, low_to_high=low_to_high, duration_text=duration_text, tell_counts=tell_counts)
    return made


def _render(name: str, **given: Any) -> str:
    return str(_environment().get_template(f"{name}.html.j2").render(**given))
