"""A large model exported within little memory: python -m tests.prove.memory [--megabytes 1000] [--layers 28]

A checkpoint of a Llama of 2.0 billion parameters (4 GB in bf16) is made, then exported, proof and all, in a cgroup
whose memory is limited; page cache counts there, and gives way. Where no cgroup can be made, RLIMIT_DATA limits what
each process may have of its own. The export has to complete, and its proof to have compared every value.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from tests.bench.exporting import making, ways

ROOT = Path(__file__).parents[2]
GROUPS = Path("/sys/fs/cgroup")
# (folder, file of the limit, file of the peak, file of the processes) of cgroup v2 and v1
KINDS = (
    (GROUPS, "memory.max", "memory.peak"),
    (GROUPS / "memory", "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
)
PROCESSES = "cgroup.procs"
ATTEMPTS = 50


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.prove.memory")
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=making.LARGE.layers)
    parser.add_argument("--rlimit", action="store_true", help="RLIMIT_DATA, though a cgroup can be made")
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="shardboard-memory-") as name:
        folder = Path(name)
        making.make(folder, dataclasses.replace(making.LARGE, layers=options.layers), 0)
        with limited(options.megabytes * 10**6, by_group=not options.rlimit) as limit:
            begun = time.monotonic()
            right, said = exported(folder, limit.enter)
            seconds = time.monotonic() - begun
        size = ways.size_of(folder)
    print(
        f"{size / 1e9:.2f} GB exported and proven within {options.megabytes} MB by {limit.kind}, {limit.peak()} in"
        f" {seconds:.0f} s; {said}: {'holds' if right else 'falls short'}"
    )
    return 0 if right else 1


def exported(folder: Path, enter: Callable[[], None]) -> tuple[bool, str]:
    """Export under the limit; return whether it completed with every value compared, and what its proof says."""
    job = ways.export_job(folder, dtype="bfloat16")
    status = subprocess.run(ways.export_command(folder), cwd=ROOT, preexec_fn=enter, check=False).returncode
    if status:
        return False, f"status {status}, {ways.events(job)[-1].data}"
    proof = json.loads((Path(job.out) / "proof.json").read_text())
    checks = {check["name"]: check["passed"] for check in proof["checks"]}
    said = ", ".join(f"{name} {'passed' if passed else 'failed'}" for name, passed in checks.items())
    return checks.get("contents", False) and all(checks.values()), said


@dataclasses.dataclass
class Limit:
    """`enter`: what a process calls before it begins."""

    kind: str
    enter: Callable[[], None]
    peaked: list[int] = dataclasses.field(default_factory=list)

    def peak(self) -> str:
        return f"at most {self.peaked[0] / 1e6:,.0f} MB of it used," if self.peaked else "as far as is known"


@contextmanager
def limited(bytes_: int, *, by_group: bool) -> Iterator[Limit]:
    """Give a limit on memory, by a cgroup of its own where one can be made."""
    for root, limit, peak in KINDS if by_group else ():
        group = root / f"shardboard-{os.getpid()}"
        try:
            group.mkdir()
            # a plain folder where other kinds of groups are mounted has neither file
            for name in (limit, PROCESSES):
                (group / name).stat()
            (group / limit).write_text(str(bytes_))
        except OSError:  # not mounted, read-only, or its controller is not handed on
            with suppress(OSError):
                group.rmdir()
            continue
        found = Limit("cgroup", partial(_enter, group))
        try:
            yield found
        finally:
            with suppress(OSError):
                found.peaked.append(int((group / peak).read_text()))
            _remove(group)
        return
    yield Limit("RLIMIT_DATA", lambda: resource.setrlimit(resource.RLIMIT_DATA, (bytes_, bytes_)))


def _enter(group: Path) -> None:
    (group / PROCESSES).write_text(str(os.getpid()))


def _remove(group: Path) -> None:
    """Remove a group that the last process may just be leaving."""
    for _ in range(ATTEMPTS):
        try:
            group.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
