"""As much of Ollama as its Modelfile is: commands with their values, and the templates that serving.turns writes."""

from __future__ import annotations

import re
from collections.abc import Sequence

COMMAND = re.compile(r'\s*(FROM|ADAPTER|TEMPLATE|PARAMETER)[ \t]+("""(.*?)"""|[^\n]*)\n', re.DOTALL)
ROLE = re.compile(r'\{\{ (?:if|else if) eq \.Role "(\w+)" \}\}')


def commands(text: str) -> list[tuple[str, str]]:
    """Return (command, value); a value between three quotes may hold line breaks. Fails where anything is left."""
    found, position = [], 0
    while position < len(text):
        match = COMMAND.match(text, position)
        assert match, f"no command: {text[position:][:60]!r}"
        found.append((match[1], match[2] if match[3] is None else match[3]))
        position = match.end()
    return found


def render(template: str, chat: Sequence[tuple[str, str]]) -> str:
    """Run `front {{ range .Messages }}{{ if eq .Role ... }}...{{ end }}{{ end }} answer` over a chat."""
    front, loop, rest = template.partition("{{ range .Messages }}")
    body, end, answer = rest.partition("{{ end }}{{ end }}")
    assert loop
    assert end
    empty, *parts = ROLE.split(body)
    assert not empty
    branches = dict(zip(parts[::2], parts[1::2], strict=True))
    text = "".join(branches[role].replace("{{ .Content }}", content) for role, content in chat)
    assert "{{" not in front + "".join(branches.values()).replace("{{ .Content }}", "") + answer
    return front + text + answer
