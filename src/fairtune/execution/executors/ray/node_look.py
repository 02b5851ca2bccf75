"""What a node of a Ray cluster says of itself. Sent there as a whole, since fairtune may be missing: it imports nothing of it."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

ASK_VERSION = "import sys; from fairtune.core.version import __version__; sys.stdout.write(__version__)"


def look_around(token: str) -> str:
    """As JSON: the Python there, the fairtune that a process of it would import, and what a file of the study has."""
    asked = subprocess.run(
        [sys.executable, "-c", ASK_VERSION], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    try:
        with open(token, encoding="utf-8") as file:  # noqa: PTH123 - it has nothing but what it stands in
            read = file.read()
    except OSError:
        read = None
    version = asked.stdout.strip() if asked.returncode == 0 else None
    return json.dumps({"python": platform.python_version(), "fairtune": version, "token": read})
