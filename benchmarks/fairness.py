"""How often verdicts are wrong, and advice right, in simulated studies of which the truth is known.

    python benchmarks/fairness.py looks [--studies 1000]       verdicts taken again and again while seeds are added
    python benchmarks/fairness.py more-seeds [--studies 400]   "k more seeds": settled after k?
    python benchmarks/fairness.py power [--studies 200]        power on paper against simulated studies
    python benchmarks/fairness.py dropped [--studies 1000]     a null that loses its worst 30 % of runs
    python benchmarks/fairness.py tuned [--studies 1000]       settings chosen by trials, with and without matched controls
    python benchmarks/fairness.py samples [--studies 1000]     few labels: the luck of the training sample
    python benchmarks/fairness.py suites [--studies 1000]      verdicts over tasks: whose effects scatter, good on one of them

Studies are those of benchmarks/simulated.py: 1,000 test examples, an accuracy of 85 %, one point of luck by seed, unless said
otherwise. Verdicts are the product's own at 95 %. Each prints its seed and number of studies; same seed, same table.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from fairtune.analysis import verdicts
from fairtune.analysis.arms_over_tasks import judge_arms
from fairtune.analysis.looks import EXTENSION, LOOKS, MOST, overall_p
from fairtune.analysis.missing_runs import count_missing, stand_in
from fairtune.analysis.power import (
    EXAMPLES,
    MANY,
    MARGIN,
    MOST_ADVISED,
    SEEDS,
    detectable,
    expected_noise,
    level_after,
    seeds_to_settle,
)
from fairtune.analysis.statistics import PairedDifference, freedom, holm
from fairtune.analysis.suite_cells import COUNTED, ArmCell
from fairtune.analysis.verdicts import BETTER, NOT_SEPARABLE, WORSE
from simulated import Floats, World, compare, summarise

RISK = 0.05
NULL = (0.0,) * 4
LOST = 0.3


def found_at(study: Sequence[Floats], n: int, own_samples: bool = False) -> list[PairedDifference]:
    """All arms against the first, over the first n seeds."""
    return [compare(arm[:n], study[0][:n], own_samples=own_samples) for arm in study[1:]]


def shown(p_values: Sequence[float | None]) -> list[bool]:
    return [p is not None and p < RISK for p in holm(p_values)]


# --- looks: each way goes through a study's looks and says which comparisons it calls, and with how many seeds.

Way = Callable[[dict[int, list[float]], list[PairedDifference]], tuple[list[bool], int]]


def _fixed(n: int) -> Way:
    return lambda ps, _: (shown(ps[n]), n)


def _naive(ps: dict[int, list[float]], _first: list[PairedDifference]) -> tuple[list[bool], int]:
    """At 5 % at every look, until something shows."""
    for n in LOOKS:
        if any(shown(ps[n])):
            return shown(ps[n]), n
    return shown(ps[n]), n


def _old_advice(ps: dict[int, list[float]], first: list[PairedDifference]) -> tuple[list[bool], int]:
    """At 5 % with three seeds, and if nothing shows once more with as many as would make an interval narrow enough."""
    if any(shown(ps[3])):
        return shown(ps[3]), 3
    n = min(MOST, max(4, min((_narrow_enough(found) for found in first), default=4)))
    return shown(ps[n]), n


def _narrow_enough(found: PairedDifference) -> int:
    """Seeds at which the interval would be narrower than the difference is large: what fairtune once advised."""
    one_seed, examples = found.seed_variance * found.n, max(0.0, found.total_variance - found.seed_variance)
    for n in range(found.n + 1, MOST + 1):
        total = one_seed / n + examples
        df = freedom(n, one_seed / n, total)
        if stats.t.ppf(1 - RISK / 2, df) * math.sqrt(total) < abs(found.difference):
            return n
    return MOST


def _counted(looks: tuple[int, ...], first: float = 0.0, later: float = 1.0) -> Way:
    """O'Brien-Fleming over all looks with a share of the risk; the first look at a share of its own (0: as the others).

    Goes on until every comparison is decided or the looks are over.
    """

    def go(ps: dict[int, list[float]], _first: list[PairedDifference]) -> tuple[list[bool], int]:
        best = [1.0] * len(ps[looks[0]])
        for place, n in enumerate(looks):
            for arm, p in enumerate(ps[n]):
                overall = p / first if first and place == 0 else overall_p(p, looks[: place + 1], MOST) / later
                best[arm] = min(best[arm], overall, 1.0)
            called = shown(best)
            if all(called):
                break
        return called, n

    return go


WAYS: dict[str, Way] = {
    "fixed n = 3": _fixed(3),
    "fixed n = 5": _fixed(5),
    "fixed n = 20": _fixed(20),
    "5 % at 3, 5, 8, 12, 20": _naive,
    "3, then 'k more seeds' as before": _old_advice,
    "planned looks 3, 5, 8, 12, 20": _counted(LOOKS),
    "planned looks, each seed 3 to 20": _counted(tuple(range(3, 21))),
    "3 at 5 %, then looks 8, 12, 20": _counted((3, 8, 12, 20), first=1.0),
    "5 at 5 %, then looks 8, 12, 20": _counted((5, 8, 12, 20), first=1.0),
    "3 at 5 %, then looks at 2.5 %": _counted((3, 8, 12, 20), first=1.0, later=0.5),
    "5 at 5 %, then looks at 2.5 %": _counted((5, 8, 12, 20), first=1.0, later=0.5),
    "3 as planned, then added seeds": _counted((3, 8, 12, 20), first=1.0, later=EXTENSION),
    "5 as planned, then added seeds": _counted((5, 8, 12, 20), first=1.0, later=EXTENSION),
    "3 at 4 %, then looks at 1 %": _counted((3, 8, 12, 20), first=0.8, later=0.2),
    "5 at 4 %, then looks at 1 %": _counted((5, 8, 12, 20), first=0.8, later=0.2),
    "3 at 2.5 %, then looks at 2.5 %": _counted((3, 8, 12, 20), first=0.5, later=0.5),
    "5 at 2.5 %, then looks at 2.5 %": _counted((5, 8, 12, 20), first=0.5, later=0.5),
}


def looks(studies: int, seed: int) -> None:
    """False verdicts and power of ways to add seeds: 5 arms, 4 comparisons."""
    print(
        "null: % of studies with any false verdict; 1, 2, 4 points (all four arms): % of comparisons called; mean seeds"
    )
    print(f"{'':36} {'null':>6} {'seeds':>6}" + "".join(f" {f'{e} pt':>6} {'seeds':>6}" for e in (1, 2, 4)))
    rows: dict[str, list[str]] = {way: [] for way in WAYS}
    for effect, count in ((0, studies), (1, studies // 5), (2, studies // 5), (4, studies // 5)):
        generator = np.random.default_rng([seed, effect])
        called: dict[str, list[float]] = {way: [] for way in WAYS}
        seeds: dict[str, list[int]] = {way: [] for way in WAYS}
        for _ in range(count):
            study = World().study(generator, MOST, (effect / 100,) * 4)
            found = {n: found_at(study, n) for n in range(3, MOST + 1)}
            ps = {n: [1.0 if f.p is None else f.p for f in at] for n, at in found.items()}
            for way, go in WAYS.items():
                verdicts, n = go(ps, found[3])
                called[way].append(float(np.mean(verdicts)) if effect else float(any(verdicts)))
                seeds[way].append(n)
        for way in WAYS:
            rows[way].append(f" {100 * np.mean(called[way]):6.1f} {np.mean(seeds[way]):6.1f}")
    for way, row in rows.items():
        print(f"{way:36}" + "".join(row))


# --- more seeds


def more_seeds(studies: int, seed: int) -> None:
    """Of the comparisons that were open and got a number, how many are settled by it; one arm of the family has an effect."""
    print(
        "k is the upper end of the range, in all; an open comparison gets a number of seeds, or one of three other answers.\n"
        "anew: a new study of so many; planned: the next of planned looks; added: by hand, after a verdict was seen"
    )
    print(
        f"{'start':>5} {'family':>6} {'looks':>7} {'points':>6} {'open':>5} {'number':>6} {'margin':>6} {'examples':>8} "
        f"{'many':>5} {'median k':>9} {'settled %':>9}"
    )
    for start, family, effect in itertools.product((3, 5), (1, 4), (1, 2, 4)):
        generator = np.random.default_rng([seed, start, family, effect])
        tallies: dict[str, Counter[str]] = {way: Counter() for way in ("anew", "planned", "added")}
        ks: dict[str, list[int]] = {way: [] for way in tallies}
        for _ in range(studies):
            study = World().study(generator, MOST_ADVISED, (effect / 100, *NULL[: family - 1]))
            first = found_at(study, start)
            if shown([f.p for f in first])[0]:
                continue
            for looked, tally in tallies.items():
                taken, share = () if looked == "anew" else (start,), EXTENSION if looked == "added" else 1.0
                outlook = seeds_to_settle(first[0], level_after(taken, family, RISK * share), units=1000)
                assert outlook is not None
                if looked == "added" and (outlook.high or 0) > MOST:
                    tally[MANY] += 1  # fairtune advises a new study then
                    continue
                tally[outlook.kind] += 1
                if outlook.kind == SEEDS and outlook.high is not None:
                    ps = [1.0 if f.p is None else f.p for f in found_at(study, outlook.high)]
                    ks[looked].append(outlook.high)
                    if taken:
                        ps = [overall_p(p, (start, outlook.high), MOST) / share for p in ps]
                    tally["settled"] += shown(ps)[0]
        for looked, tally in tallies.items():
            still_open, given = sum(tally[kind] for kind in (SEEDS, MARGIN, EXAMPLES, MANY)), tally[SEEDS]
            print(
                f"{start:5} {family:6} {looked:>7} {effect:6} {still_open:5} {given:6} {tally[MARGIN]:6} {tally[EXAMPLES]:8} "
                f"{tally[MANY]:5} {np.median(ks[looked] or [math.nan]):9.0f} {100 * tally['settled'] / max(1, given):9.0f}",
                flush=True,
            )


# --- power


def power(studies: int, seed: int) -> None:
    """The difference that is seen with 80 % on paper and in simulated studies, one arm of the family being different."""
    print("difference seen with 80 % chance, in points: on paper, in simulated studies, and their ratio (0.85 to 1.15)")
    print(f"{'seeds':>5} {'examples':>8} {'sd':>4} {'family':>6} {'paper':>6} {'simulated':>9} {'ratio':>6}")
    ratios = []
    for n, examples, sd, family in itertools.product((3, 5, 10), (400, 1821), (0.005, 0.01, 0.02), (1, 4, 7)):
        world = World(examples, sd)
        paper = detectable(expected_noise(sd, examples, world.accuracy), n, RISK / family)
        generator = np.random.default_rng([seed, n, examples, round(1000 * sd), family])
        tried, seen = (0.8, 1.0, 1.2), []
        for factor in tried:
            hits = 0
            for _ in range(studies):  # a loss: gains would meet the ceiling where only large differences show
                study = world.study(generator, n, (-factor * paper, *(0.0,) * (family - 1)))
                hits += shown([f.p for f in found_at(study, n)])[0]
            seen.append(stats.norm.ppf((hits + 0.5) / (studies + 1)))
        slope, start = np.polyfit(tried, seen, 1)
        simulated = paper * (stats.norm.ppf(0.8) - start) / slope
        ratios.append(paper / simulated)
        print(
            f"{n:5} {examples:8} {100 * sd:4.1f} {family:6} {100 * paper:6.2f} {100 * simulated:9.2f} {ratios[-1]:6.2f}",
            flush=True,
        )
    within = np.mean([0.85 <= ratio <= 1.15 for ratio in ratios])
    print(f"within 15 %: {100 * within:.0f} % of {len(ratios)}; ratios {min(ratios):.2f} to {max(ratios):.2f}")


# --- dropped


def dropped(studies: int, seed: int) -> None:
    """False "better" (and true ones, at 2 and 4 points) of one comparison that loses its worst runs, by what they count as."""
    rules = ("dropped", "worst of its arm", "worst less range", "worst of both", "chance")
    print(
        '% of studies that say "better" with missing runs dropped; then, those that still do with them counted as ...'
    )
    print(f"{'seeds':>5} {'sd':>4} {'points':>6} {'lost in':>8}" + "".join(f" {rule:>16}" for rule in rules))
    for sd, points, n, where in itertools.product((0.01, 0.02), (0, 2, 4), (5, 10), ("ours", "both")):
        generator, better = np.random.default_rng([seed, round(1000 * sd), points, n, len(where)]), Counter[str]()
        count = studies if points == 0 else studies // 4
        for _ in range(count):
            theirs, ours = World(seed_sd=sd).study(generator, n, (points / 100,))
            for rule in _still_better(generator, ours, theirs, where):
                better[rule] += 1
        shares = "".join(f" {100 * better[rule] / count:16.1f}" for rule in rules)
        print(f"{n:5} {100 * sd:4.0f} {points:6} {where:>8}{shares}", flush=True)


def _still_better(generator: np.random.Generator, ours: Floats, theirs: Floats, where: str) -> list[str]:
    scores = [arm.mean(axis=1, dtype=np.float64).tolist() for arm in (ours, theirs)]
    kept = [_lose_worst(generator, scores[0]), _lose_worst(generator, scores[1]) if where == "both" else scores[1]]
    pairs = [place for place, pair in enumerate(zip(*kept, strict=True)) if None not in pair]
    if len(pairs) < 2:
        return []
    found = compare(ours[pairs], theirs[pairs])
    if found.p is None or found.p >= RISK or found.difference <= 0:
        return []
    a, b = ([score for score in arm if score is not None] for arm in kept)
    values = {
        "worst of its arm": (min(a), min(b)),
        "worst less range": (stand_in(a), stand_in(b)),
        "worst of both": (min(a + b), min(a + b)),
        "chance": (0.5, 0.5),
    }
    counted = {rule: count_missing(found, *kept, pair) for rule, pair in values.items()}
    return ["dropped"] + [rule for rule, f in counted.items() if f.p is not None and f.p < RISK and f.difference > 0]


def _lose_worst(generator: np.random.Generator, scores: list[float]) -> list[float | None]:
    """Without the worst 30 %, one more or less by chance where that is no whole number."""
    lost = int(LOST * len(scores) + generator.random())
    worst = set(np.argsort(scores)[:lost].tolist())
    return [None if place in worst else score for place, score in enumerate(scores)]


# --- tuned: each arm chooses among four settings by a few trials; are verdicts about the method, or about the choice?

SETTINGS = {"one clearly best": (-5, -1, 0, -2), "two alike": (-1, 0, 0, -1), "best at another": (-5, -1, 0, -2)}
SHIFTED = {"best at another": (-5, -2, 0, 2)}
"""Points that each setting is below the best one; and what the method makes of them where that is not the same for all."""


def tuned(studies: int, seed: int) -> None:
    print("% of studies with a verdict on tuned arms: alone, and where it must hold beside the matched control too")
    print(f"{'settings':>18} {'gain':>5} {'trial seeds':>11} {'seeds':>5} {'differ':>7} {'alone':>7} {'both':>7}")
    for (name, truth), gain, tries, n in itertools.product(SETTINGS.items(), (0, 2, 4), (1, 2), (5, 10)):
        generator, counts = np.random.default_rng([seed, len(name), gain, tries, n]), Counter[str]()
        rates = [np.array(truth) / 100, np.array(SHIFTED.get(name, truth)) / 100 + gain / 100]
        if name in SHIFTED and gain:
            continue
        for _ in range(studies):
            difficulty = generator.standard_normal(1000, dtype=np.float32)
            theirs, ours = (_choose(generator, own, tries) for own in rates)
            world = World()
            arm = world.arm(generator, difficulty, n, rates[1][ours])
            partner = world.arm(generator, difficulty, n, rates[0][theirs])
            alone = compare(arm, partner)
            said = alone.p is not None and alone.p < RISK
            counts["differ"] += ours != theirs
            counts["alone"] += said
            if said and ours != theirs:
                beside = compare(arm, world.arm(generator, difficulty, n, rates[0][ours]))
                said = beside.p is not None and beside.p < RISK and beside.difference * alone.difference > 0
            counts["both"] += said
        shares = "".join(f" {100 * counts[key] / studies:7.1f}" for key in ("differ", "alone", "both"))
        print(f"{name:>18} {gain:5} {tries:11} {n:5}{shares}", flush=True)


def _choose(generator: np.random.Generator, rates: npt.NDArray[np.float64], tries: int) -> int:
    """The setting with the best mean score of its trials, each with a point of luck by seed and that of 400 examples."""
    luck = math.hypot(0.01, math.sqrt(0.85 * 0.15 / 400) / 2)  # most of the examples' luck is shared by all trials
    return int((rates[:, None] + luck * generator.standard_normal((len(rates), tries))).mean(axis=1).argmax())


# --- samples


def samples(studies: int, seed: int) -> None:
    """Few labels: the sample's luck, shared by the arms of a seed, beside that of seeds and examples; 5 arms, all alike."""
    print(
        "false: % of studies with any false verdict among 4 comparisons; covered: % of 95 % intervals of an arm's mean that hold\n"
        "its mean over all samples; with a sample for each seed, and with the same one for all seeds"
    )
    print(f"{'seeds':>5} {'sample sd':>9} {'seed sd':>7} | {'false':>6} {'covered':>8} | {'false':>6} {'covered':>8}")
    for n, sample_sd, seed_sd in itertools.product((3, 5), (0.02, 0.05), (0.01, 0.02)):
        cells = []
        for resampled in (True, False):
            world = World(seed_sd=seed_sd, sample_sd=sample_sd, resampled=resampled)
            generator = np.random.default_rng([seed, n, round(1000 * sample_sd), round(1000 * seed_sd)])
            false, covered = 0, 0
            for _ in range(studies):
                study = world.study(generator, n, NULL)
                false += any(shown([found.p for found in found_at(study, n, resampled)]))
                arm = summarise(study[0], own_samples=resampled)
                covered += arm.low is not None and arm.high is not None and arm.low <= world.mean <= arm.high
            cells.append(f"{100 * false / studies:6.1f} {100 * covered / studies:8.1f}")
        print(f"{n:5} {100 * sample_sd:9.0f} {100 * seed_sd:7.0f} | {cells[0]} | {cells[1]}", flush=True)


# --- suites: one verdict over tasks, beside two simpler ways to one.

WAYS = ("ours", "t alone", "luck alone")
SUITES = {
    "no effect": (0.0, 0.0, False),
    "scatter about 0": (0.0, 0.02, False),
    "4 points on one": (0.04, 0.0, True),
    "1 point on all": (0.01, 0.0, False),
    "2 points on all": (0.02, 0.0, False),
    "2 points, scatter": (0.02, 0.02, False),
}
"""Of tasks: the mean effect, its standard deviation over tasks, and whether only one of them has it."""


def suites(studies: int, seed: int) -> None:
    """How often an arm is called better or worse over tasks, and how often the interval holds the mean of all such tasks."""
    print(
        "an arm over tasks, 5 seeds each; scatter: 2 points from task to task. better, worse, mixed: % of suites, by the product;"
    )
    print(
        "then % called better or worse by a t test over tasks without a floor, and by the luck of seeds and examples alone;"
    )
    print("covered: % of 95 % intervals of the mean that hold the mean effect of all such tasks")
    print(
        f"{'effects':18} {'tasks':>5} | {'better':>6} {'worse':>6} {'mixed':>6} {'covered':>8} | {'t alone':>8} {'luck alone':>10}"
    )
    for place, (name, (mean, scatter, single)) in enumerate(SUITES.items()):
        for tasks in (3, 4, 6):
            generator = np.random.default_rng([seed, tasks, place])
            counts: Counter[str] = Counter()
            for _ in range(studies):
                effects = mean + scatter * generator.standard_normal(tasks)
                if single:
                    effects[1:] = 0.0
                truth = mean / tasks if single else mean
                counts.update(_suite(generator, np.clip(effects, -0.12, 0.12), truth))
            rates = {key: 100 * counts[key] / studies for key in ("better", "worse", "mixed", "covered", *WAYS[1:])}
            ours = " ".join(f"{rates[key]:6.1f}" for key in ("better", "worse", "mixed"))
            others = f"{rates['t alone']:8.1f} {rates['luck alone']:10.1f}"
            print(f"{name:18} {tasks:5} | {ours} {rates['covered']:8.1f} | {others}", flush=True)


def _word(found: PairedDifference) -> str:
    """A study's verdict of its only arm."""
    return NOT_SEPARABLE if found.p is None or found.p >= RISK else BETTER if found.difference > 0 else WORSE


def _suite(generator: np.random.Generator, effects: npt.NDArray[np.float64], truth: float) -> list[str]:
    """What is said of one simulated suite."""
    found = []
    for effect in effects.tolist():
        study = World().study(generator, 5, (effect,))
        found.append(compare(study[1], study[0]))
    cells = [
        ArmCell(f"t{place}", f"t{place}", "m", "g", COUNTED, word=_word(one), n=5, found=one)
        for place, one in enumerate(found)
    ]
    kept, verdicts.seeds_to_settle = (
        verdicts.seeds_to_settle,
        lambda *_: None,
    )  # advice in seeds, which takes longest of all
    try:
        (line,) = judge_arms({"arm": cells}, "accuracy", 1 - RISK)
    finally:
        verdicts.seeds_to_settle = kept
    said = [line.verdict.word]
    if line.found.low is not None and line.found.high is not None and line.found.low <= truth <= line.found.high:
        said.append("covered")
    said += ["t alone"] if stats.ttest_1samp([one.difference for one in found], 0).pvalue < RISK else []
    said += ["luck alone"] if 2 * stats.norm.sf(abs(line.found.difference) / math.sqrt(line.within)) < RISK else []
    return said


PARTS = {
    "looks": (looks, 1000),
    "more-seeds": (more_seeds, 400),
    "power": (power, 200),
    "dropped": (dropped, 1000),
    "tuned": (tuned, 1000),
    "samples": (samples, 1000),
    "suites": (suites, 1000),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    for name, (_, studies) in PARTS.items():
        part = parts.add_parser(name)
        part.add_argument("--studies", type=int, default=studies, help="simulated studies for each row or column")
        part.add_argument("--seed", type=int, default=17)
    chosen = parser.parse_args()
    print(f"{chosen.part}: {chosen.studies} studies each, seed {chosen.seed}")
    PARTS[chosen.part][0](chosen.studies, chosen.seed)


if __name__ == "__main__":
    main()
