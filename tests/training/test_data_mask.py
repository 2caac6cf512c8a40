"""Which tokens are trained: those of assistant turns or completions with their end token, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import AutoTokenizer

from tests.training.attempts import Attempts
from tests.training.tokens import BRACKETS, CHANGES, CHATML, TAGGED, chat, encode, trained_text
from training.spec.sections.data import Data
from training.spec.tokens.encode import Unencodable
from training.spec.tokens.turns import Underivable, assistant_spans, covered

TURNS = chat("What is 2 + 2?", "It is 4.", "And é twice?", "éé, I'd say.\n\nYes.")
SAID = "It is 4.<|im_end|>éé, I'd say.\n\nYes.<|im_end|>"


@pytest.fixture
def tokenizer(attempts: Attempts) -> Any:
    return AutoTokenizer.from_pretrained(attempts.model)


def assistant(template: str) -> Data:
    return Data(train_on="assistant", template=template)


@pytest.mark.parametrize("template", [CHATML, TAGGED], ids=["derived", "tagged"])
def test_assistant_turns_and_their_end_are_trained(tokenizer: Any, template: str) -> None:
    (row,) = encode(tokenizer, assistant(template), {"messages": TURNS})
    assert trained_text(tokenizer, row) == SAID
    assert not all(row.trained)


def test_the_derived_mask_equals_the_tagged_one(tokenizer: Any) -> None:
    rows = [{"messages": [{"role": "system", "content": "Be brief. "}, *TURNS]}, {"messages": TURNS[:2]}]
    derived, tagged = (encode(tokenizer, assistant(template), *rows) for template in (CHATML, TAGGED))
    assert [(row.ids, row.trained) for row in derived] == [(row.ids, row.trained) for row in tagged]


def test_a_template_without_a_header_for_the_assistant(tokenizer: Any) -> None:
    (row,) = encode(tokenizer, assistant(BRACKETS), {"messages": TURNS})
    assert trained_text(tokenizer, row) == " It is 4. <|im_end|> éé, I'd say.\n\nYes. <|im_end|>"


def test_an_assistant_that_speaks_first(tokenizer: Any) -> None:
    turns = [{"role": "assistant", "content": "Hello."}, {"role": "user", "content": "Hi."}]
    (row,) = encode(tokenizer, assistant(CHATML), {"messages": turns})
    assert trained_text(tokenizer, row) == "Hello.<|im_end|>"


def test_an_answer_that_repeats_the_question_is_not_mistaken(tokenizer: Any) -> None:
    (row,) = encode(tokenizer, assistant(CHATML), {"messages": chat("assistant", "assistant")})
    assert trained_text(tokenizer, row) == "assistant<|im_end|>"
    assert row.trained.index(True) > len(row.ids) // 2


def test_a_template_that_changes_what_it_said_is_refused(tokenizer: Any) -> None:
    with pytest.raises(Unencodable, match="what it says up to turn 2 is different when others follow") as caught:
        encode(tokenizer, assistant(CHANGES), {"messages": TURNS[:2]}, {"messages": TURNS})
    assert caught.value.index == 1
    assert "generation" in caught.value.fix


def test_a_template_that_hides_what_was_said_is_refused() -> None:
    with pytest.raises(Underivable, match="does not repeat what was said"):
        assistant_spans(chat("a", "b"), lambda turns, asked: "".join(turn["role"] for turn in turns), ())


def test_a_template_that_raises_names_its_row(tokenizer: Any) -> None:
    template = "{% if messages | length > 2 %}{{ raise_exception('too long') }}{% endif %}x"
    with pytest.raises(Unencodable, match="the chat template refuses it: too long") as caught:
        encode(tokenizer, Data(template=template), {"messages": TURNS[:2]}, {"messages": TURNS})
    assert caught.value.index == 1


def test_a_token_over_the_edge_of_a_turn_is_trained() -> None:
    offsets = [(0, 4), (4, 7), (7, 7), (7, 9), (9, 12)]
    assert covered([(5, 8)], offsets) == [False, True, False, True, False]
    assert covered([], offsets) == [False] * 5


def test_everything_is_every_token_of_the_template(tokenizer: Any) -> None:
    (row,) = encode(tokenizer, Data(), {"messages": TURNS})
    assert row.ids == tokenizer.apply_chat_template(TURNS)["input_ids"]
    assert all(row.trained)


def test_a_completion_is_trained_with_its_end(tokenizer: Any) -> None:
    data = Data(format="prompt-completion", train_on="completion")
    first, second = encode(
        tokenizer, data, {"prompt": "2+2=", "completion": "4"}, {"prompt": "", "completion": "x<|im_end|>"}
    )
    assert trained_text(tokenizer, first) == "4<|im_end|>"
    assert trained_text(tokenizer, second) == "x<|im_end|>"
    everything = encode(tokenizer, Data(format="prompt-completion"), {"prompt": "2+2=", "completion": "4"})
    assert everything[0].ids == first.ids
    assert all(everything[0].trained)


def test_text_gets_one_end_token(tokenizer: Any) -> None:
    data = Data(format="text")
    ended, unended = encode(tokenizer, data, {"text": "x<|im_end|>"}, {"text": "x"})
    assert ended.ids == unended.ids == tokenizer("x<|im_end|>")["input_ids"]
