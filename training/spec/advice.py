"""PURE: what to do about an end: words, and where the recipe is to blame, the change of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .faults import NOT_FOR_MEMORY, WORTH_RETRYING, Reason
from .recipe import Recipe

MOST = 1024  # rows of a batch, and batches of a step, that the recipe takes
RESTARTS = 3
LESS = 0.5  # of the learning rate


@dataclass(frozen=True)
class Advice:
    """`changes`: dotted field of the recipe -> its new value; empty where no change of it helps.

    `key` names it for good. `look`: which page has what it speaks of: nodes, data or checkpoints.
    """

    key: str
    text: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    look: str = ""

    @property
    def overrides(self) -> dict[str, Any]:
        """Return the changes as nested sections, to be laid over a recipe."""
        out: dict[str, Any] = {}
        for path, value in self.changes.items():
            section, _, name = path.partition(".")
            if name:
                out.setdefault(section, {})[name] = value
            else:
                out[section] = value
        return out


def advise(reason: str, recipe: Recipe, text: str = "") -> list[Advice]:
    """Return what may help a run of `recipe` that ended with `reason`, the likeliest first.

    `text`: what the node that failed first says of it.
    """
    rules = (_KILLER,) if NOT_FOR_MEMORY in text else RULES.get(reason, ())
    found = [advice for rule in rules for advice in rule(recipe)]
    if reason in WORTH_RETRYING and not recipe.limits.restarts:
        text = "Let it go on by itself next time, from its newest complete checkpoint."
        found.append(Advice("restart", text, {"limits.restarts": RESTARTS}))
    return found


def _smaller_batch(recipe: Recipe) -> Iterator[Advice]:
    """As many rows a step, in smaller pieces."""
    batch, accumulation = recipe.optimisation.per_device_batch, recipe.optimisation.accumulation
    parts = 2 if batch % 2 == 0 else batch
    if batch > 1 and accumulation * parts <= MOST:
        changes = {
            "optimisation.per_device_batch": batch // parts,
            "optimisation.accumulation": accumulation * parts,
        }
        yield Advice("smaller-batch", "Take fewer rows at once and as many a step: the same training.", changes)


def _less_gpu_memory(recipe: Recipe) -> Iterator[Advice]:
    if not recipe.fsdp.activation_checkpointing:
        text = "Recompute activations in the backward pass: about a third slower."
        yield Advice("recompute", text, {"fsdp.activation_checkpointing": True})
    if recipe.fsdp.sharding == "SHARD_GRAD_OP":
        text = "Free the gathered weights after each layer."
        yield Advice("full-shard", text, {"fsdp.sharding": "FULL_SHARD"})
    if not recipe.fsdp.cpu_offload:
        text = "Keep weights and gradients in the hosts' memory: much slower, and needs it to be free there."
        yield Advice("offload", text, {"fsdp.cpu_offload": True})
    if recipe.data.max_length >= 32 and recipe.optimisation.per_device_batch == 1:
        text = "Cut rows at half the length: what is beyond is not trained on."
        yield Advice("shorter-rows", text, {"data.max_length": recipe.data.max_length // 2})


def _less_host_memory(recipe: Recipe) -> Iterator[Advice]:
    if recipe.checkpoints.asynchronous:
        text = "Save while training waits: a save on the side keeps a copy of weights and optimizer in host memory."
        yield Advice("save-in-step", text, {"checkpoints.asynchronous": False})
    if recipe.fsdp.cpu_offload:
        yield Advice("no-offload", "Keep weights and gradients on the GPUs.", {"fsdp.cpu_offload": False})
    if recipe.fsdp.weights in ("broadcast", "accelerate"):
        text = "Let each rank read its own part of the weights, where the files allow it."
        yield Advice("slices", text, {"fsdp.weights": "auto"})
    yield Advice("host-memory", "See what else takes memory on that node.", look="nodes")


def _less_disk(recipe: Recipe) -> Iterator[Advice]:
    saves = recipe.checkpoints
    text = "Make room on that node: delete checkpoints or exports that nobody needs, then resume."
    yield Advice("make-room", text, look="checkpoints")
    if saves.keep > 1 or saves.keep_best or saves.keep_every:
        changes = {"checkpoints.keep": 1, "checkpoints.keep_best": 0, "checkpoints.keep_every": 0}
        old = {"checkpoints.keep": saves.keep, "checkpoints.keep_best": saves.keep_best,
               "checkpoints.keep_every": saves.keep_every}  # fmt: skip
        different = {name: value for name, value in changes.items() if old[name] != value}
        yield Advice("keep-fewer", "Keep the newest checkpoint alone.", different)


def _calmer(recipe: Recipe) -> Iterator[Advice]:
    how = recipe.optimisation
    if recipe.precision == "fp16":
        yield Advice("bf16", "Compute in bf16, which does not overflow as early.", {"precision": "bf16"})
    text = "Halve the learning rate."
    yield Advice("slower", text, {"optimisation.learning_rate": how.learning_rate * LESS})
    if how.max_grad_norm > 1:
        yield Advice("clip", "Clip gradients to a norm of 1.", {"optimisation.max_grad_norm": 1.0})
    if not how.warmup_steps and how.warmup_ratio < 0.1:
        yield Advice("warm-up", "Warm up for longer.", {"optimisation.warmup_ratio": 0.1})


def _patience(recipe: Recipe) -> Iterator[Advice]:
    limits = recipe.limits
    text = "Where a step may rightly take so long, wait longer before it counts as hung."
    yield Advice("wait-longer", text, {"limits.hang_seconds": min(86400, limits.hang_seconds * 4)})


def says(key: str, text: str, look: str = "") -> Callable[[Recipe], Iterator[Advice]]:
    """Return a rule that always gives one piece of advice, without a change."""
    return lambda _: iter([Advice(key, text, look=look)])


_STACKS = says("stacks", "Read the stacks below: the rank that is in no collective is the one that others wait for.")
_LINK = says("link", "Look at the network between the nodes: the interface chosen, its errors, a firewall.", "nodes")
_NODE = says("node", "Look at the node: is it up, was it started anew, does its sshd answer?", "nodes")
_LINES = says("lines", "Read the lines below: the first rank that failed says why.")
_KILLER = says("killer", "See who ends processes there: a person, a batch system, a guard over memory.", "nodes")
_READY = says("ready", "See what the node says, mend it, then resume or launch again.", "nodes")
RULES: dict[str, tuple[Callable[[Recipe], Iterator[Advice]], ...]] = {
    Reason.OUT_OF_GPU_MEMORY: (_smaller_batch, _less_gpu_memory),
    Reason.KILLED_BY_HOST: (_less_host_memory,),
    Reason.DISK_FULL: (_less_disk,),
    Reason.NON_FINITE: (_calmer,),
    Reason.DATA: (says("rows", "Mend the rows that are named, upload them as a new version, clone with it.", "data"),),
    Reason.CHECKPOINT: (says("older", "Resume from an older checkpoint that is whole.", "checkpoints"),),
    Reason.CONFIGURATION: (says("field", "Clone the run and change the field that is named."),),
    Reason.ASSERTION: (says("assertion", "A check in the code failed, and will again: read the lines below."),),
    Reason.RANK_FAILED: (_LINES,),
    Reason.PEER_ENDED: (_LINES,),
    Reason.COLLECTIVE_TIMEOUT: (_STACKS, _LINK),
    Reason.HANG: (_STACKS, _patience),
    Reason.LINK_LOST: (_LINK,),
    Reason.NODE_LOST: (_NODE,),
    Reason.NODE_UNREACHABLE: (_NODE,),
    Reason.SUPERVISOR_LOST: (_NODE,),
    Reason.HOST_KEY_CHANGED: (says("key", "Compare the fingerprints, then confirm the new one.", "nodes"),),
    Reason.PREFLIGHT: (_READY,),
    Reason.LAUNCH: (_READY,),
}
