"""An arm in which a method only looks on is what arms in which it acts are compared with, like with like."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_ledger import ArmSpec, make_study

from fairtune.methods.registry import is_control, parse_method_use
from fairtune.report.writer import make_content

OBSERVER = [{"bpsom": {"alpha": 0.0, "prune": None}}]


def use(*methods: object) -> list[object]:
    return [parse_method_use(method) for method in methods]


@pytest.mark.parametrize(
    ("control", "acting", "fits"),
    [
        (OBSERVER, ["bpsom"], True),
        (OBSERVER, [{"bpsom": {"grid": 10, "prune": None}}], True),
        (OBSERVER, [{"bpsom": {"hidden": 32}}], False),
        (["bpsom"], OBSERVER, False),
        (["bpsom"], [{"bpsom": {"alpha": 0.5}}], False),
        (OBSERVER, [{"bpsom": {"alpha": 0.0, "prune": None, "grid": 5}}], False),
        (["orthogonal_qk", *OBSERVER], ["orthogonal_qk", "bpsom"], True),
        (OBSERVER, ["orthogonal_qk", "bpsom"], False),
        ([{"orthogonal_qk": {"init": "keep"}}, *OBSERVER], ["orthogonal_qk", "bpsom"], False),
        (["orthogonal_qk"], ["orthogonal_qk"], False),
        ([], ["bpsom"], False),
    ],
)
def test_a_control_has_the_same_methods_with_some_of_them_idle(
    control: list[object], acting: list[object], fits: bool
) -> None:
    assert is_control(use(*control), use(*acting)) is fits


def test_arms_are_compared_with_the_observer_and_only_described_beside_the_baseline(tmp_path: Path) -> None:
    arms = {
        "baseline": ArmSpec([336, 338, 334]),
        "bpsom-observer": ArmSpec([330, 331, 329], methods=OBSERVER),
        "bpsom": ArmSpec([340, 342, 338], methods=[{"bpsom": {}}]),
        "bpsom-fast": ArmSpec([340, 342, 338], lr=1e-4, methods=[{"bpsom": {}}]),
    }
    results = make_study(tmp_path, arms).results()
    pairs = [(found.arm, found.reference) for found in results.comparisons]
    assert pairs == [("bpsom-observer", "baseline"), ("bpsom", "bpsom-observer"), ("bpsom-fast", "baseline")]
    fair = results.comparison("bpsom")
    assert fair is not None
    assert fair.difference == pytest.approx(10 / 400)
    found = {finding.arm: finding for finding in make_content(results).sections["findings"].findings}
    assert found["bpsom"].against == "bpsom-observer"
    assert " bpsom-observer" in found["bpsom"].text
    plain = "Not a verdict: against baseline, the plain difference is +1.00 points."
    assert plain in found["bpsom"].cautions
    assert not any("plain difference" in text for text in found["bpsom-observer"].cautions)
    assert found["bpsom-fast"].word == "not shown", "it has another learning rate and no control"


def test_an_observer_that_is_itself_the_reference_is_not_compared_with_twice(tmp_path: Path) -> None:
    arms = {
        "bpsom-observer": ArmSpec([330, 331, 329], methods=OBSERVER),
        "bpsom": ArmSpec([340, 342, 338], methods=[{"bpsom": {}}]),
    }
    results = make_study(tmp_path, arms).results()
    assert [(found.arm, found.reference) for found in results.comparisons] == [("bpsom", "bpsom-observer")]
