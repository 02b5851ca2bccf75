"""Write the lock files: for every version in `constraints.txt` the sha256 of each file that a package index has of it.

    make lock

Indexes and folders of wheels are those that pip is configured with. A hash that a lock file has already stays as long as its
version does, since files of a version are never replaced: so hashes of builds that only some machines see add up.

torch has lock files of its own, of which one is installed: where pip could choose, it would take a file whose hash an index tells
over one in a folder, and so the build for NVIDIA's devices with gigabytes of libraries over the one for CPUs.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from packaging.utils import (
    InvalidSdistFilename,
    InvalidWheelFilename,
    canonicalize_name,
    parse_sdist_filename,
    parse_wheel_filename,
)
from packaging.version import InvalidVersion, Version
from pip._internal.commands import create_command

HERE = Path(__file__).parent.parent
CONSTRAINTS, LOCKS = HERE / "constraints.txt", HERE / "locks"
TRACKERS = "# TRACKERS"
"""How the comment begins after which constraints.txt has what only the tests of trackers need."""
RAY = "# RAY"
"""The same of what only the tests of Ray need, besides those of trackers."""
CUDA = "# CUDA"
"""The same of what only torch's build for NVIDIA's devices needs."""
LINUX = ' ; platform_system == "Linux"'
HEAD = "# Made by `make lock` from constraints.txt: every file of these versions that may be installed.\n"
PIN = re.compile(r"([A-Za-z0-9._-]+)==([^\s;]+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass
class Entry:
    """A line of a lock file."""

    name: str
    version: str
    marker: str = ""
    hashes: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        hashes = (f"    --hash=sha256:{one}" for one in sorted(self.hashes))
        return " \\\n".join([f"{self.name}=={self.version}{self.marker}", *hashes])


def wanted() -> dict[str, list[Entry]]:
    """The lock files by name, with entries that have no hashes yet."""
    rest, _, cuda = CONSTRAINTS.read_text(encoding="utf-8").partition(CUDA)
    rest, _, ray = rest.partition(RAY)
    every, _, trackers = rest.partition(TRACKERS)
    entries = [Entry(canonicalize_name(name), version) for name, version in PIN.findall(every)]
    tested = [Entry(canonicalize_name(name), version) for name, version in PIN.findall(trackers)]
    clustered = [Entry(canonicalize_name(name), version) for name, version in PIN.findall(ray)]
    (torch,) = (entry for entry in entries if entry.name == "torch")
    more = [Entry(canonicalize_name(name), version, LINUX) for name, version in PIN.findall(cuda)]
    return {
        "all.txt": sorted((entry for entry in entries if entry is not torch), key=lambda entry: entry.name),
        "trackers.txt": sorted(tested, key=lambda entry: entry.name),
        "ray.txt": sorted(clustered, key=lambda entry: entry.name),
        "torch-cpu.txt": [Entry("torch", f"{torch.version}+cpu")],
        "torch.txt": [torch, *more],
    }


def known(file: Path) -> dict[tuple[str, str], set[str]]:
    """The hashes that a lock file has, by name and version."""
    found: dict[tuple[str, str], set[str]] = {}
    hashes: set[str] = set()
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        if pin := PIN.match(line):
            hashes = found.setdefault((pin[1], pin[2]), set())
        hashes.update(HASH.findall(line))
    return found


class Links(HTMLParser):
    """The links of an index page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value for name, value in attrs if tag == "a" and name == "href" and value]


class Indexes:
    """Where pip would look for files, with pip's own settings, certificates and passwords."""

    def __init__(self) -> None:
        command = create_command("download")
        options, _ = command.parse_args([])
        self._pages = [options.index_url, *options.extra_index_urls]
        self._folders = [Path(unquote(urlsplit(str(place)).path)) for place in options.find_links]
        self._session = command._build_session(options)

    def hashes(self, name: str, version: str) -> set[str]:
        """sha256 of every file of a version."""
        found = set()
        for page in self._pages:
            for link in self._links(f"{page.rstrip('/')}/{name}/"):
                digest = re.fullmatch(r"sha256=([0-9a-f]{64})", urlsplit(link).fragment)
                if digest and is_of(unquote(urlsplit(link).path).rsplit("/", 1)[-1], name, version):
                    found.add(digest[1])
        for folder in self._folders:
            for file in sorted(folder.glob("*")) if folder.is_dir() else []:
                if is_of(file.name, name, version):
                    with file.open("rb") as handle:
                        found.add(hashlib.file_digest(handle, "sha256").hexdigest())
        return found

    def _links(self, url: str) -> Iterator[str]:
        if urlsplit(url).scheme == "file":
            file = Path(unquote(urlsplit(url).path)) / "index.html"
            page = file.read_text(encoding="utf-8") if file.exists() else ""
        else:
            answer = self._session.get(url, headers={"Accept": "text/html"})
            if answer.status_code == 404:
                return
            answer.raise_for_status()
            page = answer.text
        yield from (urljoin(url, link) for link in Links(page).found)


def is_of(file: str, name: str, version: str) -> bool:
    """Whether a file is of a version, as its name tells; 2.13.0+cpu is another one than 2.13.0."""
    try:
        own, found = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
    return own == name and found == Version(version)


def main() -> int:
    indexes, missing = Indexes(), []
    LOCKS.mkdir(exist_ok=True)
    for name, entries in wanted().items():
        before = known(LOCKS / name)
        for entry in entries:
            found = indexes.hashes(entry.name, entry.version)
            entry.hashes = found | before.get((entry.name, entry.version), set())
        missing += [f"{entry.name}=={entry.version}" for entry in entries if not entry.hashes]
        if not missing:
            (LOCKS / name).write_text(HEAD + "".join(f"{entry}\n" for entry in entries), encoding="utf-8")
            print(f"{name}: {len(entries)} packages, {sum(len(entry.hashes) for entry in entries)} files")
    if missing:
        print(f"no index has a file with a sha256 of: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
