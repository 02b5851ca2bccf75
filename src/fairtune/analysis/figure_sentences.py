"""The answer about printed figures: in sentences for a reviewer, and as data."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from fairtune.analysis import figure_luck as luck
from fairtune.analysis.figure_check import CANNOT_TELL, MORE_THAN_LUCK, FigureCheck, FigureQuestion
from fairtune.analysis.printed_figures import Granularity, PrintedFigure
from fairtune.core.numbers import listed, plural, points
from fairtune.core.printable import capital
from fairtune.settings.metrics import title_of

NOT_KNOWN = (
    "whether both were tuned alike: a learning rate alone can move a score by several points",
    "whether the reported examples also chose the epoch, the settings or the method",
    "whether both were scored on the same examples, after the same preparation",
    "how many methods, tasks and settings were tried before these figures were printed",
)


def title_sentence(check: FigureCheck) -> str:
    """What was asked."""
    asked = check.question
    parts = [title_of(asked.metric)]
    if asked.examples is not None:
        known = f" ({asked.split})" if asked.split else ""
        parts.append(f"{plural(asked.examples, 'test example')}{known}")
    parts.append(_runs(asked))
    return f"{' vs '.join(map(str, asked.figures))}: {', '.join(parts)}"


def _runs(asked: FigureQuestion) -> str:
    seeds, picked = list(asked.seeds[: len(asked.figures)]), list(asked.best_of[: len(asked.figures)])
    each = " each" if asked.is_pair else ""
    if len(set(seeds)) == 1:
        told = f"one run{each}" if seeds[0] == 1 else f"the mean over {seeds[0]} seeds{each}"
    else:
        told = f"means over {seeds[0]} and {seeds[1]} seeds"
    if set(picked) == {1}:
        return told
    best = f"the best of {picked[0]}" if len(set(picked)) == 1 else f"the best of {picked[0]} and of {picked[1]}"
    return f"{told}, {best}"


def verdict_sentence(check: FigureCheck) -> str:
    """The answer in one paragraph, impossible figures first."""
    asked = check.question
    odd = [
        f"{figure} is no {title_of(asked.metric)} that {_answers(k, asked)} can give (nearest: {counts.below} and {counts.above})."
        for figure, counts, k in zip(asked.figures, check.counts, asked.seeds, strict=False)
        if not counts.possible
    ]
    alone = f"{asked.figures[0]} can be such a score; more cannot be said of one figure alone."
    return " ".join([*odd, *_compared(check)]) or alone


def _answers(seeds: int, asked: FigureQuestion) -> str:
    examples = f"{asked.examples:,} examples"
    return examples if seeds == 1 else f"{seeds} runs on {examples}"


def _compared(check: FigureCheck) -> Iterator[str]:
    asked = check.question
    if not asked.is_pair:
        return
    low, high = check.reach
    uncounted = "; the luck of the test set is not counted" if asked.examples is None else ""
    gap = f"{abs(check.difference):.2f} points{_after_picking(check)}"
    if check.difference == 0:
        yield "The two figures are the same, which does not show that the two are equally good."
    elif check.answer == MORE_THAN_LUCK:
        yield (
            f"The difference of {gap} is more than the luck of {_sources(asked)} would give in 19 of 20 cases (up to {high:.2f}), "
            f"if nothing else differs between the two{uncounted}."
        )
    elif check.answer == CANNOT_TELL:
        reach = _ends([low, high], " at the least, ", " at the most")
        yield (
            f"These two figures alone cannot tell the two apart: a difference of {gap} is within what luck alone gives in 19 of "
            f"20 cases (up to {reach})."
        )
    else:
        yield (
            f"These two figures alone do not decide it: the difference is {gap}, and in 19 of 20 cases luck alone gives up to "
            f"{low:.2f} at the least and up to {high:.2f} at the most. {_what_would_decide(asked)}"
        )


def _after_picking(check: FigureCheck) -> str:
    if check.question.best_of[0] == check.question.best_of[1]:
        return ""
    return f" ({_ends(sorted(check.left))} without the luck of picking)"


def _sources(asked: FigureQuestion) -> str:
    return "seeds" if asked.examples is None else "the test set and of seeds"


def _what_would_decide(asked: FigureQuestion) -> str:
    ways = [
        *(["both models' answers to each example"] if asked.examples is not None else []),
        "more seeds" if asked.luck.known else "how much seeds differ here",
    ]
    return f"{capital(' and '.join(ways))} would tell more."


def sections(check: FigureCheck) -> dict[str, list[str]]:
    """What stands behind it, by heading."""
    asked = check.question
    found = {
        "Possible figures": list(_possible(check)),
        "Luck of the test set": list(_sampling(check)),
        "Luck of seeds": list(_seeds(check)),
        "Picking the best": list(_picking(check)),
        "What nobody can tell from printed figures": [f"{capital(text)}." for text in NOT_KNOWN]
        if asked.is_pair
        else [],
    }
    return {heading: lines for heading, lines in found.items() if lines}


def _possible(check: FigureCheck) -> Iterator[str]:
    asked = check.question
    if asked.examples is None:
        yield f"Not asked: {title_of(asked.metric)} is no multiple of 1/n, so every figure is possible."
        return
    for figure, counts, k in zip(asked.figures, check.counts, asked.seeds, strict=False):
        yield f"{figure}: {_counts(figure, counts, k, asked.examples)}"
    telling = [counts for counts in check.counts if counts.says_something and counts.possible]
    if telling:
        shares = " and ".join(dict.fromkeys(f"{100 * counts.share:.2g} %" for counts in telling))
        both = math.prod(counts.share for counts in telling)
        chance = f"; two made-up ones would both pass in {100 * both:.2g} % of cases" if len(telling) == 2 else ""
        yield f"Of all figures with so many digits {shares} are possible{chance}."
    elif check.counts and not any(counts.says_something for counts in check.counts):
        yield "With so many examples and so few digits every figure is possible: this says nothing."


def _counts(figure: PrintedFigure, counts: Granularity, seeds: int, examples: int) -> str:
    over = f"{counts.total:,}" if seeds == 1 else f"{counts.total:,} ({seeds} x {examples:,})"
    if counts.possible:
        exact = (
            f" = {100 * counts.low / counts.total:.{max(0, figure.places) + 2}f} %" if counts.low == counts.high else ""
        )
        many = f"{counts.low:,}" if counts.low == counts.high else f"{counts.low:,} to {counts.high:,}"
        return f"{many} correct of {over}{exact}."
    near = f"impossible as a share of {over}; the nearest are {counts.below} and {counts.above}."
    ways = []
    if counts.cut is not None:
        ways.append(f"digits were cut off instead of rounded ({counts.cut:,} of {counts.total:,})")
    if counts.seeds:
        ways.append(f"it is a mean over {listed(counts.seeds, 'or')} seeds")
    ways.append("another number of examples or another metric is behind it")
    return f"{near} It could be if {', or '.join(ways)}."


def _sampling(check: FigureCheck) -> Iterator[str]:
    asked = check.question
    if asked.examples is None:
        yield f"Not told: what a sample of examples does to {title_of(asked.metric)} does not follow from the figure alone."
        return
    for figure in asked.figures:
        low, high = luck.wilson(figure.share, asked.examples)
        yield f"{figure}: {100 * low:.2f} to {100 * high:.2f} on other examples of the same kind (95 %, Wilson)."
    if asked.split is not None and asked.split.other:
        yield f"If another set was reported: {asked.split.other}."
    if max(asked.seeds[: len(asked.figures)]) > 1:
        yield "More seeds do not make the test set larger: the interval of a mean is as wide."
    if not asked.is_pair or check.unpaired is None or check.unpaired_p is None:
        return
    ends = [points((check.difference + sign * luck.Z * check.unpaired) / 100) for sign in (-1, 1)]
    yield (
        f"Difference {points(check.difference / 100)} points, {ends[0]} to {ends[1]} as if the examples were not the same "
        f"(unpaired, p {_p(check.unpaired_p)})."
    )
    if check.paired is None:
        yield "What the same examples would change cannot be bounded from means over seeds; as a rule they make it narrower."
    elif check.paired.fewest:
        yield from _pairing(check.paired, asked.examples)


def _pairing(paired: luck.PairedRange, examples: int) -> Iterator[str]:
    yield (
        f"Paired (McNemar), it hangs on how many of the {examples:,} examples one model has right and the other wrong: "
        f"p {_p(paired.least_p)} if {paired.fewest:,}, all for the higher one; p {_p(paired.usual_p)} if {paired.usual:,}, as is "
        f"usual for two runs; p {_p(paired.most_p)} if {paired.most:,}, the most there can be."
    )
    if paired.enough is None:
        yield "No way of pairing brings p below .05."
    elif paired.enough < paired.most:
        share = 100 * (1 - paired.enough / examples)
        yield f"p is below .05 if they are at most {paired.enough:,}: right or wrong together on at least {share:.1f} %."
    else:
        yield "p is below .05 however they are paired."


def _seeds(check: FigureCheck) -> Iterator[str]:
    asked = check.question
    ends = asked.luck.ends
    told = _ends([max(sds) for sds in ends])
    if asked.luck.known and len(set(asked.luck.low)) == 2:
        told = " and ".join(f"{sd:.2f}" for sd in asked.luck.low)
    yield f"Standard deviation over seeds {told} points, {asked.luck.basis}."
    if not asked.is_pair:
        return
    errors = check.seed_errors
    t = luck.critical(asked.luck.freedom)
    yield (
        f"Standard error of the difference from seeds alone {_ends(errors)} points, so that another pair of such "
        f"figures would differ by up to {_ends([t * error for error in errors])} by luck in 19 of 20 cases."
    )
    k = min(asked.seeds)
    seen = _ends([luck.smallest_seen(max(sds), k) for sds in ends])
    by = "one run each, if the deviation is taken as known" if k == 1 else f"{k} seeds each"
    yield f"Seen with 80 % chance at 5 %, on this test set: a difference of {seen} points, with {by}."
    sizes = dict.fromkeys([abs(check.difference), 0.5, 1.0]) if check.difference else [0.5, 1.0]
    told = "; ".join(f"{size:.2f} points, {_needed(asked, size)}" for size in sizes)
    yield f"Seeds per arm that see a difference so (unpaired): {told}."
    if check.unpaired is not None:
        both = [math.hypot(error, check.unpaired) for error in errors]
        yield (
            f"With the luck of the test set (unpaired), the standard error is {_ends(both)} points, and 19 of 20 differences are "
            f"within {check.reach[1]:.2f}."
        )


def _needed(asked: FigureQuestion, difference: float) -> str:
    found = [luck.seeds_to_see(difference, max(sds)) for sds in asked.luck.ends]
    told = [f"over {luck.MOST_SEEDS_TOLD:,}" if k is None else f"{k}" for k in found]
    return " to ".join(dict.fromkeys(told))


def _picking(check: FigureCheck) -> Iterator[str]:
    asked = check.question
    for place, (figure, count) in enumerate(zip(asked.figures, asked.best_of, strict=False)):
        if count > 1:
            added = _ends([ends[place] for ends in check.picked])
            yield f"{figure}: the best of {count} is above their mean by {added} points on average, by luck alone."
    if asked.is_pair and asked.best_of[0] != asked.best_of[1]:
        yield "What one figure gained so and the other did not is taken off the difference above."
    elif asked.is_pair and asked.best_of[0] > 1:
        yield "Both gained it alike, so that nothing is taken off the difference; neither is what a user will get."


def _ends(values: Sequence[float], between: str = " to ", after: str = "") -> str:
    """The two ends of a range, or one where they are alike."""
    told = list(dict.fromkeys(f"{value:.2f}" for value in values))
    return told[0] if len(told) == 1 else f"{between.join(told)}{after}"


def _p(p: float) -> str:
    if p < 0.001:
        return "< .001"
    return "= 1" if p > 0.995 else f"= {p:.2f}".replace("0.", ".") if p >= 0.1 else f"= {p:.3f}".replace("0.", ".")


def check_record(check: FigureCheck) -> dict[str, Any]:
    """Everything as plain data, in points and hundredths."""
    asked = check.question
    found: dict[str, Any] = {
        "figures": [str(figure) for figure in asked.figures],
        "metric": asked.metric,
        "examples": asked.examples,
        "seeds": list(asked.seeds[: len(asked.figures)]),
        "best_of": list(asked.best_of[: len(asked.figures)]),
        "verdict": verdict_sentence(check),
        "answer": check.answer,
        "possible": [{"possible": counts.possible, **asdict(counts)} for counts in check.counts],
        "sampling": [
            [100 * end for end in luck.wilson(figure.share, asked.examples)] if asked.examples else None
            for figure in asked.figures
        ],
        "seed_sd": {"low": list(asked.luck.low), "high": list(asked.luck.high), "basis": asked.luck.basis},
    }
    if asked.is_pair:
        found |= {
            "difference": check.difference,
            "unpaired": {"error": check.unpaired, "p": check.unpaired_p},
            "paired": None if check.paired is None else asdict(check.paired),
            "seed_error": list(check.seed_errors),
            "luck_reaches": list(check.reach),
            "picking_adds": [list(ends) for ends in check.picked],
            "smallest_seen": [luck.smallest_seen(max(sds), min(asked.seeds)) for sds in asked.luck.ends],
            "seeds_to_see": [luck.seeds_to_see(abs(check.difference), max(sds)) for sds in asked.luck.ends],
        }
    return found | {"not_known": list(NOT_KNOWN)}
