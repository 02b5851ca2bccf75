"""What printed figures allow to say: numbers that are known, what an answer may be, and what is refused."""

from __future__ import annotations

import json
import math

import pytest

from fairtune.analysis import figure_luck as luck
from fairtune.analysis.figure_check import CANNOT_TELL, DEPENDS, MORE_THAN_LUCK, check_figures
from fairtune.analysis.figure_sentences import check_record, sections, title_sentence, verdict_sentence
from fairtune.analysis.reported_splits import reported_split, reported_tasks
from fairtune.core.errors import FairtuneError
from fairtune.settings.bands import known_seed_sd
from fairtune.tasks.definitions import CATALOGUE


@pytest.mark.parametrize(
    ("task", "examples", "share", "half"),
    [
        ("sst2", 872, 0.925, 1.75),
        ("mnli", 9_815, 0.838, 0.73),
        ("xnli", 2_490, 0.767, 1.66),
        ("mrpc", 408, 0.84, 3.56),
        ("imdb", 25_000, 0.942, 0.29),
        ("ag_news", 7_600, 0.9455, 0.51),
        ("titles", 976, 0.891, 1.96),
    ],
)
def test_half_widths_of_known_test_sets(task: str, examples: int, share: float, half: float) -> None:
    low, high = luck.wilson(share, examples)
    assert 50 * (high - low) == pytest.approx(half, rel=0.01), task


@pytest.mark.parametrize(
    ("task", "metric", "difference", "seeds"),
    [
        ("sst2", "accuracy", 0.5, 22),
        ("sst2", "accuracy", 1.0, 7),
        ("mnli", "accuracy", 0.5, 3),
        ("mrpc", "accuracy", 1.0, 20),
        ("cola", "mcc", 1.0, 19),
    ],
)
def test_seeds_per_arm_that_are_known(task: str, metric: str, difference: float, seeds: int) -> None:
    sd = known_seed_sd(task, metric)
    assert sd is not None
    assert luck.seeds_to_see(difference, 100 * sd) == seeds
    assert luck.smallest_seen(100 * sd, seeds) <= difference < luck.smallest_seen(100 * sd, seeds - 1)


def test_the_best_of_some() -> None:
    assert luck.best_of(1) == 0
    assert luck.best_of(2) == pytest.approx(1 / math.sqrt(math.pi), abs=1e-6)
    assert luck.best_of(5) == pytest.approx(1.16296, abs=1e-5)
    assert luck.best_of(100) == pytest.approx(2.50759, abs=1e-4)
    for sd, seen in ((1.06, 1.53), (0.57, 0.43), (1.09, 1.42)):  # published: best of five less their mean
        assert 0.5 < seen / (luck.best_of(5) * sd) < 1.5


def test_mcnemar_from_best_to_worst_case() -> None:
    found = luck.paired_range(812, 796, 872)
    assert (found.fewest, found.most) == (16, 60 + 76)
    assert found.least_p == pytest.approx(2 * 0.5**16)
    assert found.least_p < found.usual_p < found.most_p == pytest.approx(0.198, abs=1e-3)
    assert found.enough is not None
    assert luck.mcnemar(found.enough, 16) < 0.05 <= luck.mcnemar(found.enough + 2, 16)
    assert luck.paired_range(80, 83, 100).enough is None, "three examples cannot show anything"
    assert luck.paired_range(90, 90, 100).least_p == 1


def test_one_run_each_on_sst2_tells_nothing() -> None:
    found = check_figures("93.12 vs 91.28", task="sst2")
    assert found.question.examples == 872
    assert found.answer == CANNOT_TELL
    assert found.seed_errors[0] == pytest.approx(0.57 * math.sqrt(2))
    assert verdict_sentence(found).startswith("These two figures alone cannot tell the two apart")
    assert "significant" not in json.dumps(check_record(found))


def test_without_a_known_deviation_it_depends_and_the_range_is_stated() -> None:
    found = check_figures("93.12 vs 91.28", 872)
    assert found.answer == DEPENDS
    text = " ".join(sections(found)["Luck of seeds"])
    assert "0.16 to 1.09 points, assumed" in text
    assert "do not decide it" in verdict_sentence(found)


def test_a_large_difference_is_more_than_luck_and_the_condition_is_said() -> None:
    found = check_figures("93.12 vs 81.28", 872, seeds=(5, 5), sd=0.57)
    assert found.answer == MORE_THAN_LUCK
    assert "if nothing else differs between the two" in verdict_sentence(found)
    assert any("tuned alike" in line for line in sections(found)["What nobody can tell from printed figures"])


def test_picking_is_taken_off_what_was_picked_alone() -> None:
    plain = check_figures("92.9 vs 92.0", 10_000, seeds=(1, 1), sd=0.1)
    one = check_figures("92.9 vs 92.0", 10_000, best_of=(10, 1), sd=0.1)
    both = check_figures("92.9 vs 92.0", 10_000, best_of=(10, 10), sd=0.1)
    other = check_figures("92.9 vs 92.0", 10_000, best_of=(1, 10), sd=0.1)
    assert plain.left == both.left
    assert one.left[0] == pytest.approx(plain.left[0] - 0.1 * luck.best_of(10))
    assert other.left[0] > plain.left[0], "the lower one was picked, and is lower all the same"
    assert "without the luck of picking" in verdict_sentence(one)
    assert "the best of 10 is above their mean by 0.15 points" in " ".join(sections(one)["Picking the best"])


def test_the_order_of_the_figures_changes_a_sign_and_no_answer() -> None:
    one, other = check_figures("93.12 vs 91.28", 872, sd=0.4), check_figures("91.28 vs 93.12", 872, sd=0.4)
    assert one.difference == -other.difference
    assert (one.answer, one.reach) == (other.answer, other.reach)


def test_printed_deviations_count_for_their_own_figure() -> None:
    found = check_figures("93.12±0.3 vs 91.28±0.5", 872, seeds=(5, 5))
    assert found.question.luck.low == (0.3, 0.5)
    assert found.seed_errors[0] == pytest.approx(math.sqrt((0.09 + 0.25) / 5))
    assert "taken for standard deviations" in " ".join(sections(found)["Luck of seeds"])


def test_one_figure_alone() -> None:
    found = check_figures("93.15", 872)
    assert found.answer is None
    assert verdict_sentence(found) == "93.15 is no accuracy that 872 examples can give (nearest: 93.12 and 93.23)."
    assert "What nobody can tell from printed figures" not in sections(found)
    assert "can be such a score" in verdict_sentence(check_figures("93.12", 872))


def test_other_metrics_are_no_multiple_of_anything() -> None:
    found = check_figures("58.9 vs 56.3", task="cola")
    assert title_sentence(found) == "58.9 vs 56.3: MCC, one run each"
    assert found.counts == []
    assert "no multiple of 1/n" in sections(found)["Possible figures"][0]
    assert found.reach[0] == found.reach[1], "seeds alone are counted"
    far = check_figures("88.9 vs 6.3", task="cola")
    assert "the luck of the test set is not counted" in verdict_sentence(far)


def test_equal_and_extreme_figures() -> None:
    assert "are the same" in verdict_sentence(check_figures("90 vs 90", 100))
    for line in ("100 vs 0", "0% vs 100%", "100 vs 100", "100 vs 99.9", "1 vs 0"):
        found = check_figures(line, 10)
        json.dumps(check_record(found), allow_nan=False)
        assert found.unpaired is not None
        assert found.unpaired > 0, "a share of all is not taken for certain"
        sections(found)


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"examples": 0}, "--n: found 0"),
        ({"examples": -5}, "--n: found -5"),
        ({"examples": 10**10}, "--n: found 10000000000"),
        ({}, "how many test examples?"),
        ({"examples": 872, "seeds": (0, 0)}, "--seeds: found 0; it must be from 1 to 1,000"),
        ({"examples": 872, "best_of": (0, 1)}, "--best-of: found 0, 1"),
        ({"examples": 872, "sd": 0.0}, "--sd: found 0"),
        ({"examples": 872, "sd": math.nan}, "--sd: found nan"),
        ({"task": "sst3"}, "Did you mean 'sst2'?"),
        ({"examples": 872, "metric": "loss"}, "--metric: 'loss' is none of accuracy"),
        ({"examples": 872, "metric": "acuracy"}, "Did you mean 'accuracy'?"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, object], told: str) -> None:
    with pytest.raises(FairtuneError) as error:
        check_figures("93.12 vs 91.28", **asked)  # type: ignore[arg-type]
    assert told in str(error.value)


def test_a_deviation_needs_seeds_and_is_given_once() -> None:
    with pytest.raises(FairtuneError, match="takes two seeds or more"):
        check_figures("93.12±0.3 vs 91.28±0.5", 872)
    with pytest.raises(FairtuneError, match="give one of the two"):
        check_figures("93.12±0.3 vs 91.28±0.5", 872, seeds=(5, 5), sd=0.3)


def test_a_size_that_is_given_counts_and_the_task_still_gives_its_deviation() -> None:
    found = check_figures("80.1 vs 79.0", 9_832, task="mnli")
    assert found.question.examples == 9_832
    assert found.question.split is None
    assert found.question.luck.low == pytest.approx((0.16, 0.16))


def test_sizes_are_those_of_the_catalogue() -> None:
    sizes = {name: {*task.data.rows.values()} for name, task in CATALOGUE.items()}
    for task in reported_tasks():
        found = reported_split(task)
        assert found is not None
        held = sizes.get(task) or sizes.get(f"{task}/en")
        assert held is None or found.examples in held, task
    assert {task for task in reported_tasks() if task not in sizes} == {"xnli"}
    other = reported_split("xnli/de")
    assert other is not None
    assert other.examples == 5_010
