"""Real sharded checkpoints for the export's tests: `python sharded.py OUT`, started once per rank by `make`.

OUT/<kind>/base          config, tokenizer and generation config of a small Llama with uneven rows
OUT/<kind>/checkpoint-7  what accelerate writes under FSDP2 with SHARDED_STATE_DICT, a node per rank
OUT/<kind>/truth.safetensors  the same tensors, gathered by torch
OUT/columns              one tensor sharded by columns, which FSDP2 doesn't do by itself
Kinds: tied and untied (word embeddings).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

KINDS = ("tied", "untied")
RANKS = 2
ROWS = 4097  # not divisible by the ranks
ROOT = Path(__file__).parents[2]


def make(out: Path) -> Path:
    """Build everything in `out` with RANKS processes over gloo, and return it."""
    from training.samples import tiny

    out.mkdir(parents=True)
    tiny.build(out / "sample")
    for kind in KINDS:
        _base(out / kind / "base", out / "sample", tied=kind == "tied")
    common = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
    }
    ranks = [
        subprocess.Popen([sys.executable, __file__, str(out)], env={**common, "RANK": str(rank)})
        for rank in range(RANKS)
    ]
    assert [rank.wait() for rank in ranks] == [0] * RANKS
    for kind in KINDS:
        sign(out / kind / "checkpoint-7", RANKS)
    return out


def sign(checkpoint: Path, nodes: int) -> None:
    """Write the manifests as if each rank were a node; rank 0 has all that is common."""
    from tests.training.folders import file_names, measured, shard_rank
    from training.saving.checkpoints import Manifest, write_manifest

    names = file_names(checkpoint)
    for node in range(nodes):
        own = [name for name in names if (shard_rank(name) or 0) == node]
        write_manifest(
            checkpoint,
            Manifest(step=7, node_rank=node, nodes=nodes, world_size=nodes, files=measured(checkpoint, own)),
        )


def _base(folder: Path, sample: Path, *, tied: bool) -> None:
    from transformers import AutoTokenizer, GenerationConfig, LlamaConfig

    config = LlamaConfig(
        vocab_size=ROWS,
        hidden_size=64,
        intermediate_size=99,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": 500_000.0},  # not what an old class takes by itself
        architectures=["LlamaForCausalLM"],
        dtype="bfloat16",
    )
    config.save_pretrained(folder)
    AutoTokenizer.from_pretrained(sample).save_pretrained(folder)
    # Llama-2's own generation config is of this kind: transformers refuses to save it again
    GenerationConfig(temperature=0.9, top_p=0.6, do_sample=False).to_json_file(folder / "generation_config.json")


def _rank(out: Path) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh

    dist.init_process_group(
        "gloo", init_method=f"file://{out}/rendezvous", rank=int(os.environ["RANK"]), world_size=RANKS
    )
    mesh = init_device_mesh("cpu", (RANKS,))
    for number, kind in enumerate(KINDS):
        torch.manual_seed(number)
        _shard_and_save(out / kind, mesh)
    _columns(out / "columns", mesh)
    dist.destroy_process_group()


def _shard_and_save(folder: Path, mesh: object) -> None:
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import save_file
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
    from torch.distributed.fsdp import fully_shard
    from transformers import AutoConfig, AutoModelForCausalLM

    from training.export.manifest import MODEL_FOLDER

    config = AutoConfig.from_pretrained(folder / "base")
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    sharded = get_model_state_dict(model, options=StateDictOptions())
    place = folder / "checkpoint-7" / MODEL_FOLDER
    dcp.save({"model": sharded}, storage_writer=dcp.FileSystemWriter(place), planner=dcp.DefaultSavePlanner())
    full = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    if os.environ["RANK"] == "0":
        (folder / "checkpoint-7" / "scheduler.pt").write_bytes(b"not read by an export")
        save_file({k: v.clone() for k, v in full.items()}, folder / "truth.safetensors")


def _columns(folder: Path, mesh: object) -> None:
    import torch
    import torch.distributed.checkpoint as dcp
    from torch.distributed.tensor import Shard, distribute_tensor

    whole = torch.arange(3 * 5, dtype=torch.float32).reshape(3, 5)
    columns = distribute_tensor(whole, mesh, [Shard(1)])  # type: ignore[arg-type]
    dcp.save({"model": {"w": columns, "count": torch.tensor(3)}}, checkpoint_id=folder)


if __name__ == "__main__":
    _rank(Path(sys.argv[1]))
