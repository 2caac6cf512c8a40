"""What disks and links carry, from the kernel's counters as files say them."""

from __future__ import annotations

from pathlib import Path

import pytest

from training import rates

ROUTES = (
    "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
    "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
    "wlan0\t00000000\t0101A8C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n"
    "eth0\t00000000\t0101A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n"
)


def put(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(rates, "SYS", tmp_path)
    monkeypatch.setattr(rates, "PROC", tmp_path)
    put(tmp_path / "net/route", ROUTES)
    for name, count in (("rx_bytes", 700), ("tx_bytes", 900)):
        put(tmp_path / f"class/net/eth0/statistics/{name}", count)
    return tmp_path


def test_bytes_of_a_disk_a_link_and_rdma_ports_of_both_kinds(kernel: Path) -> None:
    put(kernel / "disk/stat", "10 0 8 3 20 0 16 5 0 1 1")
    for name, count in (("port_rcv_data", 5), ("port_xmit_data", 6)):
        put(kernel / f"class/infiniband/mlx5_0/ports/1/counters/{name}", count)
    for name, count in (("rx_bytes", 100), ("tx_bytes", 200)):
        put(kernel / f"class/infiniband/efa_0/ports/1/hw_counters/{name}", count)
    assert rates.counts(kernel / "disk", "eth0") == {
        "disk_read": 4096, "disk_write": 8192, "net_received": 700, "net_sent": 900,
        "rdma_received": 120, "rdma_sent": 224,
    }  # fmt: skip


@pytest.mark.parametrize("interface", ["", "..", "a/../eth0", "eth9"])
def test_what_is_not_there_is_not_known(kernel: Path, interface: str) -> None:
    assert set(rates.counts(kernel / "none", interface).values()) == {None}


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({}, "eth0"),
        ({"GLOO_SOCKET_IFNAME": "ib0"}, "ib0"),
        ({"NCCL_SOCKET_IFNAME": "=ens5:1,ens6", "GLOO_SOCKET_IFNAME": "ib0"}, "ens5"),
    ],
)
def test_the_interface_is_the_ranks_own_else_the_default_routes(
    kernel: Path, environment: dict[str, str], found: str
) -> None:
    assert rates.chosen_interface(environment) == found


@pytest.mark.parametrize(
    ("before", "now", "seconds", "found"),
    [(100, 300, 2.0, 100.0), (None, 300, 2.0, None), (300, 100, 2.0, None), (100, None, 2.0, None), (1, 2, 0.0, None)],
)
def test_a_rate(before: int | None, now: int | None, seconds: float, found: float | None) -> None:
    assert rates.rate(before, now, seconds) == found
