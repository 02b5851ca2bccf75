"""Texts that a terminal, Markdown, HTML, rich, matplotlib or a spreadsheet would obey, and how it is seen that none did."""

from __future__ import annotations

import os
import pty
import re
import sys
import threading
from collections.abc import Sequence

import pytest
from typer.main import get_command

from fairtune.cli.app import app

CODES = {
    "clears the screen": "\x1b[2J",
    "sets the title": "\x1b]0;title\x07",
    "makes a link": "\x1b]8;;http://x\x1b\\",
    "begins as one byte": "\x9b2J",
    "sets the title in one byte": "\x9d0;title\x9c",
    "goes back": "seen\b\b\b\bgone",
    "returns": "seen\rgone",
    "ends": "a\x00b",
    "deletes": "a\x7fb",
    "next line": "a\x85b",
    "turns around": "\u202eabc\u202c",
    "isolates": "\u2066abc\u2069",
    "separates": "a\u2028b\u2029c",
}
MARKS = [
    "[/x]", "[red]", "[link=http://x]y[/link]", ":smile:", "# head", "| a | b |", "`x`", "```", "<img src=x onerror=y>", "[x](http://y)",
    "![x](http://y)", "http://evil.example/x", "www.evil.example", "- item", "1. item", "---", "**b** _i_ ~~s~~", "&lt;b&gt;",
    "</script><script>x</script>", "$x^$", r"\frac{", "{{ 7*7 }}", "_x", "a\n\n## injected\n\n<b>",
]  # fmt: skip
ALL = " ".join([*CODES.values(), *MARKS])
NAME = "a\x1b[2J\x9b2J\b\r\u202e\u2028[red]:smile:|`$x^$"
"""What can be the name of a file or folder."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
STYLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\r?\x1b\[(?:2K|1A)")
"""What rich itself sends: styles, the cursor's hiding, lines that are drawn again."""


def raw_codes(text: str) -> list[str]:
    """Codes that would be obeyed; line breaks and tabs are none."""
    return sorted({repr(code) for code in RAW.findall(text)})


def on_a_terminal(words: Sequence[object], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a verb sends to a terminal of its own, styles taken out."""
    master, slave = pty.openpty()
    got: list[bytes] = []

    def listen() -> None:
        try:
            while piece := os.read(master, 4096):
                got.append(piece)
        except OSError:  # so a pseudo-terminal says that nobody writes any more
            pass

    listener = threading.Thread(target=listen)
    listener.start()
    with monkeypatch.context() as patched:
        patched.setenv("TERM", "xterm-256color")
        with os.fdopen(slave, "w", encoding="utf-8") as terminal:
            patched.setattr(sys, "stdout", terminal)
            patched.setattr(sys, "stderr", terminal)
            get_command(app).main([str(word) for word in words], standalone_mode=False)
    listener.join()
    os.close(master)
    sent = b"".join(got).decode("utf-8").replace("\r\n", "\n")
    return STYLE.sub("", sent)
