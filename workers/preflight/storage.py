"""PURE: which nodes see one disk, by the tokens that each left in its scratch folder."""

from __future__ import annotations

from collections.abc import Mapping, Set

from .finding import Finding, ok, warning

Seen = Mapping[str, Set[str]]  # by a node's name: the names of the nodes whose tokens it sees, its own among them
FIX = "Both ways work, but mixed: let all nodes share the scratch folder, or none."


def findings(seen: Seen) -> dict[str, Finding]:
    return {name: _finding(name, seen) for name in seen}


def shared(seen: Seen) -> bool:
    """Return whether all nodes see the tokens of all."""
    return len(seen) > 1 and all(sighted >= set(seen) for sighted in seen.values())


def _finding(name: str, seen: Seen) -> Finding:
    others = sorted(seen[name] - {name})
    if not others:
        mixed = any(len(sighted) > 1 for sighted in seen.values())
        text = "private: no other node sees what is written here"
        return warning(f"{text}, and others share theirs", FIX, "scratch") if mixed else ok(text)
    if len(others) + 1 == len(seen):
        return ok("shared by all nodes")
    return warning(f"shared with {', '.join(others)} alone", FIX, "scratch")
