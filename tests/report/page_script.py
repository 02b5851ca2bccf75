"""The one script of a report's page, which the page's policy allows by its hash."""

from __future__ import annotations

import hashlib
import re
from base64 import b64encode
from importlib.resources import files

SCRIPT = (files("fairtune.report") / "page.js").read_text(encoding="utf-8")


def without_script(html: str) -> str:
    """The page without its own script, once it is certain that it has that, allows that, and has no other."""
    whole = f"<script>{SCRIPT}</script>"
    assert html.count(whole) == 1
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    digest = b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode("ascii")
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in policy
    rest = html.replace(whole, "")
    assert "<script" not in rest
    return rest
