"""PURE: what transformers before version 5 must find in an export's files, beside what version 5 writes.

An older transformers that misses a name says nothing and takes its class's default: without `rope_theta` 10000, without
`torch_dtype` float32. Each name is written beside the new one, which version 5 goes on reading.
"""

from __future__ import annotations

from typing import Any

# The oldest transformers in which an export of these loads and computes the same: shown by tests.prove.oldest.
# 4.45 is the first that reads the tokenizer files that today's tokenizers library writes (merges in pairs).
OLDEST = {
    "GemmaForCausalLM": "4.45.0",
    "Gemma2ForCausalLM": "4.45.0",
    "LlamaForCausalLM": "4.45.0",
    "MistralForCausalLM": "4.45.0",
    "Phi3ForCausalLM": "4.45.0",
    "Qwen2ForCausalLM": "4.45.0",
    "Qwen3ForCausalLM": "4.51.0",
}
FULL, SLIDING = "full_attention", "sliding_attention"
NOT_SCALING = ("rope_theta", "partial_rotary_factor")
Json = dict[str, Any]


def config(found: Json, dtype: str) -> Json:
    """Return a config.json with the dtype and the older names for it and for the rotary embedding, at every level."""
    out = {name: config(value, dtype) if _is_config(name, value) else value for name, value in found.items()}
    if {"dtype", "torch_dtype"} & out.keys() or "model_type" in out:
        out |= {"dtype": dtype, "torch_dtype": dtype}
    return _rotary(out.get("rope_parameters")) | out


def tokenizer_config(found: Json, kind: str) -> Json:
    """Return a tokenizer_config.json that both read. `kind`: the tokenizer's class, for where the file names none."""
    out = dict(found)
    name = out.get("tokenizer_class") or kind
    out["tokenizer_class"] = "PreTrainedTokenizerFast" if name == "TokenizersBackend" else name
    if isinstance(out.get("extra_special_tokens"), list):  # before 5 a mapping is expected under this name
        out["additional_special_tokens"] = out.pop("extra_special_tokens")
    return out


def _is_config(name: str, value: Any) -> bool:
    return name.endswith("_config") and isinstance(value, dict) and "model_type" in value


def _rotary(parameters: Any) -> Json:
    """Return `rope_parameters` under the older names; nothing where those can't say it."""
    if not isinstance(parameters, dict) or not parameters:
        return {}
    if FULL in parameters:  # one for each kind of layer, as Gemma 3 has it
        local = (parameters.get(SLIDING) or {}).get("rope_theta")
        return _rotary(parameters[FULL]) | ({} if local is None else {"rope_local_base_freq": local})
    scaling = {name: value for name, value in parameters.items() if name not in NOT_SCALING}
    plain = scaling.get("rope_type", "default") == "default"
    kept = {name: parameters[name] for name in NOT_SCALING if name in parameters}
    return kept | {"rope_scaling": None if plain else scaling}
