"""Labels, reliabilities and what a labelling pass watches; measures of a map."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from fairtune import SOM

LINE = torch.arange(4, dtype=torch.float32)[:, None]  # prototypes of a map of four cells in a row, 0 to 3


def in_a_row(classes: int, update: str = "batch") -> SOM:
    som = SOM(1, (4, 1), classes, update=update)
    som.prototypes.copy_(LINE)
    return som


@pytest.mark.parametrize("update", ["batch", "sequential"])
def test_a_label_is_the_majority_and_no_label_is_minus_one(update: str) -> None:
    som = in_a_row(3, update)
    assert som.labels.tolist() == [-1] * 4
    x = torch.tensor([[0.1], [0.0], [-0.2], [1.0], [1.1], [0.9], [1.2], [3.0], [2.9]])
    y = torch.tensor([0, 0, 0, 2, 2, 1, 1, 2, 2])
    som.label(x, y)
    assert som.labels.tolist() == [0, 1, -1, 2]  # the second cell is a tie: the lowest class
    assert som.reliability.tolist() == [1.0, 0.5, 0.0, 1.0]
    assert som.counts.tolist() == [[3, 0, 0], [0, 2, 2], [0, 0, 0], [0, 0, 2]]


@pytest.mark.parametrize(
    ("majority", "total", "expected"), [(2, 3, 66), (19, 20, 95), (94, 99, 94), (5, 13, 38), (9, 24, 37)]
)
def test_reliability_is_whole_per_cents_rounded_down(majority: int, total: int, expected: int) -> None:
    som = in_a_row(20)
    som.label(torch.zeros(total, 1), torch.tensor([7] * majority + [8 + i % 12 for i in range(total - majority)]))
    assert som.labels[0] == 7
    assert som.reliability[0] == torch.tensor(expected / 100)
    assert (som.reliability[0] >= expected / 100).item()  # a threshold written as a decimal is met


def test_a_pass_in_batches_is_the_whole_pass() -> None:
    x, y = torch.rand(500, 6, generator=torch.Generator().manual_seed(0)), torch.arange(500) % 3
    som, again = SOM(6, 5, 3), SOM(6, 5, 3)
    whole, parts = som.label(x, y), again.labelling()
    for start in range(0, 500, 70):
        parts.add(x[start : start + 70], y[start : start + 70])
    parts.add(x[:0], y[:0])
    parts.finish()
    for name in ("labels", "reliability", "counts"):
        assert (getattr(som, name) == getattr(again, name)).all()
    for labelling in (whole, parts):
        assert labelling.examples == 500
        np.testing.assert_allclose(labelling.mean, x.double().mean(0), atol=1e-12)
        np.testing.assert_allclose(labelling.std, x.double().std(0, correction=0), atol=1e-12)
        expected = np.stack([np.histogram(unit, bins=20, range=(0, 1))[0] for unit in x.t().numpy()])
        assert (labelling.histogram.numpy() == expected).all()
        assert labelling.quantisation_error == pytest.approx(som.quantisation_error(x), rel=1e-6)
        assert labelling.topographic_error == som.topographic_error(x)
        per_example = som.reliability[som.winners(x).cells]
        assert labelling.mean_reliability == pytest.approx(per_example.double().mean().item())


def test_u_matrix_of_a_map_worked_out_by_hand() -> None:
    som = SOM(1, (3, 2))  # prototypes by column and row: 0 1 / 3 6 / 10 15
    som.prototypes.copy_(torch.tensor([[0.0], [1.0], [3.0], [6.0], [10.0], [15.0]]))
    expected = [
        (1 + 3 + 6) / 3,
        (1 + 2 + 5) / 3,
        (3 + 2 + 3 + 7 + 12) / 5,
        (6 + 5 + 3 + 4 + 9) / 5,
        (7 + 4 + 5) / 3,
        (12 + 9 + 5) / 3,
    ]
    np.testing.assert_allclose(som.u_matrix(), expected, rtol=1e-6)
    assert SOM(3, 1).u_matrix().tolist() == [0.0]  # a cell without neighbours


def test_hits_quantisation_and_topographic_error() -> None:
    som = in_a_row(2)
    x = torch.tensor([[0.25], [0.0], [2.0], [3.5]])
    assert som.hits(x).tolist() == [2, 0, 1, 1]
    assert som.quantisation_error(x) == pytest.approx((0.25 + 0 + 0 + 0.5) / 4)
    assert som.topographic_error(x) == 0.0
    som.prototypes.copy_(torch.tensor([[0.0], [2.0], [0.4], [3.0]]))  # folded: 0 and .4 are not neighbours
    assert som.topographic_error(torch.tensor([[0.1], [0.3], [2.6], [1.1]])) == 0.75  # 1.1 lies between neighbours
    assert SOM(3, 1).topographic_error(torch.rand(5, 3)) == 0.0


def test_fit_labels_the_map_and_goes_on_from_where_it_is() -> None:
    x, y = torch.rand(200, 4, generator=torch.Generator().manual_seed(0)), torch.arange(200) % 2
    som = SOM(4, 4, 2)
    assert som.fit(x, y, epochs=2) is som
    assert int(som.counts.sum()) == 200
    first = som.quantisation_error(x)
    som.fit(x, epochs=4, start="present", radius=(0, 0))
    assert som.quantisation_error(x) < first
    same = SOM(4, 4, 2).fit(x, y, epochs=2)
    other = SOM(4, 4, 2).fit(x, y, epochs=2, seed=1)
    assert (same.counts == som.counts).all()
    assert (other.prototypes != same.prototypes).any()
