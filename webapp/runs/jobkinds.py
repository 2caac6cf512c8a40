"""The kinds of jobs of one node: other apps add theirs in `AppConfig.ready`, so that runs imports none of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .models import NodeJob
from .readings import Told

Check = Callable[[Told], str]
Handler = Callable[[int, Told], None]


@dataclass(frozen=True)
class JobKind:
    """`checks`: kind of line -> what is wrong with its data, empty: nothing. `handlers`: kind of line -> what it means
    for the rows of the job with this id; within the journal's transaction. `parts`: of the run's page, shown anew by
    whatever is told of such a job.
    """

    model: type[NodeJob]
    checks: Mapping[str, Check] = field(default_factory=dict)
    handlers: Mapping[str, Handler] = field(default_factory=dict)
    parts: tuple[str, ...] = ()


_kinds: dict[str, JobKind] = {}
_hooks: dict[str, list[Callable[[NodeJob], None]]] = {}


def register(kind: JobKind) -> None:
    _kinds[kind.model.KIND] = kind


def when_done(kind: str, hook: Callable[[NodeJob], None]) -> None:
    """Have `hook` called with each job of this kind that has done what it was for, in the transaction that says so."""
    _hooks.setdefault(kind, []).append(hook)


def is_done(job: NodeJob) -> None:
    for hook in _hooks.get(job.KIND, ()):
        hook(job)


def of(name: str) -> JobKind:
    """Return the kind called `name`; KeyError where no app of ours has it."""
    return _kinds[name]


def every() -> list[JobKind]:
    return list(_kinds.values())
