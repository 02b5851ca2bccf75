"""How numbers and lists look: percent, points with a real minus, p values, sizes, plurals; a dash where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

DASH, MINUS = "–", "\u2212"


def _number(value: float | None, form: str, times: float = 1.0, per: float = 1.0) -> str:
    if value is None or not math.isfinite(value):
        return DASH
    return format(value * times / per, form).replace("-", MINUS)


def percent(value: float | None) -> str:
    """A share of one in hundredths: 0.842 is 84.20."""
    return _number(value, ".2f", times=100)


def share(value: float | None) -> str:
    return _number(value, ".1f", times=100)


def points(value: float | None) -> str:
    """A difference in hundredths, signed: -0.031 is −3.10."""
    text = _number(value, "+.2f", times=100)
    return "0.00" if text in ("+0.00", f"{MINUS}0.00") else text


def ratio(value: float | None) -> str:
    """Three places: bounds lie close to one."""
    return _number(value, ".3f")


def whole(value: float | None) -> str:
    return _number(value, ",.0f")


def gigabytes(value: float | None) -> str:
    return _number(value, ".2f", per=1e9)


def megabytes(value: float | None) -> str:
    return _number(value, ",.1f", per=1e6)


def millions(value: float | None) -> str:
    return _number(value, ",.1f", per=1e6)


def low_to_high(low: float | None, high: float | None, show: Callable[[float | None], str]) -> str:
    return DASH if DASH in (ratio(low), ratio(high)) else f"{show(low)} to {show(high)}"


def p_value(p: float | None) -> str:
    """As papers print it: .004, < .001."""
    if p is not None and p < 0.001:
        return "< .001"
    return "1" if p is not None and p > 0.9995 else ratio(p).removeprefix("0")


def p_equals(p: float | None) -> str:
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def significant(value: float | None) -> str:
    """Three digits, never in powers of ten."""
    if value is None or not math.isfinite(value):
        return DASH
    if value == 0:
        return "0"
    places = max(0, 2 - int(f"{value:.2e}".partition("e")[2]))  # of the rounded value: 0.9999 is 1.00
    return _number(value, f".{min(places, 6)}f")


def error_size(value: float | None) -> str:
    """A size of which only the magnitude counts once it is small: 0.493, 5e−7."""
    if value is None or not 0 < abs(value) < 0.001:
        return significant(value)
    digits, exponent = f"{value:.0e}".split("e")
    return f"{digits}e{int(exponent)}".replace("-", MINUS)


def trains(value: bool | str) -> str:
    """Whether a tensor trains; of a fused one, only some rows may."""
    return value if isinstance(value, str) else "yes" if value else "no"


def confidence(value: float) -> str:
    return f"{100 * value:g} %"


def setting(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {setting(part)}" for name, part in value.items() if part is not None)
    return f"{value:g}" if isinstance(value, float) else str(value)


def as_percent(share: float) -> str:
    """A share in words: few are never shown as none."""
    return "under 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def size_text(size: float) -> str:
    """Bytes in the unit that fits."""
    for unit, most in (("B", 1e3), ("kB", 1e6), ("MB", 1e9)):
        if size < most:
            return f"{size / (most / 1e3):.{0 if unit == 'B' else 1}f} {unit}"
    return f"{size / 1e9:.1f} GB"


def plural(count: int, noun: str, nouns: str = "") -> str:
    """`1 run`, `1,200 runs`; `nouns` is for more than one of them, where that is not the noun with an s."""
    return f"{count:,} {noun if count == 1 else nouns or f'{noun}s'}"


def listed(names: Iterable[object], last: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, final = map(str, names)
    return f"{', '.join(others)} {last} {final}" if others else final
