"""Plug-ins: other people's modules, imported so that they can register what they add, and named so that a plan can say which.

A plug-in is an installed package with entry points, or a module that a study names (a file or folder beside the study file, or
anything that Python can import). This file knows nothing of what plug-ins add: registries call `note` for what is registered.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

from fairtune.core.errors import FairtuneError
from fairtune.core.files import sha256_of

MODULE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
"""How a study names a module; one beside the study file may also be given with its `.py`."""


class PluginError(FairtuneError):
    """A plug-in cannot be used."""


@dataclass(frozen=True)
class Plugin:
    """A plug-in that is loaded.

    Args:
        module: what is imported.
        file: where it is.
        sha256: of the file, or of all Python files of the package.
        distribution: the installed package that announces it, and its version; None where a study names the module.
        group: the entry points that announce it.
    """

    module: str
    file: str
    sha256: str
    distribution: str | None = None
    version: str | None = None
    group: str | None = None

    @property
    def name(self) -> str:
        return self.distribution or self.module

    @property
    def label(self) -> str:
        """Name and version, or name and the beginning of the hash: what signatures and messages say."""
        return f"{self.name}@{self.version or self.sha256[:8]}"

    @property
    def origin(self) -> str:
        """Where it comes from, in words."""
        return f"{self.distribution} {self.version}" if self.distribution else self.file

    def identity(self) -> dict[str, Any]:
        """What makes two plug-ins the same, wherever they are on a disk."""
        found = {"module": self.module, "sha256": self.sha256}
        return found | ({"distribution": self.distribution, "version": self.version} if self.distribution else {})

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


_loaded: dict[str, Plugin] = {}
_noted: dict[tuple[str, str], tuple[str, Callable[[], object]]] = {}
"""What was registered: by which module, and how to undo it."""
_loading: list[str] = []
_discovered: set[str] = set()


def note(registry: str, name: str, module: str, forget: Callable[[], object]) -> None:
    """Called by a registry for each thing that is registered.

    Args:
        registry: what it holds, such as `method`.
        module: where it is defined; used where no plug-in is being loaded.
        forget: takes it out of the registry again.
    """
    _noted[registry, name] = (_loading[-1] if _loading else module), forget


def plugin_of(registry: str, name: str) -> Plugin | None:
    """The plug-in that registered a thing; None if it was not a plug-in."""
    module, _ = _noted.get((registry, name), ("", None))
    return _loaded.get(module) or next(iter(_of_package(module)), None)


def loaded_plugins() -> tuple[Plugin, ...]:
    """All plug-ins of this process, in the order of loading."""
    return tuple(_loaded.values())


def discover(group: str) -> None:
    """Load every plug-in that an installed package announces in a group of entry points; once for each group.

    Raises:
        PluginError: one of them cannot be used.
    """
    if group in _discovered:
        return
    _discovered.add(group)  # before, since a plug-in may ask a registry for what there is
    try:
        for point in sorted(importlib.metadata.entry_points(group=group), key=lambda point: point.name):
            _load_announced(point, group)
    except BaseException:
        _discovered.discard(group)
        raise


def load_module(name: str, beside: Path) -> Plugin:
    """Load a module that a study names, unless this very module is loaded.

    Args:
        name: `my_module`, `my_module.py` or `package.module`.
        beside: the study file's folder, where it is looked for first.

    Raises:
        PluginError: there is none, it cannot be imported, or it registers nothing.
    """
    module = name.removesuffix(".py")
    if not re.fullmatch(MODULE, module):
        raise PluginError(f"plug-in '{name}': give the name of a Python module, such as my_module or my_module.py.")
    return _load(module, _file_of(module, beside))


def take_plugins(planned: Iterable[Plugin]) -> None:
    """Load in a worker what the plan was made with.

    Args:
        planned: those that were loaded in the process that planned.

    Raises:
        PluginError: one is gone, or is not what it was.
    """
    for before in planned:
        if before.group is not None:
            discover(before.group)
            now = _loaded.get(before.module)
        else:
            now = _load(before.module, Path(before.file)) if Path(before.file).is_file() else None
        if now is None:
            where = "it is not installed here" if before.group else f"{before.file} is gone"
            raise PluginError(f"plug-in {before.name}: {where}, with which the study was planned; bring it back.")
        if now.identity() != before.identity():
            found = "" if now.version == before.version else f" ({before.version} then, {now.version} now)"
            raise PluginError(
                f"plug-in {before.name} changed since the study was planned{found}; run `fairtune run` again to plan again."
            )


def _load_announced(point: importlib.metadata.EntryPoint, group: str) -> None:
    name, version = (point.dist.name, point.dist.version) if point.dist else (point.module, None)
    called = f"plug-in {name} {version or ''}".strip() + f": its entry point {point.name} of {group}"
    if point.attr:
        raise PluginError(f"{called} is '{point.value}'; it must name a module, such as {point.module}.")
    spec = None
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(_root(point.module))
    if spec is None or spec.origin is None:
        raise PluginError(
            f"{called} names the module {point.module}, which is not there; install it again, or remove it."
        )
    _load(point.module, Path(spec.origin), distribution=name, version=version, group=group)


def _load(module: str, file: Path, **announced: Any) -> Plugin:
    """Import a module from its file, and remember it; a former one of the same name is forgotten if it was another."""
    root, plugin = _root(module), Plugin(module, str(file), _sha256(module, file), **announced)
    before = _of_package(module)
    if any((one.file, one.sha256) != (plugin.file, plugin.sha256) for one in before):
        _forget(root)
    elif module in _loaded:
        return _loaded[module]
    elif not before and root in sys.modules and _place(sys.modules[root]) != file.resolve():
        raise PluginError(
            f"plug-in {plugin.name} ({plugin.origin}): another module is called '{root}'; give it another name."
        )
    _loaded[module], there_before = plugin, root in sys.modules
    try:
        _import(module, file, plugin)
        if not any(_root(by) == root for by, _ in _noted.values()):
            raise PluginError(
                f"plug-in {plugin.name} ({plugin.origin}): importing it registers nothing; it must call a `register` of fairtune."
            )
    except BaseException:
        _forget(root, imported=not there_before)  # what others imported is theirs
        raise
    return plugin


def _import(module: str, file: Path, plugin: Plugin) -> None:
    called = f"plug-in {plugin.name} ({plugin.origin})"
    _loading.append(module)
    try:
        if _root(module) not in sys.modules:
            _import_file(_root(module), file)
        importlib.import_module(module)
    except PluginError:
        raise
    except ModuleNotFoundError as error:
        raise PluginError(f"{called}: there is no module '{error.name}'{_line(error, file)}.") from None
    except (Exception, SystemExit) as error:
        text = error.msg if isinstance(error, SyntaxError) else str(error)  # whose text has the line already
        first = next(iter(text.strip().splitlines()), "").removesuffix(".")
        reason = f"{type(error).__name__}: {first}" if first else type(error).__name__
        raise PluginError(f"{called}: importing it raised {reason}{_line(error, file)}.") from error
    finally:
        _loading.pop()


class _HashedSource(SourceFileLoader):
    """Runs what is in the file, which is what was hashed: no bytecode from an earlier second, and none left beside a study."""

    def path_stats(self, path: str) -> Mapping[str, Any]:
        raise OSError(f"{path}: read as source only")


def _import_file(root: str, file: Path) -> None:
    package = [str(file.parent)] if file.name == "__init__.py" else None
    loader = _HashedSource(root, str(file))
    spec = importlib.util.spec_from_file_location(root, file, loader=loader, submodule_search_locations=package)
    assert spec is not None
    module = sys.modules[root] = importlib.util.module_from_spec(spec)
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(root, None)
        raise


def _of_package(module: str) -> list[Plugin]:
    """The plug-ins that are modules of the same package, which is hashed as one."""
    return [plugin for name, plugin in _loaded.items() if _root(name) == _root(module)]


def _forget(root: str, imported: bool = True) -> None:
    """Undo what a package's plug-ins registered, so that it can be loaded again.

    Args:
        imported: whether its modules are to be imported again, too.
    """
    for plugin in _of_package(root):
        del _loaded[plugin.module]
    for key, (module, forget) in list(_noted.items()):
        if _root(module) == root:
            forget()
            del _noted[key]
    for name in [name for name in sys.modules if imported and _root(name) == root]:
        del sys.modules[name]


def _file_of(module: str, beside: Path) -> Path:
    root = _root(module)
    for file in (beside / f"{root}.py", beside / root / "__init__.py"):
        with contextlib.suppress(OSError):
            if file.is_file():
                return file.resolve()
    with contextlib.suppress(ImportError, ValueError):
        spec = importlib.util.find_spec(root)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            return Path(spec.origin).resolve()
    raise PluginError(
        f"plug-in '{module}': there is no {root}.py beside the study file (in {beside}), and Python finds no module '{root}'."
    )


def _sha256(module: str, file: Path) -> str:
    """Of a single file as `sha256sum` has it; of a package, over the hashes of all its Python files."""
    try:
        if file.name != "__init__.py":
            return sha256_of(file)
        every = hashlib.sha256()
        for part in sorted(file.parent.rglob("*.py")):
            every.update(f"{part.relative_to(file.parent).as_posix()}\0{sha256_of(part)}\n".encode())
        return every.hexdigest()
    except OSError as error:
        raise PluginError(f"plug-in '{module}': {file} cannot be read: {error.strerror}.") from None


def _place(module: ModuleType) -> Path | None:
    found = getattr(module, "__file__", None)
    return None if found is None else Path(found).resolve()


def _line(error: BaseException, file: Path) -> str:
    """The line of the plug-in that an error came from, where it is known."""
    if isinstance(error, SyntaxError) and error.filename:
        return f" ({Path(error.filename).name}, line {error.lineno})"
    inside = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).parent == file.parent]
    return f" ({Path(inside[-1].filename).name}, line {inside[-1].lineno})" if inside else ""


def _root(module: str) -> str:
    return module.partition(".")[0]
