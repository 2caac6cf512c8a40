"""What FSDP can't do is refused, and what it can is rendered."""

from __future__ import annotations

from pathlib import Path

import pytest
from accelerate.commands import launch
from accelerate.utils import FullyShardedDataParallelPlugin
from accelerate.utils.launch import prepare_multi_gpu_env
from torch.distributed.fsdp import BackwardPrefetch, ShardingStrategy

from tests.training.launch import recipe
from training.spec.lint import Refused, problems_on
from training.spec.plan import NodeSlot, accelerate_yaml, check_nodes, fsdp_config

REFUSED = [
    ({"version": 1, "sync_module_states": False}, "trains other ranks on empty weights; set sync_module_states"),
    ({"version": 1, "sharding": "NO_SHARD"}, "torch writes no sharded checkpoint; take SHARD_GRAD_OP"),
    ({"sharding": "HYBRID_SHARD"}, "exists in FSDP1 only; set version to 1"),
    ({"wrap_policy": "SIZE_BASED_WRAP"}, "works with FSDP1 only"),
    ({"version": 1, "wrap_policy": "SIZE_BASED_WRAP", "wrap_classes": ["X"]}, "wrap_classes are not read"),
    ({"backward_prefetch": "NO_PREFETCH"}, "backward_prefetch is read by FSDP1 only"),
    ({"forward_prefetch": True}, "forward_prefetch is read by FSDP1 only"),
    ({"version": 1, "weights": "slices"}, "weights is read by FSDP2 only"),
    ({"wrap_parameters": 5}, "wrap_parameters is read with SIZE_BASED_WRAP only"),
]
NO_GPU = {"ram_efficient_loading": False, "sync_module_states": False}  # the plugin asks for a GPU to sync
GPUS = [NodeSlot("n", "10.0.0.1", "/py", "/s", 8, accelerator=True)]


@pytest.mark.parametrize(("fsdp", "why"), REFUSED)
def test_it_refuses(fsdp: dict[str, object], why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        recipe(fsdp=fsdp)
    assert [problem.field for problem in refused.value.problems] == ["fsdp"]


def test_it_renders_fsdp1_settings() -> None:
    config = fsdp_config(
        recipe(
            fsdp={
                "version": 1,
                "sharding": "HYBRID_SHARD",
                "wrap_policy": "SIZE_BASED_WRAP",
                "wrap_parameters": 5_000_000,
                "backward_prefetch": "NO_PREFETCH",
                "forward_prefetch": True,
                "cpu_offload": True,
            }
        )
    )
    assert config["fsdp_sharding_strategy"] == "HYBRID_SHARD"
    assert (config["fsdp_auto_wrap_policy"], config["fsdp_min_num_params"]) == ("SIZE_BASED_WRAP", 5_000_000)
    assert (config["fsdp_backward_prefetch"], config["fsdp_forward_prefetch"]) == ("NO_PREFETCH", True)
    assert config["fsdp_offload_params"] is True


def test_accelerate_reads_them_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a setting means is said by the library: its own plugin, in the environment that its launcher makes."""
    asked = {"version": 1, "sharding": "HYBRID_SHARD", "backward_prefetch": "BACKWARD_POST", "forward_prefetch": True}
    how = recipe(fsdp=asked | NO_GPU)
    for name, value in launcher_environment(accelerate_yaml(how, GPUS, 0, 29500), tmp_path).items():
        if name.startswith("FSDP_"):
            monkeypatch.setenv(name, value)
    plugin = FullyShardedDataParallelPlugin()
    assert plugin.fsdp_version == 1
    assert plugin.sharding_strategy == ShardingStrategy.HYBRID_SHARD
    assert plugin.backward_prefetch == BackwardPrefetch.BACKWARD_POST
    assert plugin.forward_prefetch is True


def launcher_environment(text: str, folder: Path) -> dict[str, str]:
    (folder / "accelerate.yaml").write_text(text)
    words = ["--config_file", str(folder / "accelerate.yaml"), "-m", "training"]
    args, _, _ = launch._validate_launch_command(launch.launch_command_parser().parse_args(words))
    args.main_process_port = 0
    found: dict[str, str] = prepare_multi_gpu_env(args)
    return found


def test_fsdp1_on_one_rank_is_refused() -> None:
    alone = [NodeSlot("n", "10.0.0.1", "/py", "/s", 1, accelerator=True)]
    with pytest.raises(Refused, match="Set it to 2, or take more ranks"):
        check_nodes(recipe(fsdp={"version": 1}), alone)
    check_nodes(recipe(), alone)


def test_fp16_needs_a_gpu() -> None:
    assert [p.field for p in problems_on(recipe(precision="fp16"), accelerator=False)] == ["precision"]
    assert problems_on(recipe(precision="fp16"), accelerator=True) == []
