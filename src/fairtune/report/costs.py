"""A measured ratio of step times in words, beside what counting passes predicts."""

from __future__ import annotations

from fairtune.core.numbers import DASH, ratio
from fairtune.report.content import Versus


def expected_text(versus: Versus | None) -> str:
    """The expected ratio, to stand after the measured one; nothing where passes predict no change."""
    if versus is None or versus.expected is None or versus.expected == 1:
        return ""
    return f"{ratio(versus.expected)} expected"


def cost_parts(versus: Versus) -> list[str]:
    """The measured ratio, its range over seeds, and the expected one, as far as they are known."""
    seen = versus.slowdown
    if seen is None:
        return [DASH]
    found = [f"×{seen.median:.2f}"]
    if seen.n > 1:
        found.append(f"({seen.low:.2f} to {seen.high:.2f})")
    if expected_text(versus):
        found.append(f"×{versus.expected:.2f} expected")
    return found


def cost_text(versus: Versus) -> str:
    """All in a line: ×1.93 (1.88 to 1.97), ×2.00 expected."""
    return " ".join(cost_parts(versus)).replace(" ×", ", ×")
