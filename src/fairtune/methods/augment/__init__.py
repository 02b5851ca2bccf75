"""Augmentation: training texts with words left out, exchanged, misspelt, or changed by a function of the user's."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from fairtune.methods.augment.function import FORM, name_of
from fairtune.methods.config import MethodConfig
from fairtune.methods.registry import register
from fairtune.settings.values import LONGEST_TEXT, Number

Chance = Annotated[Number, Field(ge=0, le=1)]


class AugmentConfig(MethodConfig):
    """Change the training texts a little in each epoch: leave words out, exchange neighbours, misspell, or ask a function."""

    share: Chance = Field(1.0, description="Share of the training examples that are changed in an epoch.")
    delete: Chance = Field(
        0.1, description="Chance of each word to be left out, never of all; 0 if absent beside a function."
    )
    swap: Chance = Field(
        0.1, description="Chance of two neighbouring words to change places; 0 if absent beside a function."
    )
    typo: Chance = Field(
        0.0,
        description="Chance of each word of three or more letters to get one slip: two exchanged, one lost, one twice.",
    )
    function: (
        Annotated[str, Field(pattern=FORM, max_length=LONGEST_TEXT, title="a function as package.module:name")] | None
    ) = Field(
        None,
        description="A function of your own as 'package.module:name', such as a back-translation: takes a list of texts, returns "
        "as many; asked once for each text, before words are changed.",
    )

    @model_validator(mode="before")
    @classmethod
    def _function_alone(cls, given: Any) -> Any:
        """Who gives a function gets what it says, and words changed only where that is asked for."""
        if isinstance(given, dict) and given.get("function") is not None:
            return {"delete": 0.0, "swap": 0.0, **given}
        return given

    @field_validator("function", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        return name_of(given) if isinstance(given, str) or callable(given) else given

    @property
    def idle(self) -> bool:
        """No text is changed."""
        return self.share == 0 or (not (self.delete or self.swap or self.typo) and self.function is None)

    @property
    def one_process(self) -> str | None:
        if self.function is not None:
            return (
                "a `function` may answer each process otherwise, and then they would no longer train on the same texts"
            )
        return None

    def control_for(self, acting: MethodConfig) -> bool:
        """Texts as they are, are the control of changed ones."""
        return self.idle and isinstance(acting, AugmentConfig) and not acting.idle


register("augment", AugmentConfig, "fairtune.methods.augment.method:Augment", ["training texts"], ["classify"])
