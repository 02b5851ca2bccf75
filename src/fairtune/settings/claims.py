"""A claim: one statement about an arm that a study can answer, with its figure and the figure's unit.

`{arm: oelm-freeze, better_than: baseline, by: 0.5 points}`, `{arm: oelm-freeze, faster: 1.3x}`,
`{arm: oelm-freeze, frozen: 12.95%}`, `{arm: bpsom, pruned: 10-30%}`, `{rank: [a, b, c]}`. A figure without a unit is refused:
0.5 may be half a point, half a percent or a half.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LONGEST_NAME, MOST_ARMS, Section, form, refuse

if TYPE_CHECKING:
    ClaimMetric = str
else:
    ClaimMetric = Literal[tuple(METRICS)]

QUALITY, SPEED, SPREAD, SHARE, RANK, MAP = "quality", "speed", "spread", "share", "rank", "map"
AT_LEAST, ABOUT = "at least", "about"
POINTS, PERCENT = "points", "%"


class Statement(NamedTuple):
    """What a claim says by one of its fields.

    Args:
        beside: other fields that may qualify it.
        words: with the claim's fields, and `by` and `within` as phrases.
    """

    kind: str
    beside: tuple[str, ...]
    words: str


_AGAINST = ("by", "metric", "reading")
STATEMENTS = {
    "better_than": Statement(QUALITY, _AGAINST, "{arm} is better than {better_than}{by}"),
    "worse_than": Statement(QUALITY, _AGAINST, "{arm} is worse than {worse_than}{by}"),
    "as_good_as": Statement(QUALITY, ("within", "metric"), "{arm} is as good as {as_good_as}, within {within}"),
    "faster": Statement(SPEED, ("than", "reading"), "{arm} is {reading} {faster} as fast as {than}"),
    "steadier_than": Statement(SPREAD, (), "the step times of {arm} vary less than those of {steadier_than}"),
    "frozen": Statement(SHARE, (), "{arm} freezes {frozen} of the parameters"),
    "map_use": Statement(MAP, (), "{arm} uses its map's error for about {map_use} of the examples in the end"),
    "pruned": Statement(MAP, (), "{arm} removes {pruned} of its hidden units"),
    "reliability": Statement(MAP, (), "the map of {arm} ends with a mean reliability of {reliability}"),
    "rank": Statement(RANK, ("metric",), "rank {rank}"),
}
QUALIFIERS = ("by", "within", "than", "metric", "reading")


def _figure(text: str) -> str:
    """A figure and its unit, written one way: `0.5 points`, `0.5%`, `1.3x`, `10-30%`."""
    digits, unit = re.split(r"(?=[px×%])", text.replace(" ", ""), maxsplit=1)
    low, high = (float(end) for end in (digits.split("-") * 2)[:2])
    if "-" in digits and low >= high:
        refuse()
    return digits + {"p": " points", "%": "%"}.get(unit[0], "x")


def _above_zero(figure: str) -> str:
    return figure if figure.strip(" points%x").strip("0.") else refuse()


def _percentage(figure: str) -> str:
    return figure if float(figure[:-1].rpartition("-")[2]) <= 100 else refuse()


_NUMBER = r"([0-9]{1,6}(\.[0-9]{0,6})?|\.[0-9]{1,6})"
_READ, _POSITIVE, _SHARE = AfterValidator(_figure), AfterValidator(_above_zero), AfterValidator(_percentage)
_AMOUNT = form(rf"{_NUMBER} *(points?|%)", "an amount with its unit: 0.5 points, or 0.5% of the other arm's mean")
Amount = Annotated[str, _AMOUNT, _READ, _POSITIVE]
Factor = Annotated[str, form(rf"{_NUMBER} *[x×]", "a factor with its unit: 1.3x"), _READ, _POSITIVE]
ParameterShare = Annotated[str, form(rf"{_NUMBER} *%", "a share with its unit: 12.95%"), _READ, _SHARE]
ShareRange = Annotated[str, form(rf"{_NUMBER} *- *{_NUMBER} *%", "a range of percentages: 10-30%"), _READ, _SHARE]
ClaimedArm = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, title="an arm of the study")]


class Claim(Section):
    """One statement that a study answers: about quality, speed, the share of frozen parameters, or an order of arms."""

    arm: ClaimedArm | None = None
    """The arm that something is claimed of; a `rank` names its own."""
    better_than: ClaimedArm | None = None
    """Its quality is better than that of this arm."""
    worse_than: ClaimedArm | None = None
    """Its quality is worse than that of this arm."""
    as_good_as: ClaimedArm | None = None
    """Its quality is not worse than that of this arm by `within`."""
    by: Amount | None = None
    """How much better or worse: `0.5 points` of a metric in hundredths, or `0.5%` of the other arm's mean, as margins are. Without
    it, only the direction is claimed."""
    within: Amount | None = None
    """The loss up to which `as_good_as` holds; the study's margin if absent."""
    faster: Factor | None = None
    """How many times as fast an optimizer step is, by `fairtune time`; 1x claims that it is no slower."""
    than: ClaimedArm | None = None
    """The arm that it is faster than; the one that verdicts compare it with if absent."""
    steadier_than: ClaimedArm | None = None
    """The times of its steps vary less than those of this arm, by `fairtune time`."""
    frozen: ParameterShare | None = None
    """The share of its parameters that is not trained."""
    map_use: ParameterShare | None = None
    """The share of training examples that `bpsom` used its map's error for at the end of training."""
    pruned: ShareRange | None = None
    """The share of its hidden units that `bpsom` has removed at the end of training."""
    reliability: ShareRange | None = None
    """The mean reliability, over the training examples, of `bpsom`'s cells at the end of training."""
    rank: tuple[ClaimedArm, ...] | None = Field(None, min_length=2, max_length=MOST_ARMS)
    """Arms in the order of their quality, the best first."""
    metric: ClaimMetric | None = None
    """The metric that is meant; the study's own if absent."""
    reading: Literal["at least", "about"] = "at least"
    """How a figure is meant. at least: the whole interval has to reach it; about: a printed figure, which the interval has to hold,
    and the direction has to be shown."""

    @model_validator(mode="after")
    def _one_statement(self) -> Self:
        said = [name for name in STATEMENTS if getattr(self, name) is not None]
        if len(said) != 1:
            found = f"this one has {' and '.join(said) or 'none'}"
            raise ValueError(f"a claim makes one statement, by one of {', '.join(STATEMENTS)}; {found}")
        if self.rank is not None and (self.arm is not None or len(set(self.rank)) != len(self.rank)):
            raise ValueError("rank: name each arm once, the best first, and remove `arm`")
        if self.rank is None and self.arm is None:
            raise ValueError("arm: say of which arm")
        if self.arm is not None and self.arm in (self.other, self.than, self.steadier_than):
            raise ValueError(f"arm: {self.arm} is compared with itself")
        for name in QUALIFIERS:
            if getattr(self, name) not in (None, AT_LEAST) and name not in STATEMENTS[said[0]].beside:
                fitting = [one for one, statement in STATEMENTS.items() if name in statement.beside]
                raise ValueError(f"{name}: goes with {' or '.join(fitting)}, not with {said[0]}")
        return self

    @property
    def statement(self) -> str:
        """The field by which it makes its statement."""
        return next(name for name in STATEMENTS if getattr(self, name) is not None)

    @property
    def kind(self) -> str:
        return STATEMENTS[self.statement].kind

    @property
    def other(self) -> str | None:
        """The arm that quality is compared with."""
        return self.better_than or self.worse_than or self.as_good_as

    @property
    def direction_only(self) -> bool:
        """Whether it says which arm is better or faster, and not by how much."""
        ahead = self.by is None and (self.better_than or self.worse_than or self.steadier_than) is not None
        return ahead or self.rank is not None or self.factor == 1

    @property
    def arms(self) -> tuple[str, ...]:
        """Every arm that it names."""
        named = (self.arm, self.other, self.than, self.steadier_than, *(self.rank or ()))
        return tuple(dict.fromkeys(name for name in named if name is not None))

    @property
    def factor(self) -> float:
        """The speed-up as a number; not a number where none is claimed."""
        return math.nan if self.faster is None else float(self.faster[:-1])

    @property
    def map_share(self) -> tuple[str, float, float]:
        """What is claimed of a map, and from where to where, in percent; a figure is a range of one."""
        low, _, high = str(getattr(self, self.statement))[:-1].partition("-")
        return self.statement, float(low), float(high or low)

    @property
    def share(self) -> tuple[float, float]:
        """The share of parameters as a number up to 1, and what half a unit of its last printed digit is."""
        digits = (self.frozen or "nan%")[:-1]
        return float(digits) / 100, 0.5 * 10.0 ** -len(digits.partition(".")[2]) / 100

    def __str__(self) -> str:
        than = self.than or "what it is compared with"
        if self.factor == 1 and self.reading == AT_LEAST:
            return f"a step of {self.arm} takes no longer than one of {than}"
        fields = {
            **dict(self),
            "than": than,
            "by": f" by {self.reading} {self.by}" if self.by else "",
            "within": self.within or "the study's margin",
            "rank": " > ".join(self.rank or ()),
        }
        return STATEMENTS[self.statement].words.format(**fields)


def read_amount(text: str) -> tuple[float, str]:
    """An amount as its number and its unit: points, or %."""
    return float(text.rstrip(" points%")), PERCENT if text.endswith(PERCENT) else POINTS
