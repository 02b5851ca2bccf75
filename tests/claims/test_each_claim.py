"""Every published claim that runs decide, with every answer that runs can give it, on small made ledgers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.report.made_ledger import STUDY, ArmSpec, make_study
from tests.report.made_text_ledger import TextArm, make_text_study
from tests.report.made_timing import time_ledger

from fairtune.analysis import claimed_costs
from fairtune.analysis.claim_answer import CONTRADICTED, IMPLAUSIBLE, NOT_RUN, NOT_SEPARABLE, SUPPORTED
from fairtune.analysis.claim_answers import answer_claims
from fairtune.analysis.results import Results, load_results
from fairtune.claims import answers
from fairtune.claims.answers import ClaimAnswer, ClaimLedger, answer_one
from fairtune.claims.published import LAPTOP, ClaimTrial, PublishedClaim, load_claims
from fairtune.claims.trial_costs import load_trial
from fairtune.settings.claims import MAP, Claim
from fairtune.tasks.corpora import is_text

RUNS = (SUPPORTED, CONTRADICTED, NOT_SEPARABLE)
RIGHT = (336, 338, 334)
LOSS = (1.45, 1.46, 1.44)
PUBLISHED = [
    (source, claim) for source, file in load_claims().items() for claim in file.claims if claim.trials_of(LAPTOP)
]
WITHOUT_RUNS = ("oelm/xnli-gain", "oelm/xnli-speed")
"""Decided by a band and by counting, which no run at another size overrules."""
MADE: dict[Any, Results] = {}
"""Ledgers by what is asked of them and what they are to answer: many claims ask the same of different studies."""


def name_of(one: tuple[str, PublishedClaim]) -> str:
    return f"{one[0]}/{one[1].id}"


def shares(asked: Claim, word: str) -> list[float]:
    """What a map was like in each seed, so that a claim about it is answered so."""
    claimed = sum(asked.map_share[1:]) / 200
    return {SUPPORTED: [claimed] * 3, CONTRADICTED: [0.41, 0.43, 0.40], NOT_SEPARABLE: [0.95, 0.15, 0.85]}[word]


def made_map(share: float) -> SimpleNamespace:
    return SimpleNamespace(use=share, mean_reliability=share, units=100 * (1 - share), units_at_start=100)


def steps(asked: Sequence[Claim], word: str) -> float:
    """How much faster an arm is, so that a claim about it is answered so: as claimed, or as fast as it may be, or was."""
    claimed = float(str(asked[0].faster).rstrip("x"))
    if claimed == 1:
        return 0.95 if word == CONTRADICTED else 1.02
    return 1.05 if word == CONTRADICTED and claimed < 1 else 1.0 if word == CONTRADICTED else claimed


def sign_of(asked: Sequence[Claim], word: str) -> int:
    """Whether the arm has to be the better one (1), the worse one (-1), or neither (0)."""
    turned = {SUPPORTED: 1, CONTRADICTED: -1, NOT_SEPARABLE: 0}[word]
    return -turned if asked[0].worse_than else turned


def others_of(asked: Sequence[Claim]) -> list[str]:
    names = [one.better_than or one.worse_than or one.as_good_as or one.than or "baseline" for one in asked]
    return list(dict.fromkeys(names))


def made_quality(runs: Path, asked: Sequence[Claim], word: str) -> Results:
    sign, arm, others = sign_of(asked, word), asked[0].arm, others_of(asked)
    noise = (15, -15, 3) if sign == 0 else (0, 1, -1)
    arms = {}
    for place, other in enumerate(["baseline", *(name for name in others if name != "baseline")]):
        learner = other if other == "tfidf" else None
        methods = [{"focal": {"gamma": float(place)}}] if place and not learner else []
        arms[other] = ArmSpec([250] * 3 if learner and sign > 0 else list(RIGHT), methods=methods, learner=learner)
    gains = [right + 30 * sign + noise[place] for place, right in enumerate(RIGHT)]
    arms[arm] = ArmSpec(gains, methods=[{"orthogonal_qk": {"init": "headwise"}}])
    make_study(runs, arms, margin="1.5%")
    return load_results(runs, STUDY)


def made_text(runs: Path, asked: Sequence[Claim], word: str) -> Results:
    sign, noise = sign_of(asked, word), (0.1, -0.1, 0.01)
    losses = [loss - 0.2 * sign + (noise[place] if sign == 0 else 0) for place, loss in enumerate(LOSS)]
    arms = {
        name: TextArm(list(LOSS), methods=[{"focal": {"gamma": 1.0}}] if place else [])
        for place, name in enumerate(dict.fromkeys(["baseline", *others_of(asked)]))
    }
    arms[asked[0].arm] = TextArm(losses, methods=[{"orthogonal_qk": {"init": "headwise"}}])
    make_text_study(runs, arms, margin="5%")
    return load_results(runs, STUDY)


def made_speed(runs: Path, asked: Sequence[Claim], word: str) -> Results:
    arm, other, qk = asked[0].arm, asked[0].than or "baseline", [{"orthogonal_qk": {"init": "headwise"}}]
    arms = {"baseline": ArmSpec([320] * 3), other: ArmSpec([320] * 3), arm: ArmSpec([320] * 3, methods=qk)}
    made = make_study(runs, arms)
    apart = {"again": 1.2} if word == NOT_SEPARABLE else {}
    time_ledger(made, {"baseline": 0.5, other: 0.5, arm: 0.5 / steps(asked, word)}, frozen=(arm,), **apart)
    return load_results(runs, STUDY)


def made_spread(runs: Path, asked: Sequence[Claim], word: str) -> Results:
    arm = str(asked[0].arm)
    made = make_study(runs, {"baseline": ArmSpec([320] * 3), arm: ArmSpec([320] * 3)})
    noise = {SUPPORTED: 0.001, CONTRADICTED: 0.1, NOT_SEPARABLE: 0.01}[word]
    time_ledger(made, {"baseline": 0.5, arm: 0.5}, noise={"baseline": 0.01, arm: noise})
    return load_results(runs, STUDY)


def made_results(trial: ClaimTrial, word: str, folder: Path) -> Results:
    asked, text = trial.claims, is_text(load_trial(trial).task)
    key = (tuple(map(str, asked)), text, word)
    if key not in MADE:
        runs = folder / trial.study / "runs"
        costs = made_speed if asked[0].faster else made_spread if asked[0].steadier_than else None
        make = costs or (made_text if text else made_quality)
        MADE[key] = make(runs, asked, word)
    return MADE[key]


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Asks a claim with ledgers of its laptop trials that give a word, or with none."""
    monkeypatch.setattr(answers, "is_of_trial", lambda *_: True)
    monkeypatch.setattr(answers, "answer_claims", lambda found, asked, _: answer_claims(found, asked))

    def ask(source: str, claim: PublishedClaim, word: str | None) -> ClaimAnswer:
        trials = {} if word is None else {trial.study: trial for trial in claim.trials_of(LAPTOP)}
        monkeypatch.setattr(answers, "study_names", lambda _: list(trials))
        monkeypatch.setattr(answers, "load_results", lambda _, study: made_results(trials[study], word or "", tmp_path))
        if word is not None and (use := next((a for t in trials.values() for a in t.claims if a.kind == MAP), None)):
            waiting = shares(use, word)
            monkeypatch.setattr(claimed_costs, "map_passes", lambda _: [made_map(waiting.pop(0))])
        published = claim.model_copy(update={"trials": tuple(claim.trials_of(LAPTOP))})
        return answer_one(source, published, ClaimLedger(tmp_path))

    return ask


@pytest.mark.parametrize("word", RUNS)
@pytest.mark.parametrize("one", [one for one in PUBLISHED if name_of(one) not in WITHOUT_RUNS], ids=name_of)
def test_runs_answer_it_so(one: tuple[str, PublishedClaim], word: str, answered: Any) -> None:
    found = answered(*one, word)
    assert found.word == word, "\n".join(str(answer) for trial in found.trials for answer in trial.answers)
    for answer in (answer for trial in found.trials for answer in trial.answers):
        assert answer.figures is not None
        assert answer.signature


def test_without_runs_nobody_knows_but_where_counting_or_a_band_decides(answered: Any) -> None:
    words = {name_of(one): answered(*one, None).word for one in PUBLISHED}
    assert {name: word for name, word in words.items() if word != NOT_RUN} == dict.fromkeys(WITHOUT_RUNS, IMPLAUSIBLE)


@pytest.mark.parametrize("name", WITHOUT_RUNS)
def test_what_is_implausible_stays_so_whatever_runs_show(name: str, answered: Any) -> None:
    one = next(one for one in PUBLISHED if name_of(one) == name)
    assert answered(*one, SUPPORTED).word == IMPLAUSIBLE
