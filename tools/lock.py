"""Write the lock files: for every version in `constraints.txt` the sha256 of each file that a package index has of it.

    make lock

Indexes and folders of wheels are those that pip is configured with. A hash that a lock file has already stays as long as its version
does, since files of a version are never replaced: so the hashes of builds that only some machines see, such as torch for CPUs, add up.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterable, Iterator
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
CONSTRAINTS = HERE / "constraints.txt"
CUDA = "# CUDA"
"""How the comment begins after which constraints.txt has what only torch's build for NVIDIA's devices needs."""
LOCKS = {False: HERE / "requirements.lock", True: HERE / "requirements-cuda.lock"}
HEAD = "# Made by `make lock` from constraints.txt: every file of these versions that may be installed.\n"
PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pins(file: Path = CONSTRAINTS) -> dict[bool, dict[str, str]]:
    """Versions by name: those that everybody needs, and those for CUDA only."""
    found: dict[bool, dict[str, str]] = {False: {}, True: {}}
    cuda = False
    for line in file.read_text(encoding="utf-8").splitlines():
        cuda = cuda or line.startswith(CUDA)
        if pin := PIN.fullmatch(line.strip()):
            found[cuda][canonicalize_name(pin[1])] = pin[2]
    return found


def locked(file: Path) -> dict[str, tuple[str, set[str]]]:
    """Version and hashes by name, as a lock file has them."""
    found: dict[str, tuple[str, set[str]]] = {}
    name = ""
    for line in file.read_text(encoding="utf-8").splitlines() if file.exists() else []:
        if pin := PIN.match(line):
            name = canonicalize_name(pin[1])
            found[name] = (pin[2], set())
        found.setdefault(name, ("", set()))[1].update(HASH.findall(line))
    found.pop("", None)
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
    """Whether a file is of a version; a build of it for some machines (2.13.0+cpu) is."""
    try:
        own, found = parse_wheel_filename(file)[:2] if file.endswith(".whl") else parse_sdist_filename(file)
    except (InvalidWheelFilename, InvalidSdistFilename, InvalidVersion):
        return False
    return own == name and found.public == Version(version).public


def text_of(entries: Iterable[tuple[str, str, set[str]]]) -> str:
    """A lock file."""
    lines = [
        " \\\n".join([f"{name}=={version}", *(f"    --hash=sha256:{one}" for one in sorted(hashes))])
        for name, version, hashes in entries
    ]
    return HEAD + "\n".join(lines) + "\n"


def main() -> int:
    indexes, missing = Indexes(), []
    for cuda, versions in pins().items():
        known, entries = locked(LOCKS[cuda]), []
        for name, version in sorted(versions.items()):
            before = known.get(name, ("", set()))
            hashes = indexes.hashes(name, version) | (before[1] if before[0] == version else set())
            missing += [] if hashes else [f"{name}=={version}"]
            entries.append((name, version, hashes))
        if not missing:
            LOCKS[cuda].write_text(text_of(entries), encoding="utf-8")
            print(f"{LOCKS[cuda].name}: {len(entries)} packages, {sum(len(one[2]) for one in entries)} files")
    if missing:
        print(f"no index has a file with a sha256 of: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
