"""Printed figures: how they are read, and which of them a number of test examples can give."""

from __future__ import annotations

from fractions import Fraction

import pytest

from fairtune.analysis.printed_figures import find_counts, read_figures
from fairtune.core.errors import FairtuneError


@pytest.mark.parametrize(
    "line",
    [
        "93.12 vs 91.28",
        "93.12 vs. 91.28",
        "93.12 91.28",
        "  93.12   versus  91.28 ",
        "93.12 and 91.28",
        "93.12, 91.28",
        "93.12/91.28",
        "93.12 against 91.28",
        ".9312 vs .9128",
        "0.9312 vs 0.9128",
        "93.12% vs 91.28%",
        "93.12 % VS 91.28 %",
    ],
)
def test_every_way_of_writing_two_figures(line: str) -> None:
    first, second = read_figures(line)
    assert (first.percent, second.percent) == (Fraction(9312, 100), Fraction(9128, 100))
    assert first.places == second.places == 2
    assert str(first) == "93.12"


WITH_DEVIATION = [
    "93.12±0.3",
    "93.12 ± 0.3",
    "93.12+-0.3",
    "93.12 +/- .3",
    "93.12 (0.3)",
    "93.12 (±0.3)",
    "93.12 ± 0.3 %",
    ".9312±.003",
]


@pytest.mark.parametrize("line", WITH_DEVIATION)
def test_a_deviation_beside_a_figure(line: str) -> None:
    (figure,) = read_figures(line)
    assert (str(figure), figure.spread) == ("93.12", 0.3)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("", "has no figure"),
        ("   ", "has no figure"),
        ("good vs bad", "is not one figure or two"),
        ("93.12 vs", "is not one figure or two"),
        ("vs 93.12", "is not one figure or two"),
        ("93.12 vs vs 91.28", "is not one figure or two"),
        ("93.12-91.28", "is not one figure or two"),
        ("93.1291.28", "is not one figure or two"),
        ("nan vs inf", "is not one figure or two"),
        ("1e2", "is not one figure or two"),
        ("93 92 91", "has 3 figures"),
        ("93,12 vs 91,28", "write a decimal point"),
        ("0.93 vs 91.28", "one figure looks like a share"),
        ("93.12% vs 91.28", "one figure is in percent"),
        ("119 vs 91.28", "119 is not possible: accuracy lies between 0 and 100"),
        ("91.28 vs -3", "-3 is not possible"),
        ("91.28 vs −3", "-3 is not possible"),
        ("93.123456789012345", "at most 12 digits"),
        ("93.12±-0.3", "a deviation of -0.3 points cannot be"),
        ("9" * 300, "characters long"),
    ],
)
def test_what_is_no_figure_is_refused_in_a_sentence(line: str, told: str) -> None:
    with pytest.raises(FairtuneError) as error:
        read_figures(line)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_a_coefficient_may_be_negative() -> None:
    assert read_figures("58.9 vs -3", "mcc")[1].percent == -3


def test_the_count_behind_a_figure() -> None:
    first, second = (find_counts(figure, 872) for figure in read_figures("93.12 vs 91.28"))
    assert (first.low, first.high, first.total) == (812, 812, 872)
    assert (second.low, second.high) == (796, 796)
    assert first.share == pytest.approx(873 / 10001)


def test_an_impossible_figure_names_its_neighbours_and_what_it_could_be() -> None:
    found = find_counts(read_figures("93.15")[0], 872)
    assert not found.possible
    assert (found.below, found.above) == ("93.12", "93.23")
    assert found.seeds == (4,), "3,249 of 4 x 872"
    assert found.cut is None
    assert find_counts(read_figures("93.15")[0], 872, seeds=4).possible


def test_digits_that_were_cut_off_are_recognised() -> None:
    assert find_counts(read_figures("93.11")[0], 872).cut == 812


def test_with_many_examples_every_figure_is_possible_and_that_is_said() -> None:
    found = find_counts(read_figures("93.12")[0], 25_000)
    assert (found.low, found.high) == (23_279, 23_281)
    assert not found.says_something


@pytest.mark.parametrize("n", [1, 7, 71, 408, 872, 976, 2490, 9815])
@pytest.mark.parametrize("places", [0, 1, 2, 3])
def test_a_true_share_is_always_possible(n: int, places: int) -> None:
    for correct in {0, 1, n // 3, n // 2, n - 1, n}:
        for seeds in (1, 3):
            total = n * seeds
            printed = f"{100 * correct / total:.{places}f}%"
            found = find_counts(read_figures(printed)[0], n, seeds)
            assert found.low <= correct <= found.high, printed


def test_halves_may_be_rounded_either_way() -> None:
    """1 of 8 is 12.5, which some print as 12 and some as 13."""
    for printed in ("12%", "13%"):
        assert find_counts(read_figures(printed)[0], 8).low == 1
