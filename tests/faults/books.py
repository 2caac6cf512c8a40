"""The books: what nodes wrote against what the service has, also while both grow."""

from __future__ import annotations

from collections import Counter

from tests.e2e import ledger
from tests.e2e.ssh_hosts import SshHost
from tests.e2e.stack import Stack, until


class Books:
    """Of the runs on `hosts`, kept by `stack`."""

    def __init__(self, stack: Stack, hosts: list[SshHost]):
        self.stack, self.hosts = stack, hosts

    def lost(self, run: int) -> int:
        """Return how many lines that are on the nodes' disks now have no row, when all had time to arrive.

        Raises AssertionError where a line has two, or where the journal's numbers have a gap.
        """
        lines = ledger.written({host.scratch for host in self.hosts}, run)
        assert lines or not self.stack.run(run)["step"], "the nodes hold no files of this run"
        wanted = Counter((*key, seq) for key, seqs in lines.items() for seq in seqs)

        def missing() -> list[int]:
            """Return one number, in a list: that none are missing has to be true."""
            gone = len(wanted - self._stored(run))
            return [] if gone else [0]

        try:
            return until("every line to be a row", missing, limit=90, pause=0.5)[0]
        except AssertionError:
            return len(wanted - self._stored(run))

    def _stored(self, run: int) -> Counter[tuple[int, str, int]]:
        events = ledger.stored(self.stack, run)
        assert [e["seq"] for e in events] == list(range(1, len(events) + 1)), "the journal has a gap"
        found = Counter((e["attempt"], e["source"], e["source_seq"]) for e in events)
        assert not [key for key, times in found.items() if times > 1], "a line has two rows"
        return found
