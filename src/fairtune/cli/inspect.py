"""`fairtune inspect`: what a model is made of."""

from __future__ import annotations

from typing import Annotated

import typer

from fairtune.cli.answering import AsJson, answers, console, print_json
from fairtune.models.sources import find_model

ModelName = Annotated[str, typer.Argument(metavar="MODEL", help="minilm, a folder, or a hub id.", show_default=False)]


@answers
def inspect(model: ModelName, as_json: AsJson = False) -> None:
    """Show a model's parameters and attention layers, and check its tensors against the checkpoint's file."""
    source = find_model(model)
    from fairtune.models.inspection import inspect_model

    facts = inspect_model(source)
    if as_json:
        print_json(facts)
        return
    out, parameters, attention = console(), facts["parameters"], facts["attention"]
    out.print(f"[bold]{source.name}[/bold]  {facts['architecture']}, {source.identity[:12]}")
    out.print(
        f"  parameters  {parameters['total']:,} with a head for two classes, {parameters['buffers']:,} elements in buffers"
    )
    out.print(
        f"  checkpoint  {facts['same']} tensors equal its file, {len(facts['changed'])} differ, {len(facts['new'])} new"
    )
    if attention["layers"]:
        out.print(
            f"  attention   {attention['layers']} layers, {attention['heads']} heads of {attention['head_dim']}; "
            f"Q and K hold {attention['qk_parameters']:,} parameters ({100 * attention['qk_share']:.2f} %)"
        )
    else:
        out.print(f"  attention   {attention['problem']}", markup=False, soft_wrap=True)
