"""Samples: what language models wrote, the arms' continuations of the same prompts, side by side, of one seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtune.analysis.results import LedgerRun, Results
from fairtune.core.markdown import (
    heading,
    items,
    plain,
    table,
)
from fairtune.report.content import ReportContent
from fairtune.report.section import ReportSection


@dataclass(frozen=True)
class Continued:
    """One prompt and how each arm went on with it."""

    prompt: str
    by_arm: dict[str, str]


@dataclass(frozen=True)
class Samples:
    """Continuations of one seed.

    Args:
        seed: the first that all arms have finished, or else the first of those that most have; None if there is none.
        remarks: what is left out, and why.
    """

    seed: int | None
    prompts: tuple[Continued, ...]
    remarks: tuple[str, ...]


def read_samples(results: Results) -> Samples | None:
    """What the runs of one seed wrote; None for a study that trains no language model."""
    if results.kind != "language_model":
        return None
    finished = [run for run in results.runs if run.status == "finished"]
    seeds = [seed for seed in results.plan["seeds"] if any(run.seed == seed for run in finished)]
    if not seeds:
        return Samples(None, (), ("no run is finished",))
    seed = max(seeds, key=lambda one: sum(run.seed == one for run in finished))
    chosen = [run for run in finished if run.seed == seed]
    missing = [arm for arm in results.arms if arm not in {run.arm for run in chosen}]
    remarks = [f"{arm}: its run of seed {seed} is not finished" for arm in missing]
    read = {}
    for run in sorted(chosen, key=lambda one: results.arms.index(one.arm)):
        found, problem = _read(run)
        read[run.arm] = found
        if problem:
            remarks.append(f"{run.arm}: {problem}")
    return Samples(seed, tuple(_side_by_side(read)), tuple(remarks))


def _read(run: LedgerRun) -> tuple[dict[str, str], str | None]:
    """Continuations by prompt, or why there are none."""
    path = run.folder.samples
    if not path.exists():
        return {}, f"its run of seed {run.seed} left no samples"
    try:
        return _continuations(path), None
    except (OSError, ValueError, TypeError, KeyError):
        return {}, f"samples.json of its run of seed {run.seed} cannot be read"


def _continuations(path: Path) -> dict[str, str]:
    found = {entry["prompt"]: entry["continuation"] for entry in json.loads(path.read_text(encoding="utf-8"))}
    if not all(isinstance(text, str) for pair in found.items() for text in pair):
        raise ValueError("not texts")
    return found


def _side_by_side(read: dict[str, dict[str, str]]) -> Iterable[Continued]:
    for prompt in dict.fromkeys(prompt for found in read.values() for prompt in found):
        yield Continued(prompt, {arm: found[prompt] for arm, found in read.items() if prompt in found})


def samples_text(samples: Samples) -> str:
    """What the section is, in a line."""
    return (
        f"The weights that were best on validation, seed {samples.seed}, went on with the same prompts, with the same "
        "random draws. These are illustrations of one seed, not evidence: the table above is."
    )


def markdown(samples: Samples, _: ReportContent) -> Iterator[str]:
    """One table per prompt, one row per arm."""
    yield from heading("Samples")
    if samples.prompts:
        yield samples_text(samples)
        for continued in samples.prompts:
            yield ""
            yield from table(
                ["arm", "text"],
                [
                    [plain(arm), f"**{plain(continued.prompt)}** {plain(text)}"]
                    for arm, text in continued.by_arm.items()
                ],
            )
    if samples.remarks:
        yield ""
        yield from items(f"Left out: {plain(remark)}." for remark in samples.remarks)


SECTION = ReportSection(
    __name__,
    lambda evidence: read_samples(evidence.results),
    markdown,
    names=lambda *_: {"samples_text": samples_text},
    folded=True,
)
