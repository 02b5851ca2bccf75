"""Every published claim with its answer: from counting and bands where they decide, else from the runs on record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtune.analysis.claim_answer import ANSWERS, NOT_RUN, NOT_SEPARABLE, Answer, worst_of
from fairtune.analysis.claim_answers import answer_claims
from fairtune.analysis.results import Results, load_results
from fairtune.claims.arithmetic import answer_counted, judge_band
from fairtune.claims.published import AVERAGE, LAPTOP, PUBLISHED, ClaimFile, ClaimTrial, PublishedClaim
from fairtune.claims.trial_costs import TrialCost, find_cost, is_of_trial, load_trial
from fairtune.core.errors import FairtuneError
from fairtune.ledger.folders import study_names
from fairtune.study.plan import PROTOCOL


@dataclass(frozen=True)
class TrialAnswer:
    """What one study says to a claim, if it was run.

    Args:
        answers: to each thing that is asked of it.
        cost: of trying it; None where its file is gone.
        trouble: why its runs or its file cannot be used; empty where they can.
        other_trial: what is on record under the study's name has another size or other methods.
    """

    trial: ClaimTrial
    answers: tuple[Answer, ...]
    cost: TrialCost | None
    trouble: str = ""
    other_trial: bool = False

    @property
    def word(self) -> str:
        return worst_of([answer.word for answer in self.answers]) if self.answers else NOT_RUN

    @property
    def n(self) -> int | None:
        """The fewest seeds or rounds that one of its answers rests on."""
        return min((answer.figures.n for answer in self.answers if answer.figures), default=None)

    def as_json(self) -> dict[str, Any]:
        return {
            "study": self.trial.study,
            "size": self.trial.size,
            "about": self.trial.about,
            "command": self.trial.command,
            "answer": self.word,
            "answers": [answer.as_json() for answer in self.answers],
            "cost": self.cost.as_json() if self.cost else None,
            "trouble": self.trouble,
            "other_trial": self.other_trial,
        }


@dataclass(frozen=True)
class ClaimAnswer:
    """A published claim with everything that answers it.

    Args:
        counted: what counting alone answers; None where it does not.
        band: a word where its baseline is implausible, and the sentence; None where no band applies.
    """

    source: str
    claim: PublishedClaim
    trials: tuple[TrialAnswer, ...]
    counted: Answer | None
    band: tuple[str, str] | None

    @property
    def word(self) -> str:
        return self._decided[0]

    @property
    def grounds(self) -> str:
        """What the word comes from: counting, a band, the published experiment, or a trial at laptop size."""
        return self._decided[1]

    @property
    def direction_only(self) -> bool:
        """Whether the word is about a direction at laptop size, and not about the figure that was published."""
        asked = [claim for one in self.trials_of(LAPTOP) for claim in one.trial.claims]
        return self.grounds == LAPTOP and all(claim.direction_only for claim in asked)

    @property
    def _decided(self) -> tuple[str, str]:
        if self.counted is not None:
            return self.counted.word, "counted"
        if self.band is not None and self.band[0]:
            return self.band[0], "band"
        for size in (PUBLISHED, LAPTOP):
            found = self.trials_of(size)
            word = self._together([one.word for one in found])
            if word != NOT_RUN:
                return word, size
        return NOT_RUN, ""

    def _together(self, words: list[str]) -> str:
        """The word of all trials of one size."""
        if not words or (self.claim.over == AVERAGE and NOT_RUN in words):
            return NOT_RUN
        if self.claim.over == AVERAGE and len(set(words)) > 1:
            return NOT_SEPARABLE  # what one task loses, another may gain
        return worst_of(words)

    def trials_of(self, size: str) -> list[TrialAnswer]:
        return [one for one in self.trials if one.trial.size == size]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": f"{self.source}/{self.claim.id}",
            "text": self.claim.text,
            "claimed": self.claim.claimed,
            "evidence": self.claim.evidence,
            "answer": self.word,
            "grounds": self.grounds,
            "direction_only": self.direction_only,
            "counted": self.counted.as_json() if self.counted else None,
            "band": None if self.band is None else {"answer": self.band[0] or None, "text": self.band[1]},
            "trials": [one.as_json() for one in self.trials],
            "untried": self.claim.untried,
        }


class ClaimLedger:
    """The runs folder, as claims ask it: each study is read once, and one that is damaged hides no other."""

    def __init__(self, runs: Path) -> None:
        self.runs, self._known = runs, set(study_names(runs))
        self._results: dict[str, Results] = {}

    def answer(self, trial: ClaimTrial) -> TrialAnswer:
        """What is on record for a trial."""
        try:
            cost = find_cost(trial)
        except FairtuneError as error:
            return TrialAnswer(trial, (), None, str(error))
        if trial.study not in self._known:
            return TrialAnswer(trial, (), cost)
        try:
            if trial.study not in self._results:
                self._results[trial.study] = load_results(self.runs, trial.study)
            results = self._results[trial.study]
            asked = {arm for claim in trial.claims for arm in claim.arms}
            if not is_of_trial(results.plan, load_trial(trial), asked):
                return TrialAnswer(trial, (), cost, other_trial=True)  # several profiles of a study may have one name
            return TrialAnswer(trial, tuple(answer_claims(results, trial.claims, PROTOCOL)), cost)
        except FairtuneError as error:
            return TrialAnswer(trial, (), cost, without_place(str(error), self.runs))


def answer_files(files: Mapping[str, ClaimFile], runs: Path) -> list[ClaimAnswer]:
    """Every claim of some sources with its answer.

    Raises:
        FairtuneError: the runs folder cannot be read.
    """
    ledger = ClaimLedger(runs)
    return [answer_one(source, claim, ledger) for source, file in files.items() for claim in file.claims]


def answer_one(source: str, claim: PublishedClaim, ledger: ClaimLedger) -> ClaimAnswer:
    """One claim with its answer."""
    counted = answer_counted(claim.counted) if claim.counted is not None else None
    band = judge_band(claim.band) if claim.band is not None else None
    trials = tuple(ledger.answer(trial) for trial in claim.trials)
    return ClaimAnswer(source, claim, trials, counted, band)


def count_words(found: list[ClaimAnswer]) -> dict[str, int]:
    """How many claims got which answer, in the order of `ANSWERS`."""
    return {word: count for word in ANSWERS if (count := sum(one.word == word for one in found))}


def without_place(text: str, runs: Path) -> str:
    """A message without the place of the runs folder on this machine."""
    return text.replace(f"{runs}/", "").replace(str(runs), "the runs folder")


def distinct_trials(found: list[ClaimAnswer]) -> Iterator[TrialAnswer]:
    """Each command once, in the order of the claims."""
    known: set[str] = set()
    for one in (trial for claim in found for trial in claim.trials):
        if one.trial.command not in known:
            known.add(one.trial.command)
            yield one
