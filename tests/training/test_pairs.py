"""Pairs of examples: of both kinds, never an example with itself, by the seed and the epoch alone, and no more than are used."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from fairtune.core.errors import RunFailure
from fairtune.settings.learners import count_pairs
from fairtune.training.contrastive import draw_pairs

LABELS = np.array([2, 0, 1, 0, 2, 0, 1, 2, 0, 0], dtype=np.int64)


@pytest.mark.parametrize("each", [1, 3, 20])
def test_every_example_has_as_many_pairs_of_both_kinds(each: int) -> None:
    pairs = draw_pairs(LABELS, each, seed=5, epoch=0)
    assert len(pairs) == count_pairs(len(LABELS), each) == 2 * each * len(LABELS)
    assert (pairs.first != pairs.second).all(), "none with itself"
    alike = LABELS[pairs.first] == LABELS[pairs.second]
    assert (alike == (pairs.same == 1)).all()
    for kind in (0.0, 1.0):
        assert np.bincount(pairs.first[pairs.same == kind]).tolist() == [each] * len(LABELS)


def test_all_partners_are_equally_likely() -> None:
    pairs = draw_pairs(LABELS, 6000, seed=1, epoch=0)
    for kind, partners in ((1.0, [3, 5, 8, 9]), (0.0, [0, 2, 4, 6, 7])):
        found = pairs.second[(pairs.first == 1) & (pairs.same == kind)]
        shares = np.bincount(found, minlength=len(LABELS)) / 6000
        assert np.flatnonzero(shares).tolist() == partners
        assert shares[partners] == pytest.approx(1 / len(partners), abs=0.03)


def test_pairs_follow_from_the_seed_and_the_epoch() -> None:
    drawn = {(seed, epoch): draw_pairs(LABELS, 4, seed, epoch).second.tolist() for seed in (1, 2) for epoch in (0, 1)}
    assert len({tuple(second) for second in drawn.values()}) == 4
    assert draw_pairs(LABELS, 4, 2, 1).second.tolist() == drawn[2, 1]


def test_the_only_example_of_a_class_gets_pairs_of_different_classes_instead() -> None:
    pairs = draw_pairs(np.array([0, 0, 0, 1]), 5, 0, 0)
    assert len(pairs) == 40
    assert pairs.same[pairs.first == 3].tolist() == [0.0] * 10
    assert (pairs.first != pairs.second).all()


@pytest.mark.parametrize(
    ("labels", "words"), [([0, 1, 2], "each class has one training example"), ([1, 1], "are of one class")]
)
def test_where_a_kind_of_pair_is_missing_that_is_said(labels: list[int], words: str) -> None:
    with pytest.raises(RunFailure, match=words):
        draw_pairs(np.array(labels), 2, 0, 0)


def test_memory_is_linear_in_the_pairs() -> None:
    labels = np.arange(20_000) % 4  # 200 million pairs there could be
    tracemalloc.start()
    pairs = draw_pairs(labels, 2, 0, 0)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * len(pairs)
