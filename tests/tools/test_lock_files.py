"""The lock files: the same versions as the constraints, all that an installation needs, and a hash for every one."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent.parent
LOCKS = sorted((ROOT / "locks").iterdir())
ENTRY = re.compile(
    r'([a-z0-9-]+)==([^\s;]+)( ; platform_system == "Linux")? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)'
)


def locked(name: str) -> dict[str, str]:
    """The versions in a lock file, of which every line is read."""
    head, _, text = (ROOT / "locks" / name).read_text(encoding="utf-8").partition("\n")
    assert head.startswith("# Made by `make lock`")
    assert ENTRY.sub("", text) == "", "each entry has a version and at least one hash, and there is nothing else"
    return {found[1]: found[2] for found in ENTRY.finditer(text)}


def constraints() -> list[dict[str, str]]:
    """What everybody needs, what the tests of trackers and those of Ray need, and what CUDA needs."""
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    sections = re.split("# TRACKERS|# RAY|# CUDA", text)
    parts = [re.findall(r"^([\w.-]+)==(\S+)$", part, re.MULTILINE) for part in sections]
    return [{str(canonicalize_name(name)): version for name, version in part} for part in parts]


def test_the_lock_files_have_the_versions_of_the_constraints() -> None:
    every, trackers, ray, cuda = constraints()
    assert locked("all.txt") | {"torch": every["torch"]} == every
    assert locked("torch.txt") == {"torch": every["torch"], **cuda}
    assert locked("torch-cpu.txt") == {"torch": f"{every['torch']}+cpu"}
    assert locked("trackers.txt") == trackers
    assert locked("ray.txt") == ray
    assert not every.keys() & trackers.keys()
    assert not (every.keys() | trackers.keys()) & ray.keys()
    assert len(LOCKS) == 5


def test_all_that_the_project_asks_for_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    assert extras.pop("trackio"), "it asks for an older pillow than the others, so no test installs it"
    wanted = [
        *project["project"]["dependencies"],
        *(requirement for extra in extras.values() for requirement in extra),
        *project["build-system"]["requires"],
        "editables",
    ]
    versions = locked("all.txt") | locked("trackers.txt") | locked("ray.txt") | locked("torch.txt")
    for requirement in map(Requirement, wanted):
        assert requirement.specifier.contains(versions[canonicalize_name(requirement.name)]), str(requirement)


@pytest.mark.parametrize("own", ["all.txt", "trackers.txt", "ray.txt"])
def test_all_that_those_ask_for_here_is_locked(own: str) -> None:
    """On this machine, with what is installed: whatever a locked package needs is locked too."""
    package = {"trackers.txt": "wandb", "ray.txt": "ray"}.get(own)
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip("`make test` installs trackers, `make cluster-test` Ray")
    before = locked("trackers.txt") if own == "ray.txt" else {}  # on top of which it is installed
    versions = locked("all.txt") | locked("torch.txt") | before | locked(own)
    for name in [*locked(own), "torch"]:
        for line in importlib.metadata.requires(name) or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                assert needed.specifier.contains(versions[canonicalize_name(needed.name)]), f"{name} needs {line}"


@pytest.mark.parametrize(
    "file", [*LOCKS, *(ROOT / name for name in ("constraints.txt", "Makefile", "tools/lock.py"))], ids=str
)
def test_no_index_and_no_machine_is_named(file: Path) -> None:
    assert not re.search(r"https?://|file://|(?<![\w.])/(opt|home|root|work)/", file.read_text(encoding="utf-8"))
