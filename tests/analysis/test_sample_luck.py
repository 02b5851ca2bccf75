"""The luck of a training sample that each seed draws for all its arms: counted in an arm's interval, no cause of false verdicts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from fairtune.analysis.statistics import holm

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def simulated_studies() -> Iterator[None]:
    sys.path.insert(0, str(BENCHMARKS))
    yield
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("sample_sd", [0.02, 0.05])
def test_samples_of_their_own_make_no_false_verdicts_and_are_in_the_interval(seeds: int, sample_sd: float) -> None:
    from simulated import World, compare, summarise

    generator, studies = np.random.default_rng([seeds, round(100 * sample_sd)]), 150
    world = World(seed_sd=0.02, sample_sd=sample_sd)
    false, covered, sure = 0, 0, 0
    for _ in range(studies):
        theirs, *others = world.study(generator, seeds, (0.0, 0.0))
        p = holm([compare(ours, theirs, own_samples=True).p for ours in others])
        false += any(one is not None and one < 0.05 for one in p)
        arm = summarise(theirs, own_samples=True)
        assert arm.low is not None
        assert arm.high is not None
        covered += arm.low <= world.mean <= arm.high
        sure += arm.high - arm.low < 2 * sample_sd / np.sqrt(seeds)
    assert false <= 0.05 * studies
    assert covered >= 0.94 * studies
    assert sure < 0.3 * studies, "nor are intervals narrower than the luck of samples allows"


def test_one_sample_for_all_seeds_is_not_in_the_interval() -> None:
    """Which is why reports say so: an interval over seeds cannot know what another sample would have given."""
    from simulated import World, summarise

    generator, world = np.random.default_rng(1), World(sample_sd=0.05, resampled=False)
    arms = [summarise(world.study(generator, 5, ())[0]) for _ in range(100)]
    assert np.mean([(arm.low or 0) <= world.mean <= (arm.high or 1) for arm in arms]) < 0.6
