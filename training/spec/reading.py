"""Read a recipe's YAML, or JSON, strictly: a key that is there twice would silently lose its first value."""

from __future__ import annotations

from typing import Any

import yaml
from yaml.composer import ComposerError
from yaml.constructor import ConstructorError

from .lint import Problem, Refused

WAY_OUT = "Mend that line, or begin from a preset."


class Strict(yaml.SafeLoader):
    """YAML without doubled keys, and without aliases: a few lines of them stand for terabytes."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.value in seen and isinstance(key_node, yaml.ScalarNode):
                raise ConstructorError(None, None, f"{key_node.value[:80]} is there twice", key_node.start_mark)
            seen.add(key_node.value if isinstance(key_node, yaml.ScalarNode) else id(key_node))
        return super().construct_mapping(node, deep)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise ComposerError(None, None, "aliases are not read here", self.peek_event().start_mark)
        return super().compose_node(parent, index)


def read_yaml(text: str) -> dict[str, Any]:
    """Return the mapping that `text` holds, unchecked; raise Refused, with line and column, where it holds none."""
    try:
        found = yaml.load(text or "{}", Strict)  # noqa: S506  a SafeLoader, made stricter
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        reason = f"{where}{getattr(error, 'problem', None) or 'it is no YAML'}"
        raise Refused([Problem("recipe", reason, WAY_OUT)]) from None
    except RecursionError:
        raise Refused([Problem("recipe", "it is nested too deeply", "Begin from a preset.")]) from None
    except TypeError:
        raise Refused([Problem("recipe", "a field's name is a list or a mapping", WAY_OUT)]) from None
    except (ValueError, OverflowError) as error:  # a day that no month has, a number of thousands of digits
        raise Refused([Problem("recipe", f"it holds a value that can't be read: {error}", WAY_OUT)]) from None
    if not isinstance(found, dict):
        raise Refused([Problem("recipe", "it is not a mapping of fields", "Write `section:` and its fields beneath.")])
    return found
