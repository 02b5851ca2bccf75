"""Adapters of the PEFT library: its methods are arms, its config fields are the arm's fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic_core import CoreSchema

from fairtune.methods.config import MethodConfig, MethodUse
from fairtune.methods.peft.checks import adapter_types, checked, field_schema
from fairtune.methods.registry import register


class PeftConfig(MethodConfig):
    """Train adapters of the PEFT library (LoRA, DoRA, IA3, VeRA, OFT ...) and the fresh head; all else is frozen."""

    model_config = ConfigDict(extra="allow")
    freezes_embeddings = True
    wraps_model = True

    type: str = Field(
        "lora",
        description="Which method of the library, by its name in lower case. Every field of the library's config for it "
        "may stand beside it; `fairtune schema` lists them.",
    )

    @model_validator(mode="before")
    @classmethod
    def _check(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        settings = {str(name): value for name, value in given.items() if name != "type"}
        name, settings = checked(given.get("type", "lora"), settings)
        return {"type": name, **settings}

    @property
    def settings(self) -> dict[str, Any]:
        """The fields of the library's config that were given."""
        return dict(self.model_extra or {})

    def clash(self, before: Sequence[MethodUse], after: Sequence[MethodUse]) -> str | None:
        if rewriting := next((use.name for use in after if use.config.rewrites_projections), None):
            return f"it stands before '{rewriting}', which would then change what the adapters were made for; list it after that"
        freezing = next((use.name for use in before if use.config.freezes_projections), None)
        if freezing and "target_modules" not in self.settings and self._chooses_modules():
            return (
                f"'{freezing}' freezes the query and key projections, and the library's own choice of modules takes such; give "
                "`target_modules` without them, or let that method not freeze"
            )
        return None

    def _chooses_modules(self) -> bool:
        """Whether this type of adapter chooses its modules itself; assumed so where the library cannot be asked."""
        adapter_type = adapter_types().get(self.type)
        return adapter_type is None or any(field.name == "target_modules" for field in adapter_type.fields)

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The fields of each adapter type, once its name is given; anything, if the library is not installed to ask."""
        schema = handler.resolve_ref_schema(handler(core))
        known = adapter_types()
        if not known:
            return schema
        schema["properties"]["type"]["enum"] = list(known)
        schema["additionalProperties"] = True
        schema["allOf"] = [
            {
                "if": {"properties": {"type": {"const": name}}, **({} if name == "lora" else {"required": ["type"]})},
                "then": {
                    "properties": {"type": {}, **{field.name: field_schema(field) for field in adapter_type.fields}},
                    "additionalProperties": False,
                },
            }
            for name, adapter_type in known.items()
        ]
        return schema


register(
    "peft",
    PeftConfig,
    "fairtune.methods.peft.method:Peft",
    claims=["choice of trainable parameters"],
    toy={"target_modules": ["value"]},
)
