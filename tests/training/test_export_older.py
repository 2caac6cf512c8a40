"""What an export's files say to transformers before version 5."""

from __future__ import annotations

import pytest

from training.export import older

LLAMA3 = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0}


@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({"rope_type": "default", "rope_theta": 1e6}, {"rope_theta": 1e6, "rope_scaling": None}),
        (LLAMA3, {"rope_theta": 5e5, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}),
        ({"rope_theta": 1e4, "partial_rotary_factor": 0.5},
         {"rope_theta": 1e4, "partial_rotary_factor": 0.5, "rope_scaling": None}),
        ({"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}},
         {"rope_theta": 1e6, "rope_scaling": None, "rope_local_base_freq": 1e4}),
    ],
)  # fmt: skip
def test_the_rotary_embedding_has_its_older_names(parameters, names):
    found = older.config({"model_type": "llama", "rope_parameters": parameters}, "bfloat16")
    both = {"dtype": "bfloat16", "torch_dtype": "bfloat16"}
    assert found == {"model_type": "llama", "rope_parameters": parameters} | names | both


def test_what_the_base_says_under_an_older_name_stays():
    found = older.config({"model_type": "llama", "rope_theta": 7.0, "rope_parameters": {"rope_theta": 7.0}}, "float32")
    assert (found["rope_theta"], found["torch_dtype"]) == (7.0, "float32")


def test_a_part_of_a_config_has_them_too():
    text = {"model_type": "gemma3_text", "torch_dtype": "float16", "rope_parameters": {"rope_theta": 2.0}}
    found = older.config({"model_type": "gemma3", "text_config": text, "quantization_config": {"bits": 4}}, "bfloat16")
    assert (found["text_config"]["rope_theta"], found["text_config"]["dtype"]) == (2.0, "bfloat16")
    assert found["quantization_config"] == {"bits": 4}


def test_special_tokens_of_a_tokenizer_have_the_name_that_both_read():
    found = older.tokenizer_config({"extra_special_tokens": ["<a>"], "tokenizer_class": "TokenizersBackend"}, "X")
    assert found == {"additional_special_tokens": ["<a>"], "tokenizer_class": "PreTrainedTokenizerFast"}
    named = {"extra_special_tokens": {"image_token": "<i>"}, "tokenizer_class": "LlamaTokenizer"}
    assert older.tokenizer_config(named, "X") == named
    assert older.tokenizer_config({}, "TokenizersBackend") == {"tokenizer_class": "PreTrainedTokenizerFast"}
