"""A claim: one statement about an arm that a study can answer, with its figure and the figure's unit.

`{arm: oelm-freeze, better_than: baseline, by: 0.5 points}`, `{arm: oelm-freeze, faster: 1.3x}`,
`{arm: oelm-freeze, frozen: 12.95%}`, `{arm: bpsom, pruned: 10-30%}`, `{rank: [a, b, c]}`. A figure without a unit is refused:
0.5 may be half a point, half a percent or a half.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from fairtune.core.errors import shown
from fairtune.settings.metrics import METRICS
from fairtune.settings.values import LONGEST_NAME, MOST_ARMS, Section

if TYPE_CHECKING:
    ClaimMetric = str
else:
    ClaimMetric = Literal[tuple(METRICS)]

QUALITY, SPEED, SPREAD, SHARE, RANK, MAP = "quality", "speed", "spread", "share", "rank", "map"
AT_LEAST, ABOUT = "at least", "about"
BETTER_THAN, WORSE_THAN, AS_GOOD_AS = "better_than", "worse_than", "as_good_as"
POINTS, PERCENT = "points", "%"
CLAIM_ERRORS = ("amount", "factor", "parameter_share", "share_range", "statement", "rank", "claimed_arm", "beside")
"""Kinds of errors that say themselves what is allowed."""
LARGEST_FACTOR, LARGEST_AMOUNT = 10_000.0, 1000.0
_NUMBER = r"(?:[0-9]{1,6}(?:\.[0-9]{0,6})?|\.[0-9]{1,6})"
_AMOUNT = re.compile(rf"({_NUMBER}) *(points?|%)")
_FACTOR = re.compile(rf"({_NUMBER}) *[x×]")
_SHARE = re.compile(rf"({_NUMBER}) *%")
_RANGE = re.compile(rf"({_NUMBER}) *- *({_NUMBER}) *%")
_BARE = re.compile(rf"[-+]?{_NUMBER}")


def _no_unit(value: Any) -> bool:
    bare = isinstance(value, str) and _BARE.fullmatch(value.strip()) is not None
    return bare or (isinstance(value, int | float) and not isinstance(value, bool))


def _amount(value: Any) -> str:
    found = _AMOUNT.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and 0 < float(found[1]) <= LARGEST_AMOUNT:
        return f"{found[1]}%" if found[2] == PERCENT else f"{found[1]} points"
    lacks = "has no unit" if _no_unit(value) else "is no amount"
    raise PydanticCustomError(
        "amount",
        "{shown} {lacks}: write 0.5 points, of a metric that is shown in hundredths, or 0.5%, which is that share of the other "
        "arm's mean, as margins are",
        {"shown": shown(value), "lacks": lacks},
    )


def _factor(value: Any) -> str:
    found = _FACTOR.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and 0 < float(found[1]) <= LARGEST_FACTOR:
        return f"{found[1]}x"
    lacks = "has no unit" if _no_unit(value) else "is no speed-up"
    raise PydanticCustomError(
        "factor",
        "{shown} {lacks}: write 1.3x, which is 1.3 times as many optimizer steps in the same time",
        {"shown": shown(value), "lacks": lacks},
    )


def _share(value: Any) -> str:
    found = _SHARE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and 0 <= float(found[1]) <= 100:
        return f"{found[1]}%"
    lacks = "has no unit" if _no_unit(value) else "is no share"
    raise PydanticCustomError(
        "parameter_share",
        "{shown} {lacks}: write 12.95%, as many digits as were stated",
        {"shown": shown(value), "lacks": lacks},
    )


def _range(value: Any) -> str:
    found = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found and 0 <= float(found[1]) < float(found[2]) <= 100:
        return f"{found[1]}-{found[2]}%"
    raise PydanticCustomError(
        "share_range", "{shown} is not a range of percentages: write 10-30%", {"shown": shown(value)}
    )


Amount = Annotated[
    str,
    PlainValidator(_amount),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": r"^[0-9.]{1,13} ?(points?|%)$",
            "title": "an amount with its unit: 0.5 points, or 0.5%",
        }
    ),
]
Factor = Annotated[
    str,
    PlainValidator(_factor),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9.]{1,13} ?[x×]$", "title": "a speed-up such as 1.3x"}),
]
ParameterShare = Annotated[
    str,
    PlainValidator(_share),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9.]{1,13} ?%$", "title": "a share such as 12.95%"}),
]
ShareRange = Annotated[
    str,
    PlainValidator(_range),
    WithJsonSchema(
        {"type": "string", "pattern": r"^[0-9.]{1,13} ?- ?[0-9.]{1,13} ?%$", "title": "a range such as 10-30%"}
    ),
]
ClaimedArm = Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, title="an arm of the study")]


class Claim(Section):
    """One statement that a study answers: about quality, speed, the share of frozen parameters, or an order of arms."""

    arm: ClaimedArm | None = Field(None, description="The arm that something is claimed of; a `rank` names its own.")
    better_than: ClaimedArm | None = Field(None, description="Its quality is better than that of this arm.")
    worse_than: ClaimedArm | None = Field(None, description="Its quality is worse than that of this arm.")
    as_good_as: ClaimedArm | None = Field(
        None, description="Its quality is not worse than that of this arm by `within`."
    )
    by: Amount | None = Field(
        None,
        description="How much better or worse: `0.5 points` of a metric in hundredths, or `0.5%` of the other arm's mean, as "
        "margins are. Without it, only the direction is claimed.",
    )
    within: Amount | None = Field(
        None, description="The loss up to which `as_good_as` holds; the study's margin if absent."
    )
    faster: Factor | None = Field(
        None,
        description="How many times as fast an optimizer step is, by `fairtune time`; 1x claims that it is no slower.",
    )
    than: ClaimedArm | None = Field(
        None, description="The arm that it is faster than; the one that verdicts compare it with if absent."
    )
    steadier_than: ClaimedArm | None = Field(
        None, description="The times of its steps vary less than those of this arm, by `fairtune time`."
    )
    frozen: ParameterShare | None = Field(None, description="The share of its parameters that is not trained.")
    map_use: ParameterShare | None = Field(
        None, description="The share of training examples that `bpsom` used its map's error for at the end of training."
    )
    pruned: ShareRange | None = Field(
        None, description="The share of its hidden units that `bpsom` has removed at the end of training."
    )
    reliability: ShareRange | None = Field(
        None, description="The mean reliability, over the training examples, of `bpsom`'s cells at the end of training."
    )
    rank: tuple[ClaimedArm, ...] | None = Field(
        None, min_length=2, max_length=MOST_ARMS, description="Arms in the order of their quality, the best first."
    )
    metric: ClaimMetric | None = Field(None, description="The metric that is meant; the study's own if absent.")
    reading: Literal["at least", "about"] = Field(
        "at least",
        description="How a figure is meant. at least: the whole interval has to reach it; about: a printed figure, which the "
        "interval has to hold, and the direction has to be shown.",
    )

    @model_validator(mode="after")
    def _one_statement(self) -> Self:
        said = [name for name in STATEMENTS if getattr(self, name) is not None]
        if len(said) != 1:
            found = f"this one has {' and '.join(said)}" if said else "this one has none"
            raise PydanticCustomError(
                "statement",
                "a claim makes one statement, by one of {allowed}; {found}",
                {"allowed": ", ".join(STATEMENTS), "found": found},
            )
        if self.rank is not None and len(set(self.rank)) != len(self.rank):
            raise PydanticCustomError("rank", "rank: an arm is named twice; name each once, the best first")
        if (self.arm is None) != (self.rank is not None):
            about = "rank: the arms are named in it, so `arm` says nothing" if self.arm else "arm: say of which arm"
            raise PydanticCustomError("claimed_arm", "{about}", {"about": about})
        if self.arm is not None and self.arm == (self.other or self.than or self.steadier_than):
            raise PydanticCustomError("claimed_arm", "arm: {arm} is compared with itself", {"arm": self.arm})
        for name, statements in _BESIDE.items():
            if getattr(self, name) not in (None, AT_LEAST) and said[0] not in statements:
                raise PydanticCustomError(
                    "beside",
                    "{name}: goes with {statements}, not with {said}",
                    {"name": name, "statements": " or ".join(statements), "said": said[0]},
                )
        return self

    @property
    def statement(self) -> str:
        """The field by which it makes its statement."""
        return next(name for name in STATEMENTS if getattr(self, name) is not None)

    @property
    def kind(self) -> str:
        return _KINDS[self.statement]

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
        name = next(name for name in ("map_use", "pruned", "reliability") if getattr(self, name) is not None)
        low, _, high = getattr(self, name)[:-1].partition("-")
        return name, float(low), float(high or low)

    @property
    def share(self) -> tuple[float, float]:
        """The share of parameters as a number up to 1, and what half a unit of its last printed digit is."""
        digits = (self.frozen or "nan%")[:-1]
        return float(digits) / 100, 0.5 * 10.0 ** -len(digits.partition(".")[2]) / 100

    def __str__(self) -> str:
        figure = self.by or self.within
        if self.rank is not None:
            return "rank " + " > ".join(self.rank)
        if self.faster is not None and self.factor == 1 and self.reading == AT_LEAST:
            return f"a step of {self.arm} takes no longer than one of {self.than or 'what it is compared with'}"
        if self.faster is not None:
            return f"{self.arm} is {self.reading} {self.faster} as fast as {self.than or 'what it is compared with'}"
        if self.frozen is not None:
            return f"{self.arm} freezes {self.frozen} of the parameters"
        if self.map_use is not None:
            return f"{self.arm} uses its map's error for about {self.map_use} of the examples in the end"
        if self.pruned is not None:
            return f"{self.arm} removes {self.pruned} of its hidden units"
        if self.reliability is not None:
            return f"the map of {self.arm} ends with a mean reliability of {self.reliability}"
        if self.steadier_than is not None:
            return f"the step times of {self.arm} vary less than those of {self.steadier_than}"
        if self.as_good_as is not None:
            amount = f"within {figure}" if figure else "within the study's margin"
            return f"{self.arm} is as good as {self.as_good_as}, {amount}"
        amount = f" by {self.reading} {figure}" if figure else ""
        return f"{self.arm} is {'better' if self.better_than else 'worse'} than {self.other}{amount}"


STATEMENTS = (
    BETTER_THAN,
    WORSE_THAN,
    AS_GOOD_AS,
    "faster",
    "steadier_than",
    "frozen",
    "map_use",
    "pruned",
    "reliability",
    "rank",
)
_KINDS = {
    BETTER_THAN: QUALITY,
    WORSE_THAN: QUALITY,
    AS_GOOD_AS: QUALITY,
    "faster": SPEED,
    "steadier_than": SPREAD,
    "frozen": SHARE,
    "map_use": MAP,
    "pruned": MAP,
    "reliability": MAP,
    "rank": RANK,
}
_BESIDE = {
    "by": (BETTER_THAN, WORSE_THAN),
    "within": (AS_GOOD_AS,),
    "than": ("faster",),
    "metric": (BETTER_THAN, WORSE_THAN, AS_GOOD_AS, "rank"),
    "reading": (BETTER_THAN, WORSE_THAN, "faster"),
}
"""What may stand beside which statement."""


def read_amount(text: str) -> tuple[float, str]:
    """An amount as its number and its unit: points, or %."""
    number = _AMOUNT.fullmatch(text)
    if number is None:
        raise ValueError(f"{text!r} is no amount with a unit")
    return float(number[1]), PERCENT if number[2] == PERCENT else POINTS
