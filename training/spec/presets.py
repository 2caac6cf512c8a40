"""Named recipes, each a YAML file beside this one."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

from .lint import Problem, Refused, parse_recipe
from .reading import read_yaml
from .recipe import Recipe


@dataclass(frozen=True)
class Preset:
    """A named recipe. `nodes` and `processes` say what placement it was written for."""

    name: str
    title: str
    nodes: int
    processes: int
    recipe: Recipe


def names() -> list[str]:
    """Return the presets' names, sorted."""
    folder = resources.files(__package__) / "presets"
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))


def load(name: str) -> Preset:
    """Return the preset; raise Refused when there is none of that name."""
    if name not in names():
        raise Refused([Problem("preset", f"no preset is called {name!r}", f"Known: {', '.join(names())}.")])
    text = (resources.files(__package__) / "presets" / f"{name}.yaml").read_text("utf-8")
    raw = read_yaml(text)
    return Preset(name, raw["title"], raw["nodes"], raw["processes"], parse_recipe(raw["recipe"]))
