"""A chat template as Ollama's: a beginning and an end of each role's turns, and what an answer begins with.

A Jinja template is a program and Ollama's another. Where the first only puts the same words around each turn of a
role, which is tried with chats of several shapes, the second can be written so that it gives the same text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

Chat = Sequence[tuple[str, str]]  # (role, content)
Render = Callable[[Chat, bool], str]  # the chat's text; with the beginning of an answer, or without

MARK = "\u2063aB{}\u2063"  # stands for a turn's content: no template has it, and no filter leaves it as it is
ROLES = ("system", "user", "assistant")
SHAPES = ("u", "su", "ua", "sua", "uau", "suau", "uauau")
OPEN = ("{{", "}}", '"""')


@dataclass(frozen=True)
class Turns:
    """`around`: role -> (before, after); a role that the template refuses is not in it. `front` begins the text."""

    around: dict[str, tuple[str, str]]
    answer: str
    front: str = ""

    def text(self, chat: Chat, answer: bool) -> str:
        """Write a chat, as Ollama's template would."""
        turns = "".join(self.around[role][0] + content + self.around[role][1] for role, content in chat)
        return self.front + turns + (self.answer if answer else "")

    @property
    def stop(self) -> str:
        """What ends an answer."""
        return self.around["assistant"][1].strip()

    def go_template(self) -> str:
        """Return it in Go's language."""
        branches = "".join(
            f'{{{{ {"else if" if number else "if"} eq .Role "{role}" }}}}{before}{{{{ .Content }}}}{after}'
            for number, (role, (before, after)) in enumerate(self.around.items())
        )
        return f"{self.front}{{{{ range .Messages }}}}{branches}{{{{ end }}}}{{{{ end }}}}{self.answer}"


def derive(render: Render, begin: str = "", *, added: bool = False) -> Turns | None:
    """Return the turns of a template; None where it is more than words around turns.

    `begin` is the token that begins a text, which a template may write; where it is `added`, the tokenizer puts it
    there in any case, and whoever serves the model does.
    """
    for front in dict.fromkeys(("", begin)):
        if found := _derive(render, front):
            return replace(found, front="") if added else found
    return None


def _derive(render: Render, front: str) -> Turns | None:
    def plain(chat: Chat, answer: bool) -> str:
        return render(chat, answer).removeprefix(front)

    try:
        user, assistant = (_around(plain, role) for role in ("user", "assistant"))
        found = Turns({"user": user, "assistant": assistant}, _answer(plain))
    except Exception:  # noqa: BLE001  a template is a program of its own, which may want other turns
        return None
    with_system = _with_system(plain, found)
    for turns in filter(None, (with_system, found)):
        whole = replace(turns, front=front)
        chats = [_chat(shape) for shape in SHAPES if turns is with_system or "s" not in shape]
        if _writable(turns) and all(whole.text(c, a) == render(c, a) for c in chats for a in (True, False)):
            return whole
    return None


def _with_system(plain: Render, found: Turns) -> Turns | None:
    try:
        text = plain(_chat("su"), False)
        before, _, rest = text.partition(MARK.format("0"))
        after, found_user, _ = rest.partition(found.text([("user", MARK.format("1"))], False))
    except Exception:  # noqa: BLE001  it may refuse this role alone
        return None
    return Turns({"system": (before, after), **found.around}, found.answer) if found_user else None


def _around(plain: Render, role: str) -> tuple[str, str]:
    """Return what is around the last turn of a chat that ends with this role."""
    shape = "u" if role == "user" else "ua"
    before_it = "" if role == "user" else plain(_chat("u"), False)
    text = plain(_chat(shape), False)
    if not text.startswith(before_it):
        raise ValueError("an earlier turn is written otherwise than a last one")
    before, content, after = text[len(before_it) :].partition(MARK.format(len(shape) - 1))
    if not content:
        raise ValueError("the content is changed")
    return before, after


def _answer(plain: Render) -> str:
    without, text = plain(_chat("u"), False), plain(_chat("u"), True)
    if not text.startswith(without):
        raise ValueError("the chat is written otherwise where an answer begins")
    return text[len(without) :]


def _chat(shape: str) -> list[tuple[str, str]]:
    names = {role[0]: role for role in ROLES}
    return [(names[letter], MARK.format(number)) for number, letter in enumerate(shape)]


def _writable(turns: Turns) -> bool:
    words = [turns.answer, turns.front, *(word for pair in turns.around.values() for word in pair)]
    return bool(turns.stop) and '"' not in turns.stop and not any(sign in word for sign in OPEN for word in words)
