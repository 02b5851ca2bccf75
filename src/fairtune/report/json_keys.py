"""The keys of report.json: what each holds, in the order of the file. Schema and documentation are made from this list."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairtune.analysis.study_verdict import Finding
from fairtune.analysis.tuned_arms import StudyTuning
from fairtune.core.cautions import Caution
from fairtune.report.comparison_record import ComparisonRecord
from fairtune.report.content import ArmRow, Header, Versus
from fairtune.report.init_cards import CardSummary
from fairtune.report.machine import Machine
from fairtune.report.sections.baselines import SimpleBaseline
from fairtune.report.sections.claims import ClaimRecord
from fairtune.report.sections.comparisons.worth import Worth
from fairtune.report.sections.curves.content import Curve
from fairtune.report.sections.decision_line import DecisionLines
from fairtune.report.sections.further_metrics import FurtherMetrics
from fairtune.report.sections.signatures import RunLine

REPORT_SCHEMA = "fairtune.report/1"
"""The number grows when a key is taken away or means something else; new ones may be added."""


@dataclass(frozen=True)
class JsonKey:
    """A key of report.json.

    Args:
        kind: what it holds, as Python writes types; `Any` within is described by the page alone and may change with it.
    """

    kind: Any
    help: str


Texts = tuple[str, ...]
Shown = dict[str, Any] | None
KEYS: dict[str, JsonKey] = {
    "schema": JsonKey(str, "`fairtune.report/1`"),
    "header": JsonKey(Header, "what was studied: task, model, metric, seeds, margin, plan"),
    "comparisons": JsonKey(
        tuple[ComparisonRecord, ...], "every comparison as a flat record, `fairtune.comparison/1`; read this first"
    ),
    "opening": JsonKey(str, "what the evidence supports, in a sentence, and what to mind about it in another"),
    "design": JsonKey(Texts, "what was planned, when, and what was changed since, in sentences"),
    "cautions": JsonKey(tuple[Caution, ...], "what to mind before anything is believed, the gravest first"),
    "findings": JsonKey(tuple[Finding, ...], "what the evidence supports about each arm, in sentences"),
    "rows": JsonKey(tuple[ArmRow, ...], "one per arm, in the study's order: scores, comparison, times, sizes"),
    "ranking": JsonKey(tuple[Worth, ...], "arms by what they gain in their primary comparisons"),
    "left_out": JsonKey(tuple[Worth, ...], "arms of several methods against those that lack one of them"),
    "raw_differences": JsonKey(tuple[Versus, ...], "plain differences to the reference, without a verdict"),
    "audit": JsonKey(Texts, "settings, other than methods, in which arms differ from the reference"),
    "data": JsonKey(Shown, "the data card of the task"),
    "samples": JsonKey(Shown, "what language models wrote; null for classifiers"),
    "mistakes": JsonKey(Shown, "what is got wrong; null for language models"),
    "representation": JsonKey(Shown, "what the t-SNE pictures show, without the vectors"),
    "maps": JsonKey(Shown, "self-organising maps, without their cells"),
    "curves": JsonKey(tuple[Curve, ...], "training loss and validation score of every run over its steps"),
    "timing_notes": JsonKey(Texts, "how to read times"),
    "timing": JsonKey(Shown, "the timing experiment, as the `comparison` of `timing.json`; null where there was none"),
    "run_times": JsonKey(
        dict[str, Any],
        "what runs took, by arm: means as in `timing.json`, and `step_curve`, the median step along training",
    ),
    "cards": JsonKey(tuple[CardSummary, ...], "what each arm started from"),
    "starting_notes": JsonKey(Texts, "how to read the cards"),
    "machine": JsonKey(Machine, "what runs ran on, and where they differ"),
    "failures": JsonKey(dict[str, str], "runs that failed, with the reason"),
    "retried": JsonKey(Texts, "runs that failed and were tried again"),
    "unfinished": JsonKey(dict[str, str], "runs that are not finished, with their status"),
    "exclusions": JsonKey(Texts, "runs on disk that are not counted, with the reason"),
    "warnings": JsonKey(Texts, "what runs warned of"),
    "runs": JsonKey(tuple[RunLine, ...], "every planned run with its status and signature"),
    "notes": JsonKey(Texts, "how to read the report"),
    "author_notes": JsonKey(
        Texts | None, "`notes` of the study file, in the author's own words; null where it has none"
    ),
    "further_metrics": JsonKey(FurtherMetrics | None, "the same comparisons by the metrics of `compare: {also: ...}`"),
    "decision_line": JsonKey(DecisionLines | None, "where two classes are told apart, if not at one half"),
    "baselines": JsonKey(tuple[SimpleBaseline, ...] | None, "simple baselines: what they are and what they chose"),
    "claims": JsonKey(tuple[ClaimRecord, ...] | None, "the claims of the study file, answered; null where it has none"),
    "tuning": JsonKey(StudyTuning | None, "how settings were chosen; null where they are as given"),
}
