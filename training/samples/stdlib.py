"""The running interpreter's standard library as text: modules in a fixed order, functions with their docstrings."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Not the library itself: installed packages, tests, and generated or vendored code.
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "__pycache__", "pydoc_data"}


def sources() -> Iterator[tuple[str, str]]:
    """Yield (path below the library, text) of every module, sorted by path."""
    root = Path(sysconfig.get_path("stdlib"))
    for path in sorted(root.rglob("*.py"), key=lambda p: p.relative_to(root).as_posix()):
        name = path.relative_to(root)
        if not LEFT_OUT.intersection(name.parts[:-1]):
            try:
                yield name.as_posix(), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


@dataclass(frozen=True)
class Function:
    """A function of a module. `code` is its source without the docstring."""

    module: str
    name: str
    code: str
    docstring: str


def functions(module: str, text: str) -> Iterator[Function]:
    """Yield the documented functions and methods of one module's text, in the order they stand there."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    lines = text.split("\n")  # as the parser counts: a form feed ends no line
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and len(node.body) > 1:
            docstring = ast.get_docstring(node)
            if docstring and docstring.strip():
                yield Function(module, node.name, _without_docstring(lines, node), docstring.strip())


def _without_docstring(lines: list[str], node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    doc = node.body[0]
    first = node.decorator_list[0].lineno if node.decorator_list else node.lineno
    # the body starts at the next statement's first line: comments in between belong to it
    kept = lines[first - 1 : doc.lineno - 1] + lines[doc.end_lineno or doc.lineno : node.end_lineno]
    indent = " " * node.col_offset
    return "\n".join(line.removeprefix(indent).rstrip() for line in kept).strip("\n")
