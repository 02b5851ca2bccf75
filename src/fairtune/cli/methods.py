"""`fairtune methods`: what an arm can be made of, and the arms that are ready to use."""

from __future__ import annotations

import textwrap
from dataclasses import asdict
from typing import Annotated, Any

import typer
import yaml
from rich.table import Table
from rich.text import Text

from fairtune.cli.command import (
    AllowPlugins,
    AsJson,
    NamedIn,
    console,
    print_json,
    print_text,
    reading_study,
    report_errors,
)
from fairtune.core.errors import FairtuneError, nearest, one_of
from fairtune.methods.arms import NamedArm, named_arms
from fairtune.methods.base import Method
from fairtune.methods.config import MethodConfig
from fairtune.methods.hooks import hook_docs
from fairtune.methods.registry import method_plugin, registered
from fairtune.settings.learners import LEARNERS
from fairtune.study.fields import method_docs
from fairtune.study.study_file import load_plugins

Hooks = Annotated[
    bool, typer.Option("--hooks", help="What a method of your own can override, with all arguments, instead.")
]
Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="A method or a named arm; all if absent.", show_default=False),
]


@report_errors
def methods(
    name: Name = None,
    study: NamedIn = None,
    hooks: Hooks = False,
    allow_plugins: AllowPlugins = False,
    as_json: AsJson = False,
) -> None:
    """Show the methods and the named arms, or everything about one of them."""
    if hooks:
        _show_hooks(as_json)
        return
    if study is not None:
        with reading_study(allow_plugins):
            load_plugins(study)
    known, arms = registered(), named_arms()
    if name is not None and name not in known and name not in arms:
        names = [*known, *arms]
        hint = nearest(name, names) or ("" if study else " One of a plug-in is known with `--study FILE`.")
        raise FairtuneError(f"no method or named arm '{name}'; there are: {one_of(names)}.{hint}")
    chosen = [method for method in known.values() if name in (None, method.name)]
    chosen_arms = [arm for arm in arms.values() if name in (None, arm.name)]
    if as_json:
        print_json(
            {
                "methods": {method.name: _method_facts(method) for method in chosen},
                "arms": {arm.name: _arm_facts(arm) for arm in chosen_arms},
            }
        )
    elif name is None:
        _show_all(chosen, chosen_arms)
    else:
        for method in chosen:
            _show_method(method, [arm.name for arm in arms.values() if any(u.name == name for u in arm.uses)])
        for arm in chosen_arms:
            _show_arm(arm)


def _show_hooks(as_json: bool) -> None:
    docs = hook_docs()
    if as_json:
        print_json([asdict(doc) for doc in docs])
        return
    for doc in docs:
        indent = "    " if "." in doc.name else ""
        text = textwrap.indent(doc.help, f"{indent}    ")
        print_text(f"{indent}{doc.signature}\n{text}".rstrip() + "\n")


def _method_facts(method: type[Method]) -> dict[str, Any]:
    fields = {
        doc.path: {"help": doc.help, "allowed": doc.allowed, "default": doc.default} for doc in method_docs(method.name)
    }
    changes = sorted(method.excludes)
    facts = {"help": method.help(), "changes": changes, "step_factor": _step_factor(method), "fields": fields}
    plugin = method_plugin(method.name)
    return facts | ({"plugin": plugin.as_json()} if plugin else {})


def _arm_facts(arm: NamedArm) -> dict[str, Any]:
    learner = {} if arm.learner is None else {"learner": arm.learner}
    return {"help": arm.help, "methods": list(arm.methods), **learner, "yaml": snippet(arm)}


def _show_all(methods: list[type[Method]], arms: list[NamedArm]) -> None:
    out = console()
    _heading("Methods", "in an arm: `methods: [NAME]`; `fairtune methods NAME` shows the settings")
    table = _table()
    for method in methods:
        facts = (f"{_cost(method)}{_origin(method)}", "dim")
        table.add_row(Text(method.name), Text.assemble(method.help().splitlines()[0], facts))
    out.print(table)
    out.print()
    _heading("Named arms", "in a study: `arms: [NAME, NAME]`, `NAME: {lr: 1e-4}`, or `preset: NAME` in an arm")
    table = _table()
    for arm in arms:
        if arm.learner is None:
            table.add_row(Text(arm.name), _with_facts(arm.help, f"methods: {_flow(list(arm.methods))}"))
    out.print(table)
    out.print()
    _heading(
        "Simple baselines",
        "named arms that are not fine-tuned, for tasks that classify: `arms: {baseline: {}, NAME: {}}`",
    )
    table = _table()
    for arm in arms:
        if arm.learner is not None:
            table.add_row(Text(arm.name), Text(arm.help))
    out.print(table)


def _show_method(method: type[Method], used_by: list[str]) -> None:
    out = console()
    _heading(method.name, "method")
    out.print(Text(method.help()))
    changes = f"Changes the {' and the '.join(sorted(method.excludes))}." if method.excludes else ""
    out.print(Text(f"{changes}{_cost(method)}\n" if changes else ""))
    if origin := _origin(method).strip():
        out.print(Text(f"{origin}\n"))
    docs, table = method_docs(method.name), _table()
    for doc in docs:
        facts = [doc.allowed and f"allowed: {doc.allowed}", doc.default and f"default: {doc.default}"]
        table.add_row(Text(doc.path), _with_facts(doc.help, "; ".join(filter(None, facts))))
    out.print(table if docs else "It has no settings.")
    out.print(Text(f"\nIn an arm:\n  my-arm: {{methods: [{method.name}]}}"))
    if used_by:
        out.print(Text(f"\nNamed arms that use it: {one_of(used_by)}"))


def _cost(method: type[Method]) -> str:
    """What a step takes longer with the default settings; nothing where it goes no more often through the model."""
    factor = _step_factor(method)
    return f" A step takes about {factor:.3g} times as long, counted in passes." if factor != 1 else ""


def _step_factor(method: type[Method]) -> float:
    """With the default settings; they are not made for a method that does not change it, since PEFT's are slow to make."""
    config = method.config_class
    return 1.0 if config.step_factor is MethodConfig.step_factor else config().step_factor


def _origin(method: type[Method]) -> str:
    """Where a method of a plug-in comes from."""
    plugin = method_plugin(method.name)
    return f" From the plug-in {plugin.origin}." if plugin else ""


def _show_arm(arm: NamedArm) -> None:
    out = console()
    learner = None if arm.learner is None else LEARNERS[arm.learner]
    _heading(arm.name, "named arm" if learner is None else "simple baseline")
    out.print(Text(arm.help))
    fields = "any of `train`" if learner is None or learner.settings is None else one_of(learner.settings)
    made_of = (
        f"methods: {_flow(list(arm.methods))}"
        if learner is None
        else f"learner: {learner.name}\nsettings that it takes: {fields}"
    )
    out.print(Text(f"{made_of}\n\nIn a study:\n{snippet(arm)}"), soft_wrap=True)
    own = "lr: 1e-4" if learner is None or learner.uses("lr") else "examples: 1000"
    out.print(Text(f"\nUnder another name, with settings of its own:\n  my-arm: {{preset: {arm.name}, {own}}}"))


def snippet(arm: NamedArm) -> str:
    """The arms of a study that tries this one, ready to paste."""
    return "\n".join(["arms:", *(f"  {name}: {{}}" for name in dict.fromkeys(["baseline", arm.name]))])


def _flow(value: Any) -> str:
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, width=float("inf"))
    return text.strip()


def _heading(title: str, remark: str) -> None:
    console().print(Text.assemble((title, "bold"), "  ", (remark, "dim")))


def _table() -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column()
    return table


def _with_facts(help: str, facts: str) -> Text:
    return Text.assemble(help, ("\n" + facts, "dim"))
