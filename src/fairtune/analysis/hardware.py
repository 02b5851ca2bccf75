"""Unlike hardware: which runs were on which kind of it, and which arms were compared across kinds.

Another processor or card rounds otherwise and takes another time. Arms are compared within a seed, so what counts is that a seed's
runs were on one kind; no time is compared of an arm whose runs were not where those of its partner were.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from fairtune.analysis.ledger_runs import LedgerRun
from fairtune.core.cautions import Caution
from fairtune.settings.learners import Learner

Facts = tuple[tuple[str, str], ...]
"""Names with values, in a fixed order: two runs are alike if theirs are equal."""
VERSIONS = ("torch", "transformers", "accelerate", "peft", "tokenizers", "numpy")
"""Packages of which another version may train otherwise, or take another time."""
GB = 1e9
UNTOLD = 6
"""So many arms are named with what they ran on; of more, how many."""


class PlacedResults(Protocol):
    """What is taken of a study's results."""

    @property
    def arms(self) -> list[str]: ...
    def finished(self, arm: str) -> list[LedgerRun]: ...
    def primary(self, arm: str) -> str | None: ...
    def learner(self, arm: str) -> Learner | None: ...


def hardware_of(environment: Mapping[str, Any] | None) -> Facts | None:
    """The kind of hardware that a run was on, from records old and new; None where that is not on record."""
    if not environment or not environment.get("device"):
        return None
    device = str(environment["device"]).partition(":")[0]
    found = {"device": {"cuda": "GPU", "cpu": "CPU"}.get(device, device)}
    if device == "cuda":
        found["card"] = _card(environment)
    found["processor"] = str(environment.get("cpu") or "unknown")
    if device == "cpu":
        found["instructions"] = str((environment.get("torch") or {}).get("cpu_capability") or "unknown")
    return tuple(found.items())


def versions_of(environment: Mapping[str, Any] | None) -> Facts | None:
    """The versions that may explain a difference between two runs; None where they are not on record."""
    if not environment:
        return None
    packages, torch = environment.get("packages") or {}, environment.get("torch") or {}
    drivers = [card.get("driver") for card in environment.get("cards") or ()]
    named = {
        "fairtune": environment.get("fairtune"),
        "Python": environment.get("python"),
        **{name: packages.get(name) for name in VERSIONS},
        "CUDA": torch.get("cuda"),
        "driver": next(iter(drivers), None),
    }
    return tuple((name, str(value)) for name, value in named.items() if value is not None)


def _card(environment: Mapping[str, Any]) -> str:
    """The run's own card; of old records, which have all cards of the machine, what these have in common."""
    known = environment.get("cards") or (environment.get("load") or {}).get("gpus") or ()
    kinds = dict.fromkeys(
        f"{card.get('name')}{f', {size / GB:.0f} GB' if (size := card.get('memory_bytes')) else ''}" for card in known
    )
    return " or ".join(kinds) or "unknown"


def readable(environment: Mapping[str, Any]) -> dict[str, Any]:
    """An environment whose lists are in words: the run's card, and where it was trained before."""
    found = {name: value for name, value in environment.items() if name not in ("cards", "earlier")}
    if environment.get("cards"):
        found["card"] = _card(environment)
        found["driver"] = dict(versions_of(environment) or ()).get("driver")
    if environment.get("earlier"):
        places = (
            ", ".join([str(one.get("node")), *dict(hardware_of(one) or ()).values()]) for one in environment["earlier"]
        )
        found["trained before on"] = "; ".join(places)
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True)
class Places:
    """What of a study's runs differs, by arm and seed.

    Args:
        arms: of each arm by seed what its run was on, as far as that differs among runs.
        unlike: arms that were not, for some seed, on what their partner was on, with those partners.
    """

    arms: dict[str, dict[int, str]]
    unlike: dict[str, str]

    @property
    def differing(self) -> bool:
        return len({kind for seeds in self.arms.values() for kind in seeds.values()}) > 1

    def told(self, word: str) -> str:
        """The arms that are concerned, each with what its seeds had: oelm on A100 for seeds 0 to 2 and on V100 for seed 3."""
        names = list(dict.fromkeys([*self.unlike, *self.unlike.values()]))
        said = [f"{arm} {_seeds_by_kind(self.arms[arm], word)}" for arm in names[:UNTOLD]]
        return "; ".join([*said, *([f"and {len(names) - UNTOLD} more arms"] if len(names) > UNTOLD else [])])

    def by_seed(self, word: str) -> str:
        """The same where all arms of a seed had one kind."""
        return _seeds_by_kind({seed: kind for seeds in self.arms.values() for seed, kind in seeds.items()}, word)


def find_places(results: PlacedResults) -> Places:
    """On which kinds of hardware the runs of a study were."""
    return _places(results, hardware_of)


def find_versions(results: PlacedResults) -> Places:
    """With which versions they were made."""
    return _places(results, versions_of)


def _places(results: PlacedResults, read: Callable[[Mapping[str, Any] | None], Facts | None]) -> Places:
    trained = [arm for arm in results.arms if (learner := results.learner(arm)) is None or learner.trained]
    found: dict[str, dict[int, tuple[Facts, ...]]] = {}
    for arm in trained:  # what is fitted at once is compared by nobody's clock
        known = {run.seed: kinds for run in results.finished(arm) if (kinds := _kinds(run, read))}
        if known:
            found[arm] = known
    told = _names({kinds for seeds in found.values() for kinds in seeds.values()})
    unlike = {}
    for arm, seeds in found.items():
        other = results.primary(arm)
        theirs = found.get(other, {}) if other is not None else {}
        if other is not None and any(seed in theirs and theirs[seed] != kinds for seed, kinds in seeds.items()):
            unlike[arm] = other
    return Places({arm: {seed: told[kinds] for seed, kinds in seeds.items()} for arm, seeds in found.items()}, unlike)


def _kinds(run: LedgerRun, read: Callable[[Mapping[str, Any] | None], Facts | None]) -> tuple[Facts, ...]:
    """Of a run that went on elsewhere, all that it was on, the first one first."""
    environment = run.environment or {}
    kinds = (read(one) for one in (*environment.get("earlier", ()), environment))
    return tuple(dict.fromkeys(kind for kind in kinds if kind is not None))


def _names(found: Iterable[tuple[Facts, ...]]) -> dict[tuple[Facts, ...], str]:
    """Each in words, of which those that are true of all are left out."""
    every = list(found)
    kinds = [dict(kind) for kinds in every for kind in kinds]
    names = dict.fromkeys(name for kind in kinds for name in kind)
    differing = [name for name in names if len({kind.get(name) for kind in kinds}) > 1]
    return {kinds: ", then ".join(_words(dict(kind), differing) for kind in kinds) for kinds in every}


def _words(kind: Mapping[str, str], names: Sequence[str]) -> str:
    """A kind by what tells it from the others: an NVIDIA A100; torch 2.12.0."""
    wanted = [name for name in names if name != "device" or "card" not in names]
    bare = ("device", "card", "processor", "instructions")
    parts = [kind[name] if name in bare else f"{name} {kind[name]}" for name in wanted if name in kind]
    return ", ".join(parts) or kind.get("device", "unknown")


def _seeds_by_kind(seeds: Mapping[int, str], word: str) -> str:
    by_kind: dict[str, list[int]] = {}
    for seed, kind in sorted(seeds.items()):
        by_kind.setdefault(kind, []).append(seed)
    if len(by_kind) == 1:
        return f"{word} {next(iter(by_kind))}"
    return " and ".join(f"{word} {kind} for {seeds_text(own)}" for kind, own in by_kind.items())


def seeds_text(seeds: Sequence[int]) -> str:
    """seed 3; seeds 0 to 2; seeds 0, 2 and 5."""
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    *first, last = map(str, seeds)
    return f"seeds {', '.join(first)} and {last}" if first else f"seed {last}"


def find_cautions(results: PlacedResults, hardware: Places) -> Iterator[Caution]:
    """What a reader must know of where runs were, and with which versions."""
    if hardware.unlike:
        names = ", ".join(hardware.unlike)
        yield Caution(
            "warning", "unlike-hardware", f"runs that are compared were on unlike hardware: {hardware.told('on')}",
            "another processor or card rounds otherwise and takes another time, so a difference may be the machine's, and no "
            f"times of {names} are compared",
            "Move the folders of the odd runs away, and run them again where the others of their seeds were",
        )  # fmt: skip
    elif hardware.differing:
        yield Caution(
            "note", "mixed-hardware", f"seeds were on different hardware, each seed's arms on one kind: {hardware.by_seed('on')}",
            "arms are compared within a seed, so verdicts stand, but a mean over seeds is one over machines, and so is a time",
            "Compare times by `fairtune time`, on one machine",
        )  # fmt: skip
    versions = find_versions(results)
    if versions.unlike:
        yield Caution(
            "warning", "unlike-versions", f"runs that are compared were made with different versions: {versions.told('with')}",
            "another version may train otherwise, so a difference may be the version's",
            "Move the folders of the odd runs away, and run them again with the versions of the others",
        )  # fmt: skip
    elif versions.differing:
        yield Caution(
            "note", "mixed-versions",
            f"seeds were made with different versions, each seed's arms with one: {versions.by_seed('with')}",
            "arms are compared within a seed, so verdicts stand, but nobody gets all these figures from one installation",
            "Say so where figures are reported, or run the study anew with one",
        )  # fmt: skip
