"""The page of published claims: a table of all of them, then a paragraph for each, as a reviewer would write it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from fairtune.analysis.claim_answer import NOT_RUN, Answer, ClaimFigures
from fairtune.claims.answers import ClaimAnswer, TrialAnswer, count_words, distinct_trials
from fairtune.claims.arithmetic import counted_sentence
from fairtune.claims.published import LAPTOP, PUBLISHED, ClaimFile
from fairtune.core.errors import FairtuneError
from fairtune.core.files import write_atomically
from fairtune.core.markdown import code, heading, items, plain, prose, table
from fairtune.core.numbers import plural
from fairtune.core.printable import capital, printable
from fairtune.study.compute import UTILISATION

SIZES = {PUBLISHED: "at the published size", LAPTOP: "at laptop size"}
GROUNDS = {"counted": "by counting", "band": "by its band", **SIZES}
WORDS = (
    (
        "supported",
        "the interval reaches the claimed figure, or holds it where a point was printed, and the direction is shown",
    ),
    ("contradicted", "the opposite direction is shown, or the interval leaves the claimed figure out"),
    ("not separable", "neither; it is said what it would take"),
    ("implausible", "the figure is beyond what counted work allows, or its baseline is far below those of its band"),
    ("not yet run", "no run on record asks it; it is said what that would cost"),
)


def claims_page(files: Mapping[str, ClaimFile], found: Sequence[ClaimAnswer]) -> str:
    """The whole page in Markdown; the same for the same ledger, wherever it lies."""
    return printable("\n".join(_lines(files, list(found))), keep="\n") + "\n"


def write_page(file: Path, text: str) -> None:
    """Write the page.

    Raises:
        FairtuneError: the file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode())
    except OSError as error:
        raise FairtuneError(f"{file}: the page cannot be written ({error.strerror}); choose another with -o.") from None


def _lines(files: Mapping[str, ClaimFile], found: list[ClaimAnswer]) -> Iterator[str]:
    counts = count_words(found)
    told = ", ".join(f"{count} {word}" for word, count in counts.items())
    yield "# Published claims, and what was found here"
    yield ""
    yield "This page is made by `fairtune claims -o FILE` from the runs on record; nobody wrote its answers by hand."
    yield f"{plural(len(found), 'claim')}: {told}."
    yield ""
    yield (
        "A trial at laptop size has another model and far fewer examples than the published experiment. It speaks about the "
        "direction of a difference there; it says nothing about the published figure, and where it finds no difference, a "
        "larger one may. Every arm is compared with its control, the arm with the same settings and no method; intervals are those "
        "of the whole family of comparisons, and n counts seeds, or rounds of timing."
    )
    yield ""
    yield from items(f"*{word}*: {meaning}" for word, meaning in WORDS)
    yield from heading("All claims")
    yield from table(("claim", "claimed", "found here", "answer"), [_row(one) for one in found])
    for name, file in files.items():
        yield from heading(plain(file.title))
        yield prose(file.source)
        for one in (one for one in found if one.source == name):
            yield from _claim(one)
    open_trials = [one for one in distinct_trials(found) if one.word == NOT_RUN and one.cost is not None]
    if open_trials:
        yield from heading("What it would cost to try the rest")
        yield (
            "Counted from the study files: runs that train, tuning included, and tokens as if every text had the longest length "
            "allowed. Core-hours take 60 GFLOP/s of one core, as a small encoder reached on two laptop-like cores; GPU "
            f"hours take {UTILISATION:.0%} of the data sheet's peak rate, in fp32 without TF32 and in bf16. Both are estimates and "
            "leave out scoring. Timing needs no training and is bounded by `--minutes`."
        )
        yield ""
        rows = [(code(one.trial.command), SIZES[one.trial.size], _cost(one)) for one in open_trials]
        yield from table(("command", "size", "cost"), rows)


def _row(one: ClaimAnswer) -> tuple[str, str, str, str]:
    anchor = f"[{plain(one.claim.text)}](#{anchor_of(one)})"
    return anchor, plain(one.claim.claimed), plain(found_text(one)), f"**{one.word}**{grounds_text(one)}"


def grounds_text(one: ClaimAnswer) -> str:
    """What an answer comes from, as it stands behind its word."""
    direction = ", the direction only" if one.direction_only else ""
    return f"{direction}, {GROUNDS[one.grounds]}" if one.grounds else ""


def found_text(one: ClaimAnswer) -> str:
    """The figures of a claim's answer in a few words."""
    if one.counted is not None:
        counted = one.claim.counted
        if one.counted.figures is not None or counted is None:
            return one.counted.figures.short if one.counted.figures else ""
        return f"at most {counted.allowed:.3f}x by counted work{_beside(one)}"
    if one.grounds == "band":
        return "its baseline is below the band" + _beside(one)
    return "; ".join(_figures(one.trials)) or "not tried"


def _beside(one: ClaimAnswer) -> str:
    measured = "; ".join(_figures(one.trials))
    return f"; measured {measured}" if measured else ""


def _figures(trials: Sequence[TrialAnswer]) -> list[str]:
    """What the trials found, each comparison once; where there are several, it is said of what each is."""
    found = {
        (trial.trial.about, answer.figures.arm, answer.figures.against): answer.figures
        for trial in trials
        for answer in trial.answers
        if answer.figures is not None
    }
    several = len({about for about, _, _ in found}) > 1
    return [
        figures.short if len(found) == 1 else f"{about if several else _pair(figures)}: {figures.short}"
        for (about, _, _), figures in found.items()
    ]


def _pair(figures: ClaimFigures) -> str:
    return f"{figures.arm} against {figures.against}" if figures.against else figures.arm


def anchor_of(one: ClaimAnswer) -> str:
    """The heading's own address."""
    return f"{one.source}-{one.claim.id}"


def _claim(one: ClaimAnswer) -> Iterator[str]:
    claim = one.claim
    yield ""
    yield f'<a id="{anchor_of(one)}"></a>'
    yield f"### {plain(claim.text)}"
    yield ""
    yield f"Claimed: {prose(claim.claimed)}. {prose(claim.evidence)}"
    yield ""
    yield f"Answer: **{one.word}**{grounds_text(one)}. {_first_reason(one)}".rstrip()
    lines = [line for trial in one.trials for line in _trial(trial, f"{one.source}/{claim.id}")]
    if lines:
        yield ""
        yield from items(lines)
    yield ""
    yield f"Not tried: {prose(claim.untried)}"


def _first_reason(one: ClaimAnswer) -> str:
    """What decides without runs, and what does not."""
    told = []
    if one.counted is not None:
        told.append(f"{one.counted.reason} Count it with {code(one.counted.command)}.")
    elif one.claim.counted is not None:
        told.append(counted_sentence(one.claim.counted))
    if one.band is not None:
        told.append(one.band[1])
    return prose(" ".join(told)) if told and one.counted is None else " ".join(told)


def _trial(one: TrialAnswer, name: str) -> Iterator[str]:
    size = SIZES[one.trial.size]
    size = f"{capital(size)} ({one.trial.about})"
    if one.trouble:
        yield prose(f"{size}: what is on record for study {one.trial.study} cannot be used: {one.trouble}")
        return
    asked = [answer for answer in one.answers if answer.word != NOT_RUN]
    if not asked:
        reason = f" {one.answers[0].reason}" if one.answers and "protocol" in one.answers[0].reason else ""
        other = " What is on record under that name has another size or other methods." if one.other_trial else ""
        yield prose(f"{size}: not yet run.{reason}{other} `{one.trial.command}` takes {_few(one)}.")
        return
    told = [_answer(answer, one) for answer in one.answers]
    seen = code(f"fairtune claims --only {name}")
    yield "\n  - ".join([f"{prose(size)}. Runs: {code(one.trial.command)}; figures: {seen}.", *told])


def _answer(answer: Answer, one: TrialAnswer) -> str:
    direction = " (the direction only)" if one.trial.size == LAPTOP and answer.claim.direction_only else ""
    notes = f" To mind: {'; '.join(answer.notes)}." if answer.notes else ""
    told = prose(f"{answer.claim}{direction}: {answer.sentence}{notes}")
    return f"{told} {code(answer.signature)}"


def _cost(one: TrialAnswer) -> str:
    if one.trial.timed:
        return "a timing experiment of some minutes, without training"
    return str(one.cost) if one.cost is not None else "an unknown amount"


def _few(one: TrialAnswer) -> str:
    """The cost in a few words; the table at the end has all of it."""
    if one.trial.timed or one.cost is None:
        return _cost(one)
    return f"{one.cost.runs} training runs" + (f" of {one.cost.steps:,} steps in all" if one.cost.steps else "")
