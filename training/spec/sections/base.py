"""What all sections share: unknown keys are errors, values are frozen and never NaN."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

NUMBERS = (int, float)


class Section(BaseModel):
    """A part of the recipe. What would be accepted and then ignored is refused; forms and presets send defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @field_validator("*", mode="before")
    @classmethod
    def a_switch_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        """Python takes true for 1: a learning rate of `true` would train."""
        if isinstance(value, bool) and cls.model_fields[str(info.field_name)].annotation in NUMBERS:
            raise ValueError("Input should be a number")
        return value

    def changed(self, *names: str) -> list[str]:
        """Return which of these fields are not as the schema has them."""
        return [name for name in names if getattr(self, name) != type(self).model_fields[name].default]
