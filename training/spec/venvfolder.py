"""The names of an interpreter that is made on a node, and of what makes it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class VenvFolder:
    """A virtual environment; beside it, in `making`, what makes it: its files stay for the next try, and to be read."""

    path: PurePosixPath

    @property
    def python(self) -> PurePosixPath:
        return self.path / "bin" / "python"

    @property
    def complete(self) -> PurePosixPath:
        """There once every package is in it: written last."""
        return self.path / ".complete"

    @property
    def making(self) -> PurePosixPath:
        return self.path.with_name(f"{self.path.name}.making")

    @property
    def order(self) -> PurePosixPath:
        """What to do, step by step, as JSON: see spec.provision."""
        return self.making / "order.json"

    @property
    def requirements(self) -> PurePosixPath:
        return self.making / "requirements.txt"

    @property
    def gpu_requirements(self) -> PurePosixPath:
        return self.making / "requirements-gpu.txt"

    @property
    def constraints(self) -> PurePosixPath:
        return self.making / "constraints.txt"

    @property
    def env(self) -> PurePosixPath:
        """KEY=value lines for pip, mode 600: an index's address may hold a password. Removed at the end."""
        return self.making / "env"

    @property
    def lock(self) -> PurePosixPath:
        """Locked for as long as any process of the making lives; holds the first one's process id."""
        return self.making / "lock"

    @property
    def state(self) -> PurePosixPath:
        return self.making / "state.json"

    @property
    def exit(self) -> PurePosixPath:
        return self.making / "exit.json"

    @property
    def log(self) -> PurePosixPath:
        return self.making / "log"

    @property
    def cache(self) -> PurePosixPath:
        """What pip has downloaded: a next try goes on from it. Removed once all is installed."""
        return self.making / "cache"
