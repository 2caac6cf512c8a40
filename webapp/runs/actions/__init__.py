"""The only way to change a run: create, launch, stop, resume, clone, export, cancel; pin and delete checkpoints;
tag, note, archive.

Each checks everything first and raises Refused with field, reason and way out; then changes rows in one
transaction and sends a step to the workers on commit.
"""

from .begin import OURSELVES, launch, place, restart, restart_delay, resume
from .checkpoints import delete as delete_checkpoints
from .checkpoints import look as look_at_checkpoint
from .checkpoints import note as note_checkpoint
from .checkpoints import pin as pin_checkpoint
from .choice import may_resume, newest_checkpoint, torn_ones
from .end import How, stop, told
from .exports import adapter_choices, export, go_on, is_retried, plan, retry, start
from .jobs import cancel
from .labels import add_tags, archive, set_tags, unarchive, write_notes
from .many import Outcome, each
from .order import MAX_NAME, Order, check, clone, create, planned_steps, resolve, target_of
from .queue import MOVABLE, move, pause, prioritise, unpause

__all__ = [
    "MAX_NAME",
    "MOVABLE",
    "OURSELVES",
    "How",
    "Order",
    "Outcome",
    "adapter_choices",
    "add_tags",
    "archive",
    "cancel",
    "check",
    "clone",
    "create",
    "delete_checkpoints",
    "each",
    "export",
    "go_on",
    "is_retried",
    "launch",
    "look_at_checkpoint",
    "may_resume",
    "move",
    "newest_checkpoint",
    "note_checkpoint",
    "pause",
    "pin_checkpoint",
    "place",
    "plan",
    "planned_steps",
    "prioritise",
    "resolve",
    "restart",
    "restart_delay",
    "resume",
    "retry",
    "set_tags",
    "start",
    "stop",
    "target_of",
    "told",
    "torn_ones",
    "unarchive",
    "unpause",
    "write_notes",
]
