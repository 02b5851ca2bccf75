"""Texts of others in LaTeX: each character is shown as it is or spelt out, none is a command, and plain pdflatex can set it."""

from __future__ import annotations

import re
import unicodedata

from fairtune.core.printable import printable

SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_\allowbreak{}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    "`": r"\`{}", '"': "''", "[": "{[}", "]": "{]}",
    "–": "--", "—": "---", "‘": "`", "’": "'", "“": "``", "”": "''", "…": r"\ldots{}", "\u00a0": "~",
    "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "œ": r"\oe{}", "Œ": r"\OE{}", "ø": r"\o{}", "Ø": r"\O{}",
    "ł": r"\l{}", "Ł": r"\L{}", "ı": r"\i{}", "§": r"\S{}", "¡": "!`", "¿": "?`",
}  # fmt: skip
"""Brackets are guarded since a row that begins with one would be taken for an option of the row before."""
FORMULAS = {
    "×": r"\times", "±": r"\pm", "·": r"\cdot", "−": "-", "∞": r"\infty", "≤": r"\le", "≥": r"\ge", "≠": r"\ne", "≈": r"\approx",
    "→": r"\to", "←": r"\gets", "°": r"^\circ", "∆": r"\Delta", "∑": r"\sum", "√": r"\surd", "∈": r"\in", "µ": r"\mu",
}  # fmt: skip
ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0306": "u", "\u0307": ".", "\u0308": '"',
    "\u030a": "r", "\u030b": "H", "\u030c": "v", "\u0323": "d", "\u0327": "c", "\u0331": "b",
}  # fmt: skip
GREEK = re.compile(r"^GREEK (SMALL|CAPITAL) LETTER ([A-Z]+)$")
COMMANDS = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu", "nu", "xi", "pi", "rho",
    "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega",
    "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi", "Omega",
}  # fmt: skip
"""Greek letters that LaTeX has a command for."""


def plain_latex(text: str) -> str:
    """Text that LaTeX shows as it is; what its fonts lack is named, as U+4E2D."""
    line = " ".join(printable(text, keep="\n\r\t").split())
    found = "".join(map(_character, unicodedata.normalize("NFC", line)))
    return re.sub(r"-(?=-)", "-{}", found)  # two hyphens would become a dash


def _character(sign: str) -> str:
    if sign in SIGNS:
        return SIGNS[sign]
    if sign.isascii():
        return sign
    if sign in FORMULAS:
        return rf"\ensuremath{{{FORMULAS[sign]}}}"
    return _accented(sign) or _greek(sign) or rf"\texttt{{U+{ord(sign):04X}}}"


def _accented(sign: str) -> str | None:
    """é as a letter and its accent."""
    letter, *marks = list(unicodedata.normalize("NFD", sign))
    if not letter.isascii() or len(marks) != 1 or marks[0] not in ACCENTS:
        return None
    base = rf"\{letter}" if letter in "ij" and ACCENTS[marks[0]] not in "cdb" else letter
    return rf"\{ACCENTS[marks[0]]}{{{base}}}"


def _greek(sign: str) -> str | None:
    named = GREEK.match(unicodedata.name(sign, ""))
    if named is None:
        return None
    name = named[2].replace("LAMDA", "LAMBDA")
    command = name.lower() if named[1] == "SMALL" else name.capitalize()
    return rf"\ensuremath{{\{command}}}" if command in COMMANDS else None


def number(text: str) -> str:
    """A figure as reports show it, set as mathematics: a true minus, and no space after the comma of thousands."""
    if not any(sign.isdigit() for sign in text):
        return plain_latex(text)
    shown = (
        text.replace("−", "-").replace(",", "{,}").replace("%", r"\%").replace("∞", r"\infty ").replace("×", r"\times ")
    )
    return f"${shown}$"
