"""How a ready export is served, as far as the service knows it: see training.spec.hints."""

from __future__ import annotations

from training.spec.hints import Exported, Hint, hints

from .models import Export


def of(export: Export) -> list[Hint]:
    """Return a hint for each tool, for the folder where it lies on its node.

    The architecture stands in the folder's config.json, which the service has not read: a hint then names those that
    its tool takes.
    """
    recipe = export.run.parsed_recipe()
    alone = export.adapter == "adapter"
    return hints(
        Exported(
            folder=str(export.folder.model),
            name=f"export-{export.pk}",
            dtype=export.shown_dtype,
            adapter="adapter" if alone else "merged" if export.adapter == "merged" else "none",
            base=export.run.model.location,
            rank=recipe.method.rank if alone else 0,
            whole=alone and bool(recipe.method.modules_to_save),
            trust_remote_code=recipe.model.trust_remote_code,
            chat=recipe.data.format == "messages",
        )
    )
