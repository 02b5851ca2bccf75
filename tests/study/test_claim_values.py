"""Claims as data: one statement each, every figure with its unit."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from fairtune.settings.claims import Claim


def refusal(claim: dict[str, Any]) -> str:
    """The fields that are refused, and why where that is no matter of form."""
    with pytest.raises(ValidationError) as caught:
        Claim(**claim)
    return "; ".join(f"{error['loc']}: {error['msg']}" for error in caught.value.errors())


def test_what_a_study_file_may_say() -> None:
    better = Claim(arm="oelm", better_than="baseline", by="0.5%")
    assert (better.kind, better.other, better.by, better.reading) == ("quality", "baseline", "0.5%", "at least")
    assert str(better) == "oelm is better than baseline by at least 0.5%"
    faster = Claim(arm="oelm", faster="1.3 x")
    assert (faster.kind, faster.faster, faster.factor) == ("speed", "1.3x", 1.3)
    share = Claim(arm="oelm", frozen="12.95 %")
    assert (share.kind, share.frozen) == ("share", "12.95%")
    assert share.share == (pytest.approx(0.1295), pytest.approx(0.00005)), "half of its last digit"
    assert Claim(arm="oelm", frozen="7%").share == (pytest.approx(0.07), pytest.approx(0.005))
    order = Claim(rank=("a", "b", "c"))
    assert (order.kind, order.arms, str(order)) == ("rank", ("a", "b", "c"), "rank a > b > c")
    assert str(Claim(arm="a", as_good_as="b")) == "a is as good as b, within the study's margin"


def test_which_claims_are_about_a_direction_alone() -> None:
    alone = [
        {"arm": "a", "better_than": "b"},
        {"arm": "a", "worse_than": "b"},
        {"rank": ("a", "b")},
        {"arm": "a", "faster": "1x"},
        {"arm": "a", "steadier_than": "b"},
    ]
    others: list[dict[str, Any]] = [
        {"arm": "a", "better_than": "b", "by": "1 points"},
        {"arm": "a", "as_good_as": "b"},
        {"arm": "a", "frozen": "7%"},
        {"arm": "a", "map_use": "92.6%"},
        {"arm": "a", "pruned": "10-30%"},
        {"arm": "a", "reliability": "95-100%"},
        {"arm": "a", "faster": "1.3x"},
    ]
    assert [Claim(**claim).direction_only for claim in (*alone, *others)] == [True] * 5 + [False] * 7
    assert all(str(Claim(**claim)) for claim in (*alone, *others))
    assert all(Claim(**Claim(**claim).model_dump()) == Claim(**claim) for claim in (*alone, *others)), (
        "written and read again"
    )


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ({"arm": "a", "better_than": "b", "by": "0.5"}, "('by',)"),
        ({"arm": "a", "better_than": "b", "by": "0 points"}, "('by',)"),
        ({"arm": "a", "faster": "57%"}, "('faster',)"),
        ({"arm": "a", "frozen": "112%"}, "('frozen',)"),
        ({"arm": "a"}, "makes one statement"),
        ({"arm": "a", "better_than": "b", "faster": "2x"}, "this one has better_than and faster"),
        ({"better_than": "b"}, "say of which arm"),
        ({"arm": "a", "rank": ("a", "b")}, "remove `arm`"),
        ({"rank": ("a", "a")}, "name each arm once"),
        ({"arm": "a", "better_than": "a"}, "compared with itself"),
        ({"arm": "a", "faster": "2x", "by": "1%"}, "by: goes with better_than or worse_than, not with faster"),
        ({"arm": "a", "frozen": "7%", "metric": "f1"}, "metric: goes with"),
    ],
)
def test_what_is_refused_says_why(claim: dict[str, Any], said: str) -> None:
    assert said in refusal(claim)
