"""Any two methods either train together or are refused when the study is read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.methods.registry import clashes, conflicts, parse_method_use, registered
from fairtune.study.loading import load_study
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401

FITTING: dict[str, Any] = {
    "bpsom": {"bpsom": {"hidden": 8, "grid": 3, "reliability": 0.5, "relabel": 2, "prune": 5e-4}},
    "pgd": {"pgd": {"steps": 2}},
    "freelb": {"freelb": {"steps": 2}},
    "ema": {"ema": {"decay": 0.9}},
    "peft": {"peft": {"target_modules": ["value"]}},
}
"""Settings that fit the toy task, where a method's own do not, or that make it quick."""
METHODS = {name: FITTING.get(name, name) for name in registered()}
VARIANTS = {**METHODS, "fgm-table": {"fgm": {"target": "table"}}, "peft-anywhere": "peft"}
"""Methods, and those settings of one that have needs of their own."""


def fits(names: tuple[str, ...]) -> bool:
    uses = [parse_method_use(VARIANTS[name]) for name in names]
    return not conflicts(uses) and not clashes(uses)


PAIRS = list(itertools.combinations(VARIANTS, 2))
REFUSED = [pair for pair in PAIRS if not fits(pair)]


def covering() -> list[tuple[str, ...]]:
    """Few arms of many methods, so that every pair that fits is in one of them, in the order of the list."""
    left, arms = {pair for pair in PAIRS if pair not in REFUSED}, []
    while left:
        arm = min(left)
        for name in VARIANTS:
            wider = tuple(sorted({*arm, name}, key=list(VARIANTS).index))
            if all(fits(pair) for pair in itertools.combinations(wider, 2)) and any(
                pair in left for pair in itertools.combinations(wider, 2) if name in pair
            ):
                arm = wider
        arms.append(arm)
        left -= set(itertools.combinations(arm, 2))
    return arms


def test_only_what_is_impossible_is_refused() -> None:
    alternatives = (
        {"focal", "weighted_ce", "label_smoothing"},
        {"fgm", "pgd", "freelb", "fgm-table"},
        {"bitfit", "peft", "peft-anywhere"},
        *({"fgm-table", freezing} for freezing in ("bitfit", "peft", "peft-anywhere")),
        {"orthogonal_qk", "peft-anywhere"},
    )
    pairs = {frozenset(pair) for some in alternatives for pair in itertools.combinations(some, 2)}
    assert {frozenset(pair) for pair in REFUSED} == pairs


@pytest.mark.parametrize("pair", REFUSED, ids="+".join)
def test_an_impossible_pair_is_refused_when_the_study_is_read(toy: ToyStudy, pair: tuple[str, str]) -> None:  # noqa: F811
    for order in itertools.permutations(pair):
        source = {**toy.source, "arms": {"baseline": {}, "both": {"methods": [VARIANTS[name] for name in order]}}}
        with pytest.raises(FairtuneError, match=r"arms\.both\.methods"):
            load_study(source)


@pytest.mark.parametrize("arm", covering(), ids="+".join)
def test_methods_that_fit_train_together(toy: ToyStudy, arm: tuple[str, ...]) -> None:  # noqa: F811
    listed = [VARIANTS[name] for name in arm]
    result = perform_here(toy.job("runs", listed, steps=4, accumulate=2, evaluate=2, eval_examples=20, examples=100))
    assert result["status"] == "finished", result.get("reason")
    assert 0.0 <= result["metrics"]["test"]["accuracy"] <= 1.0


ORDERED = [("bpsom", "peft"), ("orthogonal_qk", "peft")]
"""Pairs that fit in this order alone."""


@pytest.mark.parametrize("pair", ORDERED, ids="+".join)
def test_a_pair_in_the_wrong_order_is_refused_with_the_right_one(toy: ToyStudy, pair: tuple[str, str]) -> None:  # noqa: F811
    def read(names: Sequence[str]) -> None:
        load_study({**toy.source, "arms": {"baseline": {}, "both": {"methods": [METHODS[name] for name in names]}}})

    read(pair)
    with pytest.raises(FairtuneError, match=r"arms\.both\.methods.*list it (before|after) that"):
        read(pair[::-1])


def test_every_other_order_is_as_good(toy: ToyStudy) -> None:  # noqa: F811
    """The same arm backwards, but for the pairs that have an order."""
    names = [name for name in max(covering(), key=len) if name not in ("peft", "peft-anywhere")]
    listed = [VARIANTS[name] for name in reversed(names)]
    assert perform_here(toy.job("runs", listed, steps=4, examples=100, eval_examples=20))["status"] == "finished"
