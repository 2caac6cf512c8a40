"""PURE: (recipe, nodes, data) -> the files of each node's job folder and the command that starts it.

The page shows exactly what this returns; the workers put exactly what this returns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import yaml
from pydantic import BaseModel

from .folder import JobFolder, Scratch
from .job import ExportJob, Job, TrainJob
from .lint import Problem, Refused, problems_on
from .parts import FreshPart
from .recipe import Recipe


@dataclass(frozen=True)
class NodeSlot:
    """One node's place in a launch. `processes` is the number of ranks there: its GPUs, or chosen on CPU.

    `gpus`: the indices of those of its GPUs that the launch may see; empty: all.
    """

    name: str
    address: str
    python: str
    scratch: str
    processes: int
    accelerator: bool
    interface: str = ""
    gpus: Sequence[int] = ()


@dataclass(frozen=True)
class Target:
    """What is trained on what. Paths are as the nodes see them; `dataset` is the content hash.

    By hand there is no data set under its hash: `train` and `test` are the files themselves.
    """

    model: str
    dataset: str
    revision: str = ""
    has_test: bool = False
    train: str = ""
    test: str = ""


@dataclass(frozen=True)
class NodePlan:
    """One node's job: its folder, the files put there, and the argument list that starts it detached."""

    node: NodeSlot
    rank: int
    folder: JobFolder
    files: Mapping[str, str]
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Launch:
    """One attempt of a run.

    `port`: free port on the first node. `release`: hash of the training code. `resume`: (attempt, step) of
    the checkpoint to go on from, `fresh`: its parts to begin anew. `env`: secrets and settings for every rank.
    """

    run: int
    attempt: int
    port: int
    release: str
    resume: tuple[int, int] | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    fresh: tuple[FreshPart, ...] = ()


def plan_attempt(recipe: Recipe, target: Target, nodes: Sequence[NodeSlot], launch: Launch) -> list[NodePlan]:
    """Return one plan a node, rank 0's node first. Raises Refused where the recipe can't run there on that target."""
    check_nodes(recipe, nodes)
    check_rows(recipe, test=target.has_test)
    return [_node_plan(recipe, target, nodes, rank, launch) for rank in range(len(nodes))]


def check_nodes(recipe: Recipe, nodes: Sequence[NodeSlot]) -> None:
    """Raise Refused where `recipe` can't run on `nodes`."""
    if not nodes:
        raise Refused([Problem("cluster", "it has no node in service", "Add a node or return one to service.")])
    if len({node.accelerator for node in nodes}) > 1:
        raise Refused(
            [Problem("cluster", "some nodes have GPUs and some have none", "Group like nodes in one cluster.")]
        )
    if len({node.processes for node in nodes}) > 1:
        counts = ", ".join(f"{n.name} {n.processes}" for n in nodes)
        raise Refused([Problem("cluster", f"nodes differ in ranks ({counts})", "Give each the same number.")])
    found = problems_on(recipe, accelerator=nodes[0].accelerator)
    if recipe.fsdp.version == 1 and len(nodes) == nodes[0].processes == 1:
        why = "on one rank FSDP1 shards nothing, and torch writes no sharded checkpoint of that"
        found.append(Problem("fsdp.version", why, "Set it to 2, or take more ranks."))
    if found:
        raise Refused(found)


def check_rows(recipe: Recipe, *, test: bool) -> None:
    """Raise Refused where `recipe` needs rows to evaluate on and there are none. `test`: the data set has some."""
    if recipe.checkpoints.by_evaluation and not (test or recipe.data.test_share):
        why = "it goes by eval_loss, and the data has no test rows to evaluate on"
        fix = "Give test rows, set data.test_share, or set checkpoints.best_metric to loss."
        raise Refused([Problem("checkpoints.keep_best", why, fix)])


def _node_plan(recipe: Recipe, target: Target, nodes: Sequence[NodeSlot], rank: int, launch: Launch) -> NodePlan:
    node = nodes[rank]
    folder = Scratch(PurePosixPath(node.scratch)).job(launch.run, launch.attempt, rank)
    command = (node.python, "-m", "training", "tokenise", str(folder.recipe),
               node.python, "-m", "accelerate.commands.launch", "--config_file", str(folder.accelerate),
               "-m", "training", "sft", str(folder.recipe))  # fmt: skip
    job = Job(argv=command, node_rank=rank, disk=node.scratch, grace_seconds=recipe.limits.stop_seconds)
    files = {
        folder.recipe.name: _train_job(recipe, target, nodes, rank, launch).model_dump_json(indent=2) + "\n",
        folder.accelerate.name: accelerate_yaml(recipe, nodes, rank, launch.port),
        folder.job.name: job.model_dump_json(indent=2) + "\n",
    }
    return NodePlan(node, rank, folder, files, start_argv(node, launch.release, folder), rank_env(node, launch.env))


def _train_job(recipe: Recipe, target: Target, nodes: Sequence[NodeSlot], rank: int, launch: Launch) -> TrainJob:
    scratch = Scratch(PurePosixPath(nodes[rank].scratch))
    data = scratch.dataset(target.dataset)
    return TrainJob(
        recipe=recipe,
        model=target.model,
        revision=target.revision,
        train=target.train or str(data / "train.jsonl"),
        test=target.test or (str(data / "test.jsonl") if target.has_test else ""),
        tokens=str(scratch.tokens),
        checkpoints=str(scratch.checkpoints(launch.run, launch.attempt)),
        resume_from=str(scratch.checkpoint(launch.run, *launch.resume)) if launch.resume else "",
        fresh=launch.fresh,
        events=str(scratch.job(launch.run, launch.attempt, rank).events),
        nodes=len(nodes),
        node_rank=rank,
    )


def plan_export(
    node: NodeSlot, job: ExportJob, folder: JobFolder, *, release: str, env: Mapping[str, str] | None = None
) -> NodePlan:
    """Return the plan of an export on the node that holds the checkpoint."""
    return plan_job(node, ("export",), job, folder, release=release, env=env)


def plan_job(
    node: NodeSlot,
    words: Sequence[str],
    job: BaseModel,
    folder: JobFolder,
    *,
    release: str,
    env: Mapping[str, str] | None = None,
    grace_seconds: float = 5.0,
) -> NodePlan:
    """Return the plan of `python -m training WORDS <job>` on one node; secrets go into `env`, never into `job`."""
    argv = (node.python, "-m", "training", *words, str(folder.recipe))
    run = Job(argv=argv, disk=node.scratch, grace_seconds=grace_seconds)
    files = {
        folder.recipe.name: job.model_dump_json(indent=2) + "\n",
        folder.job.name: run.model_dump_json(indent=2) + "\n",
    }
    return NodePlan(node, 0, folder, files, start_argv(node, release, folder), rank_env(node, dict(env or {})))


def training_argv(node: NodeSlot, release: str, *words: str) -> tuple[str, ...]:
    """Return the argument list of `python -m training WORDS` with the released code on the node."""
    path = Scratch(PurePosixPath(node.scratch)).release(release)
    return ("env", f"PYTHONPATH={path}", node.python, "-m", "training", *words)


def start_argv(node: NodeSlot, release: str, folder: JobFolder) -> tuple[str, ...]:
    """Return the argument list that starts the job's supervisor, detached; started twice, it starts once."""
    return training_argv(node, release, "start", str(folder.path))


def rank_env(node: NodeSlot, env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the ranks: ours first, then the person's, then the GPUs that are the launch's own."""
    own = {"TOKENIZERS_PARALLELISM": "false", "PYTHONUNBUFFERED": "1"}
    if not node.accelerator:
        own |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    if node.interface:
        own |= {"GLOO_SOCKET_IFNAME": node.interface, "NCCL_SOCKET_IFNAME": node.interface}
    return own | dict(env) | visible_gpus(node)


def visible_gpus(node: NodeSlot) -> dict[str, str]:
    """Return what hides the GPUs of other runs; CUDA counts them as NVML does then, by their place on the bus."""
    if not (node.accelerator and node.gpus):
        return {}
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": ",".join(map(str, node.gpus))}


def accelerate_yaml(recipe: Recipe, nodes: Sequence[NodeSlot], rank: int, port: int) -> str:
    """Return the configuration that `accelerate launch --config_file` reads on node `rank`."""
    config: dict[str, object] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": "FSDP",
        "use_cpu": not nodes[0].accelerator,
        "mixed_precision": mixed_precision(recipe),
        "num_machines": len(nodes),
        "num_processes": sum(node.processes for node in nodes),
        "machine_rank": rank,
        "main_process_ip": nodes[0].address,
        "main_process_port": port,
        "rdzv_backend": "static",
        "same_network": True,
        "main_training_function": "main",
        "fsdp_config": fsdp_config(recipe),
    }
    return yaml.safe_dump(config, sort_keys=False)


def mixed_precision(recipe: Recipe) -> str:
    """Return accelerate's word. bf16 masters are no mix: accelerate would turn them into fp32 ones."""
    return "no" if recipe.precision == "fp32" or recipe.master_weights == "bf16" else recipe.precision


def fsdp_config(recipe: Recipe) -> dict[str, object]:
    """Return accelerate's `fsdp_config` for FSDP1 or FSDP2."""
    fsdp = recipe.fsdp
    common: dict[str, object] = {
        "fsdp_version": fsdp.version,
        "fsdp_auto_wrap_policy": fsdp.wrap_policy,
        "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        "fsdp_cpu_ram_efficient_loading": fsdp.ram_efficient_loading,
        "fsdp_offload_params": fsdp.cpu_offload,
        "fsdp_activation_checkpointing": fsdp.activation_checkpointing,
    }
    if fsdp.wrap_classes:
        common["fsdp_transformer_layer_cls_to_wrap"] = ",".join(fsdp.wrap_classes)
    if fsdp.wrap_policy == "SIZE_BASED_WRAP":
        common["fsdp_min_num_params"] = fsdp.wrap_parameters
    if fsdp.version == 2:
        return common | {"fsdp_reshard_after_forward": fsdp.sharding == "FULL_SHARD"}
    return common | {
        "fsdp_sharding_strategy": fsdp.sharding,
        "fsdp_sync_module_states": fsdp.sync_module_states,
        "fsdp_use_orig_params": True,
        "fsdp_backward_prefetch": fsdp.backward_prefetch,
        "fsdp_forward_prefetch": fsdp.forward_prefetch,
    }
