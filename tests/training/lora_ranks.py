"""Two real ranks with an adapted model under FSDP2, for what a whole training would hide.

Every rank fills its own slice of each trained weight with its own constant, saves, zeroes and loads.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.training import ranks_harness

RANKS = 2


def run(folder: Path) -> list[int]:
    """Do so with RANKS ranks in `folder`; return their exit statuses. Outputs go to `log-<rank>`."""
    ranks = [ranks_harness.server().Process(target=_rank, args=(folder, rank)) for rank in range(RANKS)]
    for rank in ranks:
        rank.start()
    forked = ranks_harness.Forked(list(ranks))
    try:
        return forked.wait()
    finally:
        forked.end()


def _rank(folder: Path, rank: int) -> None:
    ranks_harness.to_log(folder / f"log-{rank}")
    import torch
    import torch.distributed as dist
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
    from torch.distributed.fsdp import fully_shard

    from training.adapters import state

    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=RANKS)
    model = adapted()
    layers = model.get_base_model().model.layers
    for number, layer in enumerate(layers):
        layers[number] = checkpoint_wrapper(layer)
        fully_shard(layers[number])
    fully_shard(model)
    slices = {name: part.to_local() for name, part in state.trained(model).items()}  # type: ignore[attr-defined]
    assert sum(part.numel() for part in slices.values())
    for part in slices.values():
        part.fill_(rank + 1)
    save_adapter(model, folder / "saved")
    for part in slices.values():
        part.zero_()
    state.load(model, folder / "saved")
    wrong = [name for name, part in slices.items() if not torch.equal(part, torch.full_like(part, rank + 1))]
    assert not wrong, wrong
    dist.destroy_process_group()


def save_adapter(model: Any, folder: Path) -> None:
    """Write every rank's part of what is trained into `folder`. Every rank must call."""
    import torch.distributed.checkpoint as dcp

    from training.adapters import state

    dcp.save({"model": state.trained(model)}, storage_writer=dcp.FileSystemWriter(folder, overwrite=True))


def adapted():  # type: ignore[no-untyped-def]
    """Return a small Llama of uneven rows with an adapter, the same on every rank."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    from tests.training.launch import recipe
    from training.adapters.wrap import adapt

    torch.manual_seed(1)
    config = LlamaConfig(
        vocab_size=97, hidden_size=40, intermediate_size=51, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=False,
    )  # fmt: skip
    method = {"kind": "lora", "rank": 3, "modules_to_save": ["lm_head"]}
    return adapt(LlamaForCausalLM(config), recipe(method=method))
