"""What a verdict says to a person, in one sentence; and what is wrong with a wish that nodes can't meet. Pure."""

from __future__ import annotations

from datetime import datetime

from training.spec.lint import Problem
from webapp.show import age, duration

from .plan import Block, Placed, Pool, Verdict, Why
from .wish import Wish


def sentence(verdict: Verdict, now: datetime) -> str:
    """Return it without a full stop at its end; a run that can start has nothing to wait for but its worker."""
    if isinstance(verdict, Placed):
        return "starts now: its nodes are free"
    if verdict.why == Why.PAUSED:
        return verdict.text
    if verdict.why == Why.RESTS and verdict.until:
        return f"rests before its restart, which begins {age(verdict.until, now)}"
    blocks = [_block(block, now) for block in verdict.blocks]
    if verdict.why == Why.NODES:
        blocks = [short(verdict.pool), *blocks]
    return f"waits for {asked(verdict.pool)}" + (f": {', '.join(blocks)}" if blocks else "")


def paused(cluster: str, by: str, at: datetime, why: str, now: datetime) -> str:
    """Return what a run says that waits for the end of a pause; `cluster` empty: of all of them."""
    return f"waits: the queue of {cluster or 'all clusters'} is paused by {by}, {age(at, now)}: {why}"


def asked(pool: Pool) -> str:
    """Return what a run asks for: '2 GPUs on 1 node', 'all GPUs of 2 nodes'."""
    seats = (*pool.seats, *pool.away, *pool.small)
    what = "GPU" if any(seat.accelerator for seat in seats) or not seats else "rank"
    nodes = f"{pool.nodes} node{'' if pool.nodes == 1 else 's'}" if pool.nodes else "the nodes"
    if pool.gpus is None:
        return f"all {what}s of {nodes}"
    return f"{pool.gpus} {what}{'' if pool.gpus == 1 else 's'} on {'each of ' if pool.nodes > 1 else ''}{nodes}"


def short(pool: Pool) -> str:
    """Return how many nodes could take it, where these are too few."""
    count = len(pool.seats)
    could = f"{count or 'no'} node{'' if count == 1 else 's'} in service could take it"
    small = ", ".join(f"{seat.name} has {seat.gpus}" for seat in pool.small)
    return f"{could} ({small})" if small else could


def _block(block: Block, now: datetime) -> str:
    if block.out:
        return f"{block.node} {block.out}"
    held = [f"held by run {holder.run} ({duration(now - holder.since)})" for holder in block.held]
    kept = [f"kept for run {', '.join(map(str, block.kept))}"] if block.kept else []
    return f"{block.node} {' and '.join(held + kept)}"


def problems(wish: Wish, pool: Pool, known: list[str]) -> list[Problem]:
    """Return what is wrong where the nodes, all of them free, would be too few. `known`: names in the cluster."""
    if missing := [name for name in wish.on_nodes if name not in known]:
        why = f"the cluster has no node {', '.join(missing)}"
        return [Problem("on_nodes", why, f"It has {', '.join(known) or 'none'}.")]
    if pool.enough:
        return []
    away = "".join(f"; {seat.name} {seat.out}" for seat in pool.away)
    if pool.small and not pool.away and wish.gpus_per_node:
        why = f"{wish.gpus_per_node} are asked for: {short(pool)}"
        return [Problem("gpus_per_node", why, "Ask for fewer GPUs, or for nodes that have them.")]
    if pool.nodes:
        why = f"{asked(pool)} are asked for: {short(pool)}{away}"
        return [Problem("nodes", why, "Ask for fewer nodes, or return some to service.")]
    field = "labels" if wish.labels else "cluster"
    that = f" with the label {', '.join(wish.labels)}" if wish.labels else ""
    return [Problem(field, f"it has no node in service{that}", "Add a node or return one to service.")]
