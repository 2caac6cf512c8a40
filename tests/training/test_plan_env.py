"""A plan keeps what its ranks need in their environment out of files, command lines and whatever prints it."""

from __future__ import annotations

import pytest

from training.spec.plan import Launch, NodePlan, NodeSlot, Target, plan_attempt
from training.spec.recipe import Recipe

SECRET = "hf_in_no_file"
SETTINGS = {"HF_TOKEN": SECRET, "NCCL_DEBUG": "INFO", "NCCL_IB_HCA": "=mlx5_0:1"}


@pytest.fixture
def launch() -> Launch:
    return Launch(1, 1, 29500, "r", env=SETTINGS)


@pytest.fixture
def plans(launch: Launch) -> list[NodePlan]:
    nodes = [NodeSlot(f"n{n}", f"10.0.0.1{n}", "/opt/python", "/scratch", 8, True, "eth0") for n in range(3)]
    return plan_attempt(Recipe(), Target("/models/base", "rows"), nodes, launch)


def test_each_node_gets_them(plans: list[NodePlan]) -> None:
    assert len(plans) == 3
    assert all(SETTINGS.items() <= plan.env.items() for plan in plans)


def test_they_are_in_no_file_and_no_command(plans: list[NodePlan]) -> None:
    for plan in plans:
        for text in [*plan.files.values(), *plan.argv]:
            assert not [value for value in SETTINGS.values() if value in text], text


def test_what_is_printed_of_a_launch_shows_none(launch: Launch, plans: list[NodePlan]) -> None:
    assert SECRET not in repr(launch)
    assert SECRET not in repr(plans)


def test_a_person_s_setting_goes_before_our_own(launch: Launch) -> None:
    node = NodeSlot("n0", "10.0.0.10", "/opt/python", "/scratch", 8, True, "eth0")
    theirs = Launch(1, 1, 29500, "r", env={"NCCL_SOCKET_IFNAME": "ib0"})
    (plan,) = plan_attempt(Recipe(), Target("/models/base", "rows"), [node], theirs)
    assert plan.env["NCCL_SOCKET_IFNAME"] == "ib0"
    assert plan.env["GLOO_SOCKET_IFNAME"] == "eth0"
