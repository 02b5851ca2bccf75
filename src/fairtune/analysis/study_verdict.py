"""A study's verdict: a page that a reviewer can read aloud, and the same as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from fairtune.analysis.arm_pairs import BOTH, COPY, DESCRIPTIVE, ENDED, PRIMARY, SIMPLE, Comparison
from fairtune.analysis.decision_lines import VALIDATION, line_metric
from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.analysis.opening_sentence import opening_sentence
from fairtune.analysis.registration import StudyRegistration, day
from fairtune.analysis.scales import scale_of
from fairtune.analysis.sentences import (
    Frame,
    about_text,
    collapse_text,
    comparison_text,
    improvement_text,
    matched_text,
    raw_text,
    reference_text,
    share_text,
)
from fairtune.analysis.statistics import Summary
from fairtune.analysis.study_facts import StudyFacts
from fairtune.analysis.tuned_arms import StudyTuning
from fairtune.core.cautions import Caution
from fairtune.core.numbers import confidence, plural
from fairtune.settings.metrics import METRICS

REFERENCE = "reference"


@dataclass(frozen=True)
class Finding:
    """What the evidence supports about an arm, in sentences.

    Args:
        word: the verdict, or `reference`.
        against: the arm that it is compared with; None for the reference.
        open: more seeds or runs could still bring a verdict.
        cautions: what to mind, each a sentence.
    """

    arm: str
    word: str
    text: str
    cautions: tuple[str, ...]
    against: str | None = None
    role: str = PRIMARY
    open: bool = False


@dataclass(frozen=True)
class FurtherVerdicts:
    """What the arms' primary comparisons show by a metric that stands beside the study's own: a family of its own.

    Args:
        late: it was named after results were known.
    """

    metric: str
    title: str
    late: bool
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class StudyVerdict:
    """What a study supports, in the order in which it should be read.

    Args:
        design: what was planned, when, and what was changed since.
        cautions: what to mind before anything is believed, the gravest first.
        findings: one per arm; an A/A copy first, then the reference.
        further: the same by the metrics that stand beside the study's own.
        opening: what the evidence supports, in a sentence, and what to mind about it in another.
    """

    study: str
    about: str
    design: tuple[str, ...]
    cautions: tuple[Caution, ...]
    findings: tuple[Finding, ...]
    further: tuple[FurtherVerdicts, ...] = ()
    opening: str = ""

    @property
    def words(self) -> dict[str, str]:
        """The verdict of each arm in a word or two."""
        return {finding.arm: finding.word for finding in self.findings}

    @property
    def settled(self) -> bool:
        """Whether every arm has a verdict that seeds could bring."""
        return not any(finding.open for finding in self.findings)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.study}: {self.about}"
        yield ""
        yield self.opening
        yield ""
        yield from self.design
        for caution in self.cautions:
            forced = " (forced)" if caution.forced else ""
            yield f"{caution.grade.capitalize()}{forced}: {caution}"
        yield ""
        for finding in self.findings:
            yield f"{finding.arm}: {' '.join((finding.text, *finding.cautions))}"
        if self.further:
            yield ""
            yield further_note(self.further, self.about.rpartition(", ")[2])
        for metric in self.further:
            yield from (f"{metric.title}, {finding.arm}: {finding.text}" for finding in metric.findings)

    def as_json(self) -> dict[str, Any]:
        """The page as data; findings carry the verdict's word."""
        return {
            "study": self.study,
            "about": self.about,
            "opening": self.opening,
            "design": list(self.design),
            "cautions": [caution.as_json() for caution in self.cautions],
            "findings": [asdict(finding) for finding in self.findings],
            "settled": self.settled,
            **({"further": [asdict(metric) for metric in self.further]} if self.further else {}),
        }


def further_note(found: Sequence[FurtherVerdicts], title: str) -> str:
    """What metrics beside the study's own are good for.

    Args:
        title: of the study's own metric.
    """
    late = [metric.title for metric in found if metric.late]
    text = f"The study's verdict goes by {title}; beside it, each corrected for itself:"
    if not late:
        return text
    were = f"{' and '.join(late)} {'was' if len(late) == 1 else 'were'} named after results were known"
    return f"{text.removesuffix(':')}. {were}: read that as a suggestion for another study."


class JudgedStudy(StudyFacts, Protocol):
    """What a verdict takes besides."""

    @property
    def study(self) -> str: ...
    @property
    def margin(self) -> float | None: ...
    @property
    def tuning(self) -> StudyTuning | None: ...
    @property
    def comparisons(self) -> list[Comparison]: ...
    @property
    def raw_differences(self) -> list[Comparison]: ...
    @property
    def cautions(self) -> tuple[Caution, ...]: ...
    @property
    def whole(self) -> JudgedStudy: ...
    def summary(self, arm: str) -> Summary: ...
    def by(self, metric: str) -> JudgedStudy: ...


def frame_of(study: JudgedStudy) -> Frame:
    """What all sentences about a study share."""
    stated = study.registration.compare.get("margin")
    return Frame(
        study.metric,
        study.confidence,
        family_size(study),
        None if stated is None else str(stated),
        study.margin,
        simple_family_size(study),
    )


def family_size(study: JudgedStudy) -> int:
    """Comparisons that are corrected together, those of arms that were given up included."""
    tested = [c for c in study.whole.comparisons if c.role == PRIMARY and c.about != BOTH]
    return len(tested) + len(study.registration.given_up)


def simple_family_size(study: JudgedStudy) -> int:
    """Comparisons with simple baselines, which are corrected among themselves."""
    return sum(c.role == SIMPLE for c in study.whole.comparisons) + len(study.registration.given_up_learners)


def judge_study(study: JudgedStudy) -> StudyVerdict:
    """The page."""
    plan, frame = study.plan, frame_of(study)
    compared = {c.arm: c for c in study.comparisons}
    raw = {c.arm: c for c in study.raw_differences}
    first = [arm for arm in study.arms if arm in compared and compared[arm].role == COPY]
    others = [arm for arm in study.arms if arm != study.reference and arm not in first]
    reference = Finding(
        study.reference, REFERENCE, reference_text(frame, study.summary(study.reference)), _lost(study, study.reference)
    )
    findings = [
        *(_finding(study, frame, compared[arm], None) for arm in first),
        reference,
        *(_finding(study, frame, compared[arm], raw.get(arm)) for arm in others if arm in compared),
    ]
    about = f"{plan['task']['name']}, {plan['model']['name']}, {frame.scale.title}"
    further = tuple(_further(study.by(metric), metric) for metric in further_metrics(study))
    ended = Counter(run.status for run in study.whole.runs)
    opening = opening_sentence(
        frame, study.comparisons, study.cautions, ended["finished"], ended.total(), ended["failed"]
    )
    design = tuple(_design(study, frame))
    return StudyVerdict(study.study, about, design, study.cautions, tuple(findings), further, opening)


def further_metrics(study: JudgedStudy) -> list[str]:
    """The metrics that stand beside the study's own, which a later plan may have made one of them; those that are known here."""
    return [metric for metric in study.registration.beside if metric != study.metric and metric in METRICS]


def _further(study: JudgedStudy, metric: str) -> FurtherVerdicts:
    """What the same comparisons say by another metric.

    Args:
        study: as that metric shows it.
    """
    frame = frame_of(study)
    reference = reference_text(frame, study.summary(study.reference))
    others = [
        Finding(c.arm, c.verdict.word, comparison_text(frame, c), (), c.reference, c.role) for c in study.comparisons
    ]
    first = Finding(study.reference, REFERENCE, reference, ())
    return FurtherVerdicts(metric, frame.scale.title, metric in study.registration.late, (first, *others))


def _finding(study: JudgedStudy, frame: Frame, found: Comparison, raw: Comparison | None) -> Finding:
    copy = (
        f"A second copy of {found.reference} with other seeds: better or worse would be a false alarm."
        if found.role == COPY
        else ""
    )
    cautions = (
        copy,
        about_text(found),
        matched_text(frame, found),
        *_learned(study, found.arm),
        *_lost(study, found.arm),
        _few(study, found),
        collapse_text(frame, found),
        share_text(found),
        improvement_text(found),
        raw_text(frame, raw) if raw is not None else "",
    )
    return Finding(
        found.arm,
        found.verdict.word,
        comparison_text(frame, found),
        tuple(text for text in cautions if text),
        found.reference,
        found.role,
        found.role not in (COPY, SIMPLE, DESCRIPTIVE) and found.about != BOTH and not found.verdict.settled,
    )


def _learned(study: JudgedStudy, arm: str) -> tuple[str, ...]:
    """What a simple baseline is, and whether seeds are anything to it."""
    learner = study.learner(arm)
    if learner is None:
        return ()
    runs = study.finished(arm)
    same = not learner.trained and len(runs) > 1 and all(np.array_equal(_scores(run), _scores(runs[0])) for run in runs)
    often = " It draws no random numbers: its runs are the same for every seed." if same else ""
    return (f"A simple baseline: {learner.short}.{often}",)


def _scores(run: LedgerRun) -> Any:
    return getattr(run.test, "scores", None)


def _lost(study: JudgedStudy, arm: str) -> tuple[str, ...]:
    runs = [run for run in study.runs if run.arm == arm]
    lost = sum(run.status in ("failed", "damaged") for run in runs)
    if not lost:
        return ()
    failed = sum(run.status == "failed" for run in runs)
    how = "failed" if failed == lost else "failed or cannot be read"
    if lost == len(runs):
        return (f"All of its {lost} runs {how}.",) if lost > 1 else (f"Its one run {how}.",)
    return (f"{lost} of its {len(runs)} runs {how}; the figures are of the others, the verdict counts all.",)


def _few(study: JudgedStudy, found: Comparison) -> str:
    runs = [run for run in study.runs if run.arm in (found.arm, found.reference)]
    waiting = sum(run.status not in ENDED for run in runs)
    if not waiting or found.found.n < 2:
        return ""
    planned = len({run.seed for run in runs})
    return f"Only {found.found.n} of {planned} planned seeds are finished in both arms: until all are, a verdict must be surer."


def _design(study: JudgedStudy, frame: Frame) -> Iterator[str]:
    """What was planned and when; the first lines of every report."""
    found, runs, every = study.registration, study.whole.runs, len(study.whole.arms)
    done = sum(run.status == "finished" for run in runs)
    if found.recorded is None:
        yield "There is no record of when this study was planned."
    elif not found.changes:
        yield f"Planned on {day(found.recorded)}, {_when(found)}; nothing was changed since."
    else:
        yield f"First planned on {day(found.recorded)}, {_when(found)}. Changed since:"
        yield from (f"- {change}." for change in found.changes)
    size = plural(frame.family, "primary comparison")
    together = ", corrected together (Holm)" if frame.family > 1 else ""
    margin = f"the margin is {_stated(frame)}" if frame.stated_margin else "no margin is stated"
    number = len({run.seed for run in runs})
    counts = f"{plural(every, 'arm')} x {plural(number, 'seed')}, {done} of {len(runs)} runs finished"
    settings = f"settings {study.tuning}" if study.tuning is not None else "settings as given"
    yield f"{counts}; {settings}; {size}{together}; {margin}; confidence {confidence(frame.confidence)}."
    if frame.simple:
        many = plural(frame.simple, "simple baseline is", "comparisons with simple baselines are")
        yield f"{many} judged apart, so that the others are no less sure for it."
    if found.threshold == VALIDATION:
        title = scale_of(line_metric(study.metric)).title
        yield f"Classes are told apart where each run does best on its own validation split, by {title}, not at one half."
    looks = max((c.looks for c in study.comparisons), key=len, default=())
    if looks:
        planned = "as planned" if found.planned_looks else "and seeds were added afterwards"
        seeds = ", ".join(map(str, looks))
        yield f"Verdicts could be taken before, at {seeds} seeds, {planned}: every look counts, so each has to be surer."


def _when(found: StudyRegistration) -> str:
    known = found.known_before
    return "before the first run" if not known else f"when {plural(known, 'result was', 'results were')} on record"


def _stated(frame: Frame) -> str:
    stated = frame.stated_margin or ""
    return f"{stated.rstrip('% ')} %" if "%" in stated else stated
