"""Does it fit in the node's memory, asked before anything is read."""

from __future__ import annotations

import pytest

from tests.training.launch import recipe
from training.spec import presets
from training.spec.hostmemory import Load, memory_problem, needed, way_of

BILLION = 10**9
GB = 10**9


# parameters of what each preset is named after, and the memory of a node that it was written for
NODES = {
    "llama-2-70b": (68_976_648_192, 1000 * GB),
    "llama-3.1-8b": (8_030_261_248, 1000 * GB),
    "smollm2-135m": (134_515_008, 24 * GB),
    "tiny": (5_000_000, 24 * GB),
}


def load(way: str, *, on_host: bool, parameters: int = 70 * BILLION, ranks: int = 8) -> Load:
    return Load(parameters, parameters, ranks, ranks, way, on_host)


def test_accelerates_way_holds_the_model_once_and_a_half_on_every_rank() -> None:
    """8 x 1.5 x 70 x 10^9 x 4 bytes: what no node has."""
    assert needed(load("accelerate", on_host=False), recipe()) == 3360 * GB


@pytest.mark.parametrize("way", ["slices", "broadcast"])
def test_slices_for_gpus_hold_pieces_alone(way: str) -> None:
    assert needed(load(way, on_host=False), recipe()) < 2 * GB


def test_fsdp1_holds_the_model_on_the_first_rank_of_a_node() -> None:
    fsdp1 = recipe(fsdp={"version": 1})
    assert needed(load("accelerate", on_host=False), fsdp1) == 350 * GB
    off = recipe(fsdp={"version": 1, "ram_efficient_loading": False})
    assert needed(load("accelerate", on_host=False), off) == 8 * 350 * GB


def test_without_a_gpu_training_itself_counts() -> None:
    """Masters, gradients and two moments of 1 x 10^9 parameters: 16 GB over all ranks, however many."""
    assert needed(load("slices", on_host=True, parameters=BILLION, ranks=2), recipe()) == 16 * GB
    assert needed(load("slices", on_host=True, parameters=BILLION, ranks=4), recipe()) == 16 * GB


def test_only_this_nodes_ranks_count() -> None:
    half = Load(BILLION, BILLION, 4, 2, "slices", True)
    assert needed(half, recipe()) == 8 * GB


def test_bf16_masters_are_half() -> None:
    pure = recipe(precision="bf16", master_weights="bf16")
    assert needed(load("accelerate", on_host=False), pure) == 1680 * GB


@pytest.mark.parametrize("name", presets.names())
def test_every_preset_fits_on_the_node_that_it_was_written_for(name: str) -> None:
    preset = presets.load(name)
    how = preset.recipe
    parameters, memory = next(node for model, node in NODES.items() if name.startswith(model))
    way = way_of(how)
    on_host = memory == 24 * GB
    ranks = preset.nodes * preset.processes if on_host else preset.processes  # the demo's nodes are one machine
    trained = 0 if how.method.adapts else parameters
    asked = Load(parameters, trained, preset.nodes * preset.processes, ranks, way, on_host)
    assert memory_problem("n", needed(asked, how), memory, memory, way) is None


@pytest.mark.parametrize(
    ("asked", "way"),
    [
        ({}, "slices"),
        ({"fsdp": {"weights": "broadcast"}}, "broadcast"),
        ({"fsdp": {"weights": "accelerate"}}, "accelerate"),
        ({"fsdp": {"version": 1}}, "accelerate"),
        ({"method": {"kind": "qlora"}, "precision": "bf16"}, "accelerate"),
    ],
)
def test_the_way_is_the_recipes(asked: dict[str, object], way: str) -> None:
    assert way_of(recipe(**asked)) == way


def test_a_base_in_four_bits_is_never_whole_on_the_host() -> None:
    for version in (1, 2):
        four = recipe(method={"kind": "qlora"}, precision="bf16", fsdp={"version": version})
        assert 8 * 4 * GB < needed(load("accelerate", on_host=False), four) < 8 * 4.5 * GB
        assert needed(load("accelerate", on_host=False, parameters=BILLION), four) < 8 * 2.2 * GB
    eight = recipe(method={"kind": "lora"}, precision="bf16")
    assert needed(load("accelerate", on_host=False), eight) == 1680 * GB


def test_the_refusal_says_what_is_needed_what_is_there_and_the_way_out() -> None:
    assert memory_problem("n1", 10 * GB, 10 * GB, 20 * GB, "slices") is None
    found = memory_problem("n1", 33 * GB, 10 * GB, 20 * GB, "accelerate")
    assert found is not None
    assert str(found).startswith(
        "model: loading by accelerate needs 33.0 GB on node n1, node has 10.0 GB free of 20.0. Set fsdp.weights to auto"
    )
