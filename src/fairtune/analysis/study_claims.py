"""The claims of a study file, answered, with when each was written: before the first result, or after results were known.

Nobody is kept from claiming what is already known, or from taking back what did not come true. It is dated and said, and what was
taken out after results were known is answered all the same.
"""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from fairtune.analysis.claim_answer import NOT_RUN, Answer
from fairtune.analysis.claim_answers import answer_claims
from fairtune.analysis.registration import day
from fairtune.analysis.results import Results
from fairtune.core.errors import FairtuneError
from fairtune.core.printable import capital
from fairtune.ledger.studies import TIME, read_claims
from fairtune.settings.claims import SPEED, Claim

LATE = "written after the results were known"


@dataclass(frozen=True)
class WrittenClaim:
    """A claim as a study's history has it.

    Args:
        written: since when it is on record, without a break; None where nothing says so.
        known: results that were on record then.
        timed: timing sessions that were on record then.
        taken_out: when it was taken out after results were known; None while it is in force.
        known_out: results that were on record then.
        instead_of: the claims about the same arms that were taken out when it was written.
    """

    claim: Claim
    written: str | None
    known: int
    timed: int
    taken_out: str | None = None
    known_out: int = 0
    instead_of: tuple[str, ...] = ()

    @property
    def late(self) -> bool:
        """Whether it may have been written to fit what was known."""
        return self.written is None or self.known > 0 or (self.claim.kind == SPEED and self.timed > 0)

    def __str__(self) -> str:
        if self.written is None:
            told = "nothing says when it was written"
        elif self.late:
            known = _count(self.known, "result")
            if self.claim.kind == SPEED:
                known += f" and {_count(self.timed, 'timing session')}"
            told = f"{LATE}: {day(self.written)}, with {known} on record"
        else:
            told = f"written before the first result: {day(self.written)}"
        if self.instead_of:
            told += f", in place of: {'; '.join(self.instead_of)}"
        if self.taken_out is not None:
            when = f"on {day(self.taken_out)}" if self.taken_out else "nobody knows when"
            told += f"; taken out {when}, with {_count(self.known_out, 'result')} on record"
        return told


@dataclass(frozen=True)
class AnsweredClaim:
    """A claim of a study with its answer."""

    written: WrittenClaim
    answer: Answer

    @property
    def claim(self) -> Claim:
        return self.answer.claim

    @property
    def word(self) -> str:
        """supported, contradicted, not separable, implausible or not yet run."""
        return self.answer.word

    @property
    def late(self) -> bool:
        return self.written.late

    @property
    def mark(self) -> str:
        """When it was written, as a sentence."""
        text = str(self.written)
        return f"{capital(text)}."

    @property
    def summary(self) -> str:
        """Why this word, by which figures, and when it was written; what may have been written to fit them says so first."""
        reason = self.answer.reason
        if self.claim.rank is not None:  # its steps, each with its figures, are a paragraph
            reason = f"{reason.partition(': ')[0].rstrip('.')}."
        found = f" Found: {self.answer.figures}." if self.answer.figures is not None else ""
        return f"{self.mark} {reason}{found}" if self.late else f"{reason}{found} {self.mark}"

    def __str__(self) -> str:
        needed = f" To settle it: {self.answer.needed}." if self.answer.needed else ""
        return f"{self.claim}: {self.word}. {self.summary}{needed}"

    def as_json(self) -> dict[str, Any]:
        written = self.written
        return {
            **self.answer.as_json(),
            "written": written.written,
            "known": written.known,
            "late": written.late,
            "taken_out": written.taken_out,
            "mark": self.mark,
            "summary": self.summary,
        }


def study_claims(results: Results) -> list[AnsweredClaim]:
    """Every claim of a study, in the order of its file, and those that were taken out after results were known."""
    whole = results.whole
    written = written_claims(whole)
    there = [one for one in written if set(one.claim.arms) <= set(whole.plan["arms"])]
    answers = dict(zip(map(_key, there), _answers(whole, [one.claim for one in there]), strict=True))
    return [AnsweredClaim(one, answers.get(_key(one)) or _gone(whole, one.claim)) for one in written]


def written_claims(results: Results) -> list[WrittenClaim]:
    """A study's claims, each with when it was written."""
    history = [(entry, _claims(entry["claims"])) for entry in read_claims(results.folder)]
    newest = _claims(results.plan.get("claims") or ())
    if not history or history[-1][1] != newest:
        history.append(({}, newest))  # a plan that came here without its history
    removed = [claim for _, claims in history for claim in claims if claim not in newest]
    found = [_written(results, claim, history) for claim in dict.fromkeys([*newest, *removed])]
    return [one for one in found if one is not None]


def _written(
    results: Results, claim: Claim, history: Sequence[tuple[dict[str, Any], list[Claim]]]
) -> WrittenClaim | None:
    """A claim since it was last put in; None where it was taken out before anything was known."""
    last = max(place for place, (_, claims) in enumerate(history) if claim in claims)
    first = last
    while first > 0 and claim in history[first - 1][1]:
        first -= 1
    entry = history[first][0]
    before = history[first - 1][1] if first else []
    replaced = [one for one in before if one not in history[first][1] and _same_matter(one, claim)]
    out = history[last + 1][0] if last + 1 < len(history) else None
    known = _known(results, entry)
    if out is not None and out and not _known(results, out) and not (claim.kind == SPEED and out["timed"]):
        return None
    return WrittenClaim(
        claim,
        entry.get("recorded"),
        known,
        int(entry.get("timed") or 0),
        None if out is None else str(out.get("recorded") or ""),
        0 if out is None else _known(results, out),
        tuple(map(str, replaced)) if known or entry.get("timed") else (),
    )


def _known(results: Results, entry: dict[str, Any]) -> int:
    """Results that were on record at an entry: those that it counted, or that ended before it."""
    if "recorded" not in entry:
        return 0
    second = calendar.timegm(time.strptime(entry["recorded"], TIME))
    times = [run.result.get("time") for run in results.runs if run.folder.result.is_file()]
    return max(int(entry["known"]), sum(isinstance(ended, int | float) and ended < second for ended in times))


def _same_matter(one: Claim, other: Claim) -> bool:
    return (one.kind, sorted(one.arms)) == (other.kind, sorted(other.arms))


def _claims(entries: Sequence[Any]) -> list[Claim]:
    """Claims as they were recorded; what another version wrote and this one cannot read is left out."""
    found = []
    for entry in entries:
        try:
            found.append(Claim.model_validate(entry))
        except ValidationError:
            continue
    return found


def _answers(results: Results, claims: list[Claim]) -> list[Answer]:
    """The answers of claims that count in one correction; where one cannot be asked, each for itself."""
    try:
        return answer_claims(results, claims)
    except FairtuneError:
        return [_answer_alone(results, claim) for claim in claims]


def _answer_alone(results: Results, claim: Claim) -> Answer:
    try:
        return answer_claims(results, [claim])[0]
    except FairtuneError as error:
        return Answer(claim, NOT_RUN, f"It cannot be answered: {error}", results.study)


def _gone(results: Results, claim: Claim) -> Answer:
    missing = [arm for arm in claim.arms if arm not in results.plan["arms"]]
    names = ", ".join(missing)
    return Answer(claim, NOT_RUN, f"{names} is not in the newest plan.", results.study)


def _key(written: WrittenClaim) -> str:
    return json.dumps(written.claim.model_dump(mode="json"), sort_keys=True)


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
