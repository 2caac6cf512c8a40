"""Fine-tuning without any of our code: one process, no FSDP, no Trainer; what training is held against.

AdamW (Loshchilov and Hutter, 2019) by torch, a linear warm-up then a cosine, the gradient clipped to a norm, the
loss a mean over every trained token of the step.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoModelForCausalLM, AutoTokenizer

IGNORED = -100


@dataclass(frozen=True)
class Plan:
    """What the loop needs of a recipe. `rows`: a step's rows, over all ranks and forward passes."""

    rows: int
    steps: int
    learning_rate: float
    warmup_steps: int
    weight_decay: float
    max_grad_norm: float
    seed: int
    max_length: int


def train(model_folder: Path, data: Path, plan: Plan) -> dict[int, tuple[float, float]]:
    """Return the loss and the gradient's norm before clipping of each step, counted from 1."""
    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32, attn_implementation="sdpa").train()
    rows = tokens(model_folder, data, plan.max_length)
    # Each pass over the data is shuffled by the seed and the number of the pass; here there is one.
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(plan.seed)).tolist()
    optimizer = torch.optim.AdamW(groups(model, plan.weight_decay), betas=(0.9, 0.999), eps=1e-8)
    found = {}
    for step in range(plan.steps):
        batch = [rows[index] for index in order[step * plan.rows : (step + 1) * plan.rows]]
        optimizer.zero_grad()
        loss = mean_loss(model, batch)
        loss.backward()
        norm = clip(model, plan.max_grad_norm)
        for group in optimizer.param_groups:
            group["lr"] = plan.learning_rate * rate(step, plan)
        optimizer.step()
        found[step + 1] = (loss.item(), norm)
    return found


def tokens(model_folder: Path, data: Path, max_length: int) -> list[list[int]]:
    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    chats = [json.loads(line)["messages"] for line in data.read_text("utf-8").splitlines()]
    texts = [tokenizer.apply_chat_template(chat, tokenize=False) for chat in chats]
    return [tokenizer(text, add_special_tokens=False)["input_ids"][:max_length] for text in texts]


def groups(model: torch.nn.Module, weight_decay: float) -> list[dict[str, object]]:
    """Return the weights in two groups: matrices decay, vectors (norms, biases) do not."""
    parameters = list(model.parameters())
    return [
        {"params": [p for p in parameters if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.dim() < 2], "weight_decay": 0.0},
    ]


def mean_loss(model: torch.nn.Module, rows: list[list[int]]) -> torch.Tensor:
    """Return the mean loss over all tokens but the first of each row."""
    width = max(map(len, rows))
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    real = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    labels = ids.masked_fill(real == 0, IGNORED)[:, 1:]
    logits = model(input_ids=ids, attention_mask=real, use_cache=False).logits[:, :-1]
    return cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1), ignore_index=IGNORED)


def clip(model: torch.nn.Module, most: float) -> float:
    """Return the norm of the whole gradient, in double: torch's own is off in the fourth digit on CPU."""
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = math.sqrt(sum((gradient.double() ** 2).sum().item() for gradient in gradients))
    for gradient in gradients:
        gradient.mul_(min(1.0, most / (norm + 1e-6)))
    return norm


def rate(step: int, plan: Plan) -> float:
    """Return the learning rate of `step`, counted from 0, as a share of its peak."""
    if step < plan.warmup_steps:
        return step / plan.warmup_steps
    return 0.5 * (1 + math.cos(math.pi * (step - plan.warmup_steps) / (plan.steps - plan.warmup_steps)))
