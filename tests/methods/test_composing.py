"""Any two methods either train together or are refused when the study is read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from fairtune.core.errors import FairtuneError
from fairtune.methods.registry import registered
from fairtune.study.study_file import load_study
from fairtune.testing.checks import check_refused, check_together, fit, toy_use
from tests.execution.conftest import ToyStudy, perform_here, toy  # noqa: F401
from tests.methods.covering import covering_arms

METHODS = {name: toy_use(name) for name in registered()}
VARIANTS = {**METHODS, "fgm-table": {"fgm": {"target": "table"}}, "peft-anywhere": "peft"}
"""Methods, and those settings of one that have needs of their own."""


REFUSED = [pair for pair in itertools.combinations(VARIANTS, 2) if not fit([VARIANTS[name] for name in pair])]
COVERING = covering_arms(VARIANTS)


def test_only_what_is_impossible_is_refused() -> None:
    alternatives = (
        {"focal", "weighted_ce", "label_smoothing"},
        {"fgm", "pgd", "freelb", "fgm-table"},
        {"bitfit", "peft", "peft-anywhere"},
        *({"fgm-table", freezing} for freezing in ("bitfit", "peft", "peft-anywhere", "freeze")),
        {"orthogonal_qk", "peft-anywhere"},
    )
    pairs = {frozenset(pair) for some in alternatives for pair in itertools.combinations(some, 2)}
    assert {frozenset(pair) for pair in REFUSED} == pairs


@pytest.mark.parametrize("pair", REFUSED, ids="+".join)
def test_an_impossible_pair_is_refused_when_the_study_is_read(toy: ToyStudy, pair: tuple[str, str]) -> None:  # noqa: F811
    check_refused(toy, [VARIANTS[name] for name in pair])


@pytest.mark.parametrize("arm", COVERING, ids="+".join)
def test_methods_that_fit_train_together(toy: ToyStudy, arm: tuple[str, ...]) -> None:  # noqa: F811
    check_together(toy, [VARIANTS[name] for name in arm])


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
    names = [name for name in max(COVERING, key=len) if name not in ("peft", "peft-anywhere")]
    listed = [VARIANTS[name] for name in reversed(names)]
    assert perform_here(toy.job("runs", listed, steps=4, examples=100, eval_examples=20))["status"] == "finished"
