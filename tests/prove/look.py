"""What a model folder is to the transformers of this process: python look.py OUT.safetensors FOLDER...

Imports nothing of ours, so that it runs with any version. Writes the logits of each folder as `<number>`, and prints
{version, folders: [{loading, dtype, ids, special, chat}]} as one line of JSON.
"""

import json
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

TEXTS = ("def add(a, b):\n    return a + b", "naïve café, 日本語, 🙂", "<|im_start|>user\nHi<|im_end|>")
CHAT = [{"role": "user", "content": "What is 2 + 2?"}, {"role": "assistant", "content": "4"}]
TOKENS = 48


def look(folder):
    new = int(transformers.__version__.split(".")[0]) >= 5
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, output_loading_info=True, **{"dtype" if new else "torch_dtype": "auto"}
    )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    generation = GenerationConfig.from_pretrained(folder)
    with torch.inference_mode():
        ids = (torch.arange(TOKENS) * 7919 + 1) % model.get_input_embeddings().weight.shape[0]
        logits = model.eval()(ids[None]).logits.float().contiguous()
    facts = {
        "loading": {kind: sorted(map(str, names)) for kind, names in info.items() if names},
        "dtype": str(model.dtype),
        "ids": [tokenizer(text)["input_ids"] for text in TEXTS],
        "text": [tokenizer.decode(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in TEXTS],
        "special": {name: str(token) for name, token in tokenizer.special_tokens_map.items() if isinstance(token, str)},
        "chat": tokenizer.apply_chat_template(CHAT, tokenize=False),
        "eos": generation.eos_token_id,
    }
    return facts, logits


def main(out, folders):
    found = [look(folder) for folder in folders]
    save_file({str(number): logits for number, (_, logits) in enumerate(found)}, out)
    print(json.dumps({"version": transformers.__version__, "folders": [facts for facts, _ in found]}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
