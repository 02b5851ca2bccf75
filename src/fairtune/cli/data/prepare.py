"""`fairtune data prepare`: make everything that a study needs before it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from fairtune.cli.command import (
    AllowPlugins,
    AsJson,
    Overrides,
    Profile,
    StudyFile,
    console,
    print_json,
    reading_study,
    report_errors,
)
from fairtune.core.cache import cache_folder
from fairtune.core.numbers import size_text
from fairtune.monitor.stage_view import show_stages
from fairtune.study.study_file import load_study

if TYPE_CHECKING:
    from fairtune.execution.preparation import PreparedPart


@report_errors
@show_stages(lines=False)
def prepare(
    file: StudyFile,
    overrides: Overrides = None,
    profile: Profile = None,
    allow_plugins: AllowPlugins = False,
    as_json: AsJson = False,
) -> None:
    """Read and check a study's data, fetch its model, and tokenise, so that training can begin at once: also without network."""
    with reading_study(allow_plugins):
        study = load_study(file, overrides or [], profile)
    from fairtune.execution.preparation import prepare_study

    def tell(step: PreparedPart) -> None:
        if not as_json:
            console().print(Text(_line(step)), soft_wrap=True)

    source, steps = prepare_study(study, tell)
    made = any(step.made for step in steps)
    if as_json:
        model = study.model if isinstance(study.model, str) else study.model.model_dump(exclude_none=True)
        facts = {"study": study.study, "model": model, "source": source, "cache": str(cache_folder())}
        print_json({**facts, "made": made, "steps": [step.as_json() for step in steps]})
        return
    size = size_text(sum(step.size for step in steps))
    console().print(Text(f"  from {source}"), soft_wrap=True)
    console().print(Text(f"  in {cache_folder()}, {size} new"), soft_wrap=True)
    console().print("Ready." if made else "Everything was there already.")


def _line(step: PreparedPart) -> str:
    """A step in a line: what, how much of it, where its time went."""
    parts = [", ".join(f"{count:,} {name}" for name, count in step.counts.items())] if step.counts else []
    parts += [size_text(step.size)] if step.size else []
    parts += [f"new, {step.seconds:.1f} s" if step.made else "was there"]
    return f"{step.what}: {'; '.join(parts)}"
