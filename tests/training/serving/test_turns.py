"""Which chat templates are words around turns, and that they are then written alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.training.serving import modelfile
from training.serving.turns import Render, derive

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ '<s>' }}{% for m in messages %}{{ '<|start|>' + m['role'] + '<|end|>\\n\\n' + m['content'] + '<|eot|>' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start|>assistant<|end|>\\n\\n' }}{% endif %}"
)
NO_SYSTEM = (
    "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise('no system turns') }}"
    "{% elif m['role'] == 'user' %}[INST] {{ m['content'] }} [/INST]{% else %} {{ m['content'] }}</s>{% endif %}"
    "{% endfor %}"
)
WITH_ONE_OF_ITS_OWN = "{% if messages[0]['role'] != 'system' %}<sys>Be kind.</sys>{% endif %}" + CHATML
SHOUTS = CHATML.replace("m['content']", "m['content'] | upper")
LAST_IS_SPECIAL = CHATML.replace("'<|im_end|>\\n'", "('<|im_end|>\\n' if not loop.last else '<|last|>')")
BRACED = CHATML.replace("<|im_start|>", "<{{ x")
CHAT = [("user", "What is 2 + 2?"), ("assistant", "4\nor so"), ("user", "And 3?")]


def rendering(template: str) -> Render:
    def refuse(text: str) -> None:
        raise ValueError(text)

    compiled = ImmutableSandboxedEnvironment().from_string(template)

    def render(chat: Sequence[tuple[str, str]], answer: bool) -> str:
        messages = [{"role": role, "content": content} for role, content in chat]
        return compiled.render(messages=messages, add_generation_prompt=answer, **{"raise": refuse})

    return render


@pytest.mark.parametrize(
    ("template", "begin", "stop", "roles"),
    [
        (CHATML, "", "<|im_end|>", 3),
        (CHATML, "<|im_start|>", "<|im_end|>", 3),
        (LLAMA3, "<s>", "<|eot|>", 3),
        (NO_SYSTEM, "<s>", "</s>", 2),
    ],
)
def test_words_around_turns_are_found(template: str, begin: str, stop: str, roles: int) -> None:
    render = rendering(template)
    turns = derive(render, begin)
    assert turns is not None
    assert (turns.stop, len(turns.around)) == (stop, roles)
    chat = ([("system", "Be brief.")] if roles == 3 else []) + CHAT
    assert modelfile.render(turns.go_template(), chat) == render(chat, True)


def test_a_beginning_that_the_tokenizer_adds_is_left_out() -> None:
    render = rendering(LLAMA3)
    turns = derive(render, "<s>", added=True)
    assert turns is not None
    assert "<s>" + modelfile.render(turns.go_template(), CHAT) == render(CHAT, True)


@pytest.mark.parametrize(
    "template", [WITH_ONE_OF_ITS_OWN, SHOUTS, LAST_IS_SPECIAL, BRACED, "{{ raise('no') }}", "fixed"]
)
def test_anything_else_is_not_written(template: str) -> None:
    assert derive(rendering(template), "<s>") is None
