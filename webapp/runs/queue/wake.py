"""Have those look that can start now. The others would only find that they can't: with 200 of them, for a minute."""

from __future__ import annotations

from django.db import transaction

from webapp.dispatch import advance_run

from .board import board
from .plan import Placed


def call(cluster_id: int) -> None:
    """After this transaction, send whoever the plan gives GPUs. What gets lost is no loss: each looks by itself."""
    transaction.on_commit(lambda: _call(cluster_id), robust=True)


def _call(cluster_id: int) -> None:
    for run, verdict in board(cluster_id).verdicts.items():
        if isinstance(verdict, Placed):
            advance_run(run)
