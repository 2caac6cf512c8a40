"""The node check says what is there, and what is wrong with the way out."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from tests.workers.world import World
from training.spec.lint import Problem
from webapp.fleet.models import Node
from webapp.fleet.ssh import fingerprint, make_identity
from workers.group import Member
from workers.preflight.asked import keep, problems
from workers.preflight.differ import differences
from workers.preflight.node import check_node, member_of

SHOWS_ANOTHER = Problem("host_key", "it shows another", "Look.")
FULL = Problem("disk", "it is full", "Free some.")


def checked(world: World, **changes: object) -> Node:
    Node.objects.filter(pk=world.nodes[0].pk).update(**changes)
    check_node(world.nodes[0].pk)
    return Node.objects.get(pk=world.nodes[0].pk)


def test_a_ready_node_has_facts_and_no_problem(world: World) -> None:
    node = checked(world)
    assert node.problem == ""
    assert node.facts["versions"]["torch"]
    assert node.checked_at is not None


def test_a_missing_python_is_named(world: World) -> None:
    node = checked(world, python="/nowhere/python")
    assert "/nowhere/python" in node.problem
    assert "absolute path" in node.problem


def test_a_missing_torch_is_named_with_the_command_that_brings_it(world: World) -> None:
    bare = world.folder / "bare"
    bare.write_text('#!/bin/sh\nunset PYTHONHOME\nexec /usr/bin/env python3 -S "$@"\n')
    bare.chmod(0o755)
    node = checked(world, python=str(bare))
    assert "torch" in node.problem
    assert "pip install" in node.problem


def test_a_changed_key_shows_both_fingerprints(world: World) -> None:
    other = make_identity().public
    node = checked(world, host_key=other)
    assert fingerprint(other) in node.problem
    assert fingerprint(world.hosts[0].host_key) in node.problem


def test_an_unconfirmed_key_and_an_unreachable_node_are_told_apart(world: World) -> None:
    assert "fingerprint" in checked(world, host_key="").problem
    world.hosts[0].stop()
    assert "no connection" in checked(world, host_key=world.hosts[0].host_key).problem


def test_a_login_that_prints_something_is_no_trouble(world: World) -> None:
    chatty = world.folder / "chatty"
    chatty.write_text('#!/bin/sh\necho Welcome\nexec "$(dirname "$0")/python" "$@"\n')
    chatty.chmod(0o755)
    assert checked(world, python=str(chatty)).problem == ""


def test_an_answer_that_is_none_is_told(world: World) -> None:
    odd = world.folder / "odd"
    odd.write_text("#!/bin/sh\necho hello\n")
    odd.chmod(0o755)
    assert "hello" in checked(world, python=str(odd)).problem


def test_a_node_that_is_gone_is_no_error(world: World) -> None:
    check_node(10**6)


@pytest.mark.parametrize("changed", [{"host_key": "ssh-ed25519 x"}, {"address": "10.0.0.9"}, {"python": "/new/python"}])
def test_a_slow_answer_says_nothing_of_a_node_that_was_changed_meanwhile(world: World, changed: dict[str, str]) -> None:
    rows, asked, now = Node.objects.filter(pk=world.nodes[0].pk), member_of(world.nodes[0]), timezone.now()
    rows.update(**changed)
    keep(asked, now, {"versions": {}}, [SHOWS_ANOTHER])
    assert rows.get().checked_at is None
    keep(member_of(rows.get()), now, {"versions": {}}, [FULL])
    assert rows.get().problem == "disk: it is full. Free some."


def test_a_slow_answer_says_nothing_where_one_that_was_asked_later_has_come(world: World) -> None:
    rows, member, now = Node.objects.filter(pk=world.nodes[0].pk), member_of(world.nodes[0]), timezone.now()
    keep(member, now, {"versions": {"torch": "2"}}, [])
    keep(member, now - timedelta(seconds=1), {"versions": {}}, [FULL])
    assert (rows.get().problem, rows.get().facts["versions"]) == ("", {"torch": "2"})
    keep(member, now + timedelta(seconds=1), {}, [FULL])
    assert rows.get().problem == "disk: it is full. Free some."


def test_too_few_gpus_are_a_problem(world: World) -> None:
    slot = world.nodes[0].slot()
    member = Member(0, 1, type(slot)(**{**vars(slot), "accelerator": True, "processes": 8}), None, None, "r")
    assert "2 GPUs were found and 8" in str(problems(member, {"gpus": [{}, {}], "problems": []})[0])
    assert problems(member, {"gpus": [{}] * 8, "problems": []}) == []


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({"torch": "2.2"}, "torch differs (a has 2.1, b has 2.2)"),
        ({"trl": None}, "trl differs (a has 1.0, b has none)"),
        ({}, ""),
    ],
)
def test_differences_between_nodes(other: dict[str, str | None], told: str) -> None:
    versions = {"torch": "2.1", "transformers": "5", "accelerate": "1", "trl": "1.0"}
    facts = {
        "a": {"python": "3.11.2", "versions": versions, "cuda": None, "nccl": None},
        "b": {"python": "3.11.7", "versions": versions | other, "cuda": None, "nccl": None},
    }
    assert "; ".join(differences(facts)).startswith(f"versions: {told}" if told else "")
    assert bool(differences(facts)) == bool(told)
