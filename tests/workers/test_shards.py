"""A checkpoint of two hosts with private disks is brought together: between them, or through us where that is cut."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

import pytest

from tests.e2e.ssh_hosts import SshHost, ssh_hosts
from training.spec.folder import Scratch, manifest_name
from training.spec.plan import NodeSlot
from webapp.fleet.ssh import Endpoint, connect, make_identity
from workers import shards
from workers.group import Member
from workers.launch import release
from workers.shards import Account, Source

pytestmark = pytest.mark.root
PAIR = make_identity()
SIZE = 300_000
SHARDS = ["shard-0", "shard-1"]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SshHost]]:
    with ssh_hosts(tmp_path_factory.mktemp("hosts"), PAIR.public) as started:
        yield started


def members(hosts: list[SshHost]) -> tuple[Member, ...]:
    """Return one member a host, its address on the link between them."""
    found = []
    for rank, host in enumerate(hosts):
        endpoint = Endpoint(host.name, host.address, host.port, "root", host.host_key, PAIR.private)
        slot = NodeSlot(name=host.name, address=host.address, python=sys.executable, scratch="/scratch",
                        processes=1, accelerator=False)  # fmt: skip
        folder = Scratch(PurePosixPath("/scratch")).job(1, 1, rank)
        found.append(Member(rank, rank, slot, endpoint, folder, release.current().digest))
    return tuple(found)


class Bringing:
    """A checkpoint at `step` of which each host has one shard; what is said and told while it comes together."""

    def __init__(self, hosts: list[SshHost], step: int):
        self.source = Source(1, 1, step, len(hosts), members(hosts))
        self.said: list[str] = []
        self.told: list[tuple[int, int]] = []
        self.content = [os.urandom(SIZE) for _ in hosts]

    async def save(self) -> None:
        for member, content in zip(self.source.members, self.content, strict=True):
            name = f"model/shard-{member.rank}"
            facts = {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            async with connect(member.endpoint) as host:
                await host.put_tree(self.path("model"), {f"shard-{member.rank}": content})
                await host.put_text(self.path(manifest_name(member.rank)), json.dumps({"files": {name: facts}}))

    def path(self, name: str) -> str:
        return str(Scratch(PurePosixPath("/scratch")).checkpoint(1, 1, self.source.step) / name)

    async def bring(self) -> None:
        async def say(text: str) -> None:
            self.said.append(text)

        async def tell(done: int, total: int) -> None:
            self.told.append((done, total))

        async with connect(self.source.members[0].endpoint) as one, connect(self.source.members[1].endpoint) as two:
            targets = [self.source.place(m, h) for m, h in zip(self.source.members, (one, two), strict=True)]
            await shards.bring_together(self.source, targets, Account(say, tell))

    def hashes_on(self, host: SshHost) -> list[str]:
        """Return the hashes of the shards that lie there, and look that nothing else of a transfer does."""
        names = host.inside("find", self.path(""), "-type", "f").split()
        assert sorted(PurePosixPath(name).name for name in names) == ["manifest-0.json", "manifest-1.json", *SHARDS]
        assert host.inside("find", "/scratch/transfers", "-mindepth", "1") == ""
        return [host.inside("sha256sum", self.path(f"model/{name}")).split()[0] for name in SHARDS]

    @property
    def hashes(self) -> list[str]:
        return [hashlib.sha256(content).hexdigest() for content in self.content]


async def test_it_goes_directly_between_nodes_that_reach_each_other(hosts: list[SshHost]) -> None:
    bringing = Bringing(hosts, 10)
    await bringing.save()
    await bringing.bring()
    amounts = "300 kB from host-1 to host-2, 300 kB from host-2 to host-1"
    assert bringing.said == [f"shards of step 10 are brought together: {amounts}"]
    assert bringing.told[-1] == (2 * SIZE, 2 * SIZE)
    assert [bringing.hashes_on(host) for host in hosts] == [bringing.hashes] * 2
    bringing.said.clear()
    await bringing.bring()
    assert bringing.said == [], "there is nothing to bring"


async def test_where_they_do_not_reach_each_other_it_goes_through_us_and_says_so(hosts: list[SshHost]) -> None:
    first, second = hosts
    second.inside("iptables", "-I", "INPUT", "-s", first.address, "-j", "REJECT")
    try:
        bringing = Bringing(hosts, 20)
        await bringing.save()
        await bringing.bring()
    finally:
        second.inside("iptables", "-D", "INPUT", "-s", first.address, "-j", "REJECT")
    assert [bringing.hashes_on(host) for host in hosts] == [bringing.hashes] * 2
    assert bringing.told[-1] == (2 * SIZE, 2 * SIZE)
    detours = [text for text in bringing.said if "not directly, so through this service" in text]
    assert any(text.startswith("from host-2 to host-1") for text in detours), bringing.said
