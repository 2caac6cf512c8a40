"""What answers mean: held GPUs, odd versions, clocks, routes, disks, blocked directions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from training.spec.plan import NodeSlot
from workers.group import Member
from workers.preflight import allreduce, alone, clock, differ, interface, ports, storage

SLOT = NodeSlot("a", "10.0.0.1", "/usr/bin/python3", "/scratch", 1, accelerator=True)
MEMBER = Member(0, 1, SLOT, None, None, "r" * 32)  # type: ignore[arg-type]
GB = 10**9


def gpu(used: int = 0, driver: str = "570") -> dict[str, Any]:
    return {"index": 0, "name": "A100", "memory_total": 80 * GB, "memory_used": used, "driver": driver}


def route(peer: str, name: str = "eth0", address: str = "10.0.0.1", error: str = "") -> dict[str, str]:
    return {"peer": peer, "interface": name, "address": address, "error": error}


def test_who_holds_a_gpu_is_named_and_refused_where_it_is_much() -> None:
    held = [{"gpu": 0, "pid": 41, "user": "eve", "command": "python x.py", "memory": 30 * GB}]
    found = alone.idle({"gpus": [gpu(30 * GB)], "gpu_processes": held})
    assert (found.state, "process 41 (eve python x.py) has 30 GB" in found.text) == ("problem", True)
    assert alone.idle({"gpus": [gpu(GB)], "gpu_processes": [held[0] | {"memory": GB}]}).state == "warning"
    assert "no process that can be seen" in alone.idle({"gpus": [gpu(30 * GB)], "gpu_processes": []}).text
    assert alone.idle({"gpus": [gpu()], "gpu_processes": []}).state == "ok"


def test_nvswitch_without_its_service_is_refused() -> None:
    assert alone._driver({"gpus": [gpu()], "fabric": "inactive"}).state == "problem"
    assert alone._driver({"gpus": [gpu()], "fabric": "active"}).state == "ok"
    assert alone._driver({"gpus": [gpu()], "fabric": None}).state == "ok"


def test_the_odd_node_is_named_and_all_where_there_is_no_most() -> None:
    def facts(torch: str) -> dict[str, Any]:
        return {"python": "3.11.2", "versions": {"torch": torch}, "gpus": [gpu(driver=torch)]}

    assert list(differ.of_nodes({"a": facts("2.1"), "b": facts("2.2"), "c": facts("2.1")})) == ["b"]
    assert list(differ.of_nodes({"a": facts("2.1"), "b": facts("2.2")})) == ["a", "b"]
    assert differ.of_nodes({"a": facts("2.1"), "b": facts("2.1")}) == {}
    assert {found.state for found in differ.of_drivers({"a": facts("1"), "b": facts("2")}).values()} == {"warning"}


def test_a_clock_far_ahead_is_shown_and_not_refused() -> None:
    tick = clock.Tick(100.0, 100.2, 190.1)
    assert clock.findings(tick)["clock"].text == "90.000 s ahead, known to 100 ms"
    assert clock.findings(tick)["clock"].state == "warning"
    assert clock.findings(clock.Tick(100.0, 100.2, 99.9))["clock"].state == "ok"
    assert clock.findings(clock.Tick(100.0, 100.2, None))["clock"].state == "nothing"


def test_the_interface_is_that_of_the_route_or_the_one_that_was_set() -> None:
    own = [{"name": "docker0", "address": "172.17.0.1"}, {"name": "eth0", "address": "10.0.0.1"}]
    facts = {"interfaces": own, "routes": [route("10.0.0.2"), route("10.0.0.3")]}
    way, told = interface.chosen(MEMBER, facts)
    assert way == interface.Way("eth0", "10.0.0.1")
    assert told.state == "ok"
    by_hand = replace(MEMBER, slot=replace(SLOT, interface="docker0"))
    way, told = interface.chosen(by_hand, facts)
    assert way == interface.Way("docker0", "172.17.0.1")
    assert (told.state, "eth0 to 10.0.0.2" in told.text) == ("warning", True)
    gone = replace(MEMBER, slot=replace(SLOT, interface="ib0"))
    assert interface.chosen(gone, facts)[1].state == "problem"
    two = facts | {"routes": [route("10.0.0.2"), route("10.0.0.3"), route("10.1.0.4", "eth1", "10.1.0.1")]}
    way, told = interface.chosen(MEMBER, two)
    assert (way.interface if way else "", told.state) == ("eth0", "warning")
    lost = facts | {"routes": [route("nowhere", "", "", "Name or service not known")]}
    assert interface.chosen(MEMBER, lost)[0] is None
    assert "nowhere" in interface.chosen(MEMBER, lost)[1].text


def test_disks_are_shared_private_or_mixed() -> None:
    assert {f.text for f in storage.findings({"a": {"a", "b"}, "b": {"a", "b"}}).values()} == {"shared by all nodes"}
    apart = storage.findings({"a": {"a"}, "b": {"b"}})
    assert {found.state for found in apart.values()} == {"ok"}
    mixed = storage.findings({"a": {"a", "b"}, "b": {"a", "b"}, "c": {"c"}})
    assert {found.state for found in mixed.values()} == {"warning"}
    assert mixed["a"].text == "shared with b alone"


def test_a_blocked_direction_is_told_at_both_ends() -> None:
    answers: dict[str, Any] = {
        "a": {"reached": {"b": None, "c": 0.4}, "errors": {"b": "timed out"}, "heard": ["b", "c"]},
        "b": {"reached": {"a": 0.3, "c": 0.4}, "errors": {}, "heard": ["c"]},
        "c": {"reached": {"a": 0.3, "b": 0.4}, "errors": {}, "heard": ["a", "b"]},
    }
    found = ports.findings(answers)
    assert found["a"].text == found["b"].text == "no connection from a to b (timed out)"
    assert found["c"].text == "both ways: a 0.3 ms, b 0.4 ms"


def test_a_gpu_that_another_run_has_does_not_hinder_one_beside_it() -> None:
    gpus = [gpu(30 * GB), gpu() | {"index": 1}]
    facts = {"gpus": gpus, "gpu_processes": [{"gpu": 0, "pid": 41, "memory": 30 * GB}]}
    beside = replace(MEMBER, slot=replace(SLOT, gpus=(1,)))
    assert alone.idle(alone._seen(beside, facts)).state == "ok"
    assert alone.idle(alone._seen(MEMBER, facts)).state == "problem"


def test_every_pair_meets_once_and_nobody_twice_in_a_round() -> None:
    for count in range(2, 8):
        names = [f"n{number}" for number in range(count)]
        played = list(allreduce.rounds(names))
        assert all(len({name for pair in pairs for name in pair}) == 2 * len(pairs) for pairs in played)
        pairs = [frozenset(pair) for pairs in played for pair in pairs]
        assert len(pairs) == len(set(pairs)) == count * (count - 1) // 2


def test_the_bad_pair_is_named_or_said_to_be_none() -> None:
    found = allreduce.findings(["a", "b", "c"], {("a", "c"): "a: timed out"}, "c: timed out")
    assert found["a"].text == found["c"].text == "none between a and c (a: timed out)"
    assert found["b"].state == "warning"
    assert found["b"].text == "it fails with all nodes together; it works with every other node"
    together = allreduce.findings(["a", "b", "c"], {}, "c: timed out")
    assert {finding.state for finding in together.values()} == {"problem"}
    assert "works with every two" in together["b"].text


def test_a_pair_that_was_not_tried_in_time_is_not_said_to_work() -> None:
    names, why = ["a", "b", "c", "d"], {("a", "c"): "a: timed out"}
    found = allreduce.findings(names, why, "c: timed out", [("a", "b"), ("b", "c"), ("b", "d")])
    assert found["b"].text.endswith("together; time was up before 3 of 3 pairs could be tried")
    assert found["d"].text.endswith(
        "it works with those that were tried; time was up before 1 of 3 pairs could be tried"
    )
    none = allreduce.findings(names, {}, "c: timed out", list(itertools.combinations(names, 2)))
    assert "(c: timed out); time was up before 6 of 6 pairs could be tried" in none["a"].text
