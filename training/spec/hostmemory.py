"""How much host memory loading and training take on a node: an estimate, made before anything is loaded.

What a rank holds beside its process, in bytes, for P parameters over W ranks and masters of m bytes each:

slices, broadcast   its shard, P m / W, where shards live in host memory; pieces in passing
accelerate, FSDP2   1.5 P m on every rank (measured: 3.4 GB at P = 0.55 x 10^9, m = 4, from bf16 files)
4-bit base          one tensor of the files on every rank: transformers reads, sends to the rank's own GPU and
                    quantises tensor by tensor, and the bytes in the files are pages of a cache, not the process's
FSDP1               1.25 P m on the first rank of a node, where loading is RAM-efficient; else on every rank

Where shards live in host memory (no accelerator, or CPU offload), training adds to a trained shard its gradient and
AdamW's two moments in fp32.
"""

from __future__ import annotations

from dataclasses import dataclass

from .lint import Problem
from .recipe import Recipe

PIECES = 100_000_000  # bytes in passing on a rank that reads and sends
LARGEST = 4_300_000_000  # bytes of the largest tensor there may be: 128,256 tokens by 16,384, in bf16
MOMENTS = 8  # bytes a trained parameter
ACCELERATE = 1.5
WHOLE = 1.25


@dataclass(frozen=True)
class Load:
    """What is loaded where. `trained`: parameters that are moved by the optimizer. `on_host`: shards stay there."""

    parameters: int
    trained: int
    world_size: int
    local_ranks: int
    way: str
    on_host: bool


def way_of(recipe: Recipe) -> str:
    """Return how weights are loaded, as far as the recipe alone says it: what the model's files are may change it."""
    if recipe.fsdp.version == 1 or recipe.method.kind == "qlora":
        return "accelerate"
    return "slices" if recipe.fsdp.weights == "auto" else recipe.fsdp.weights


def needed(load: Load, recipe: Recipe) -> int:
    """Return the bytes that the ranks of one node need at most, beside their processes."""
    return max(_loading(load, recipe), _training(load, recipe))


def _loading(load: Load, recipe: Recipe) -> int:
    whole = load.parameters * _master_bytes(recipe)
    if load.way != "accelerate":
        return load.local_ranks * (PIECES + _shard(whole, load))
    if recipe.method.kind == "qlora":
        return load.local_ranks * (PIECES + min(2 * load.parameters, LARGEST))
    if recipe.fsdp.version == 2:
        return int(load.local_ranks * ACCELERATE * whole)
    once = recipe.fsdp.ram_efficient_loading and recipe.fsdp.sync_module_states
    return int((1 if once else load.local_ranks) * WHOLE * whole)


def _training(load: Load, recipe: Recipe) -> int:
    if not load.on_host:
        return 0
    master = _master_bytes(recipe)
    moved = _shard(load.trained * (master + MOMENTS), load)
    return load.local_ranks * (_shard(load.parameters * master, load) + moved)


def _shard(whole: int, load: Load) -> int:
    return whole // load.world_size if load.on_host else 0


def _master_bytes(recipe: Recipe) -> int:
    """Bytes a number as loaded: the masters', or under FSDP2 those of an adapter's frozen base."""
    frozen = recipe.method.adapts and recipe.fsdp.version == 2 and recipe.precision != "fp32"
    return 2 if frozen or recipe.master_weights == "bf16" else 4


def memory_problem(node: str, need: int, available: int, total: int, way: str) -> Problem | None:
    """Return what is wrong where `need` bytes are more than the node has left; None where they fit."""
    if need <= available:
        return None
    fix = "Take more nodes, or a smaller model."
    if way == "accelerate":
        fix = "Set fsdp.weights to auto, with a model in safetensors files and FSDP2; or take more memory."
    have = f"node has {available / 1e9:.1f} GB free of {total / 1e9:.1f}"
    return Problem("model", f"loading by {way} needs {need / 1e9:.1f} GB on node {node}, {have}", fix)
