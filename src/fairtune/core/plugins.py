"""Plug-ins: modules that register methods or tasks when they are imported.

Installed packages announce them with entry points, a study names others; `fairtune.core.plugin_files` finds and hashes them.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path

from fairtune.core.plugin_files import PACKAGE, Plugin, PluginError, find_plugin, installed_plugins, require_consent

_loaded: dict[str, Plugin] = {}
_noted: dict[tuple[str, str], tuple[str, Callable[[], object]]] = {}  # by which module, and how to undo it
_loading: list[str] = []


def note(registry: str, name: str, module: str, forget: Callable[[], object]) -> None:
    """Called by a registry (`method`, `task`) for each thing that a module registers; `forget` takes it out again."""
    _noted[registry, name] = _loading[-1] if _loading else module, forget


def plugin_of(registry: str, name: str) -> Plugin | None:
    """The plug-in that registered a thing; None if it was not a plug-in."""
    module, _ = _noted.get((registry, name), ("", None))
    return _loaded.get(module) or next((one for one in _loaded.values() if one.root == _root(module)), None)


def loaded_plugins() -> tuple[Plugin, ...]:
    """All plug-ins of this process, in the order of loading."""
    return tuple(_loaded.values())


@cache
def discover(group: str) -> None:
    """Load every plug-in that an installed package announces in a group of entry points; once for each group."""
    for plugin in installed_plugins(group):
        load_plugin(plugin)


def load_named(names: Sequence[str], folder: Path) -> dict[str, PluginError]:
    """Load what a study in a folder names; returns what is wrong, by name.

    Raises:
        ConsentNeeded: the user has not allowed one of them; nothing of any was executed.
    """
    found: dict[str, Plugin] = {}
    errors: dict[str, PluginError] = {}
    for name in names:
        try:
            found[name] = find_plugin(name, folder)
        except PluginError as error:
            errors[name] = error
    require_consent(found.values())
    for name, plugin in found.items():
        try:
            load_plugin(plugin)
        except PluginError as error:
            errors[name] = error
    return errors


def load_plugin(plugin: Plugin) -> Plugin:
    """Import a plug-in, unless the same code is loaded; other code of the same name is forgotten."""
    same = [one for one in _loaded.values() if one.root == plugin.root]
    if any((one.file, one.sha256) != (plugin.file, plugin.sha256) for one in same):
        forget_plugin(plugin.root)
    elif plugin.module in _loaded:
        return _loaded[plugin.module]
    imported, before = plugin.root in sys.modules, sys.dont_write_bytecode
    _loaded[plugin.module] = plugin
    _loading.append(plugin.module)
    sys.dont_write_bytecode = True  # none is left next to a study, so what runs is what was hashed
    try:
        if not imported:
            _import(plugin.root, Path(plugin.file))
        elif not plugin.is_imported:
            raise PluginError(f"another module is called '{plugin.root}'; give it another name")
        importlib.import_module(plugin.module)
        if not any(_root(module) == plugin.root for module, _ in _noted.values()):
            raise PluginError("importing it registers nothing; it must call a `register` of fairtune")
    except (Exception, SystemExit) as error:
        first = next(iter(str(error).strip().splitlines()), "").removesuffix(".")
        reason = first if isinstance(error, PluginError) else f"importing it raised {type(error).__name__}: {first}"
        message = f"plug-in {plugin.distribution or plugin.module} ({plugin.origin}): {reason}{line_of(error)}."
        forget_plugin(plugin.root, imported=not imported)  # what the user's own code imported stays
        raise PluginError(message) from error
    finally:
        sys.dont_write_bytecode = before
        _loading.pop()
    return plugin


def take_plugins(planned: Iterable[Plugin]) -> None:
    """Load in a worker what the plan was made with; the user allowed it when the study was read.

    Raises:
        PluginError: one is gone, or is not what it was.
    """
    for before in planned:
        if before.group is not None:
            discover(before.group)
        elif (now := before.now) is not None:
            load_plugin(now)
        found = _loaded.get(before.module)
        if found is None or found.identity() != before.identity():
            is_now = "is not there" if found is None else f"is {found.label} now"
            raise PluginError(
                f"the study was planned with plug-in {before.label}, which {is_now} ({before.origin}); bring it back, or run "
                "`fairtune run` again to plan again."
            )


def forget_plugin(root: str, imported: bool = True) -> None:
    """Undo what a top-level module registered, so that it can be loaded again; with `imported`, import it again, too."""
    for plugin in [one for one in _loaded.values() if one.root == root]:
        del _loaded[plugin.module]
    for key, (module, forget) in list(_noted.items()):
        if _root(module) == root:
            forget()
            del _noted[key]
    for name in [name for name in sys.modules if imported and _root(name) == root]:
        del sys.modules[name]


def line_of(error: BaseException) -> str:
    """` (mine.py, line 3)`: the innermost line of a plug-in that an error came through; empty where there is none."""
    for frame, line in reversed(list(traceback.walk_tb(error.__traceback__))):
        file = Path(frame.f_code.co_filename)
        if any(plugin.holds(file) for plugin in _loaded.values()):
            return f" ({file.name}, line {line})"
    return ""


def _import(root: str, file: Path) -> None:
    inside = [str(file.parent)] if file.name == PACKAGE else None
    spec = importlib.util.spec_from_file_location(root, file, submodule_search_locations=inside)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[root] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[root])


def _root(module: str) -> str:
    return module.partition(".")[0]
