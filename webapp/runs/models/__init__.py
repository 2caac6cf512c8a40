from .attempt import Attempt
from .checkpoint import Checkpoint, CheckpointPart
from .checkpoint_copy import CheckpointCopy
from .event import Event
from .export import Export
from .idempotency import IdempotencyKey
from .model_source import ModelSource
from .nodejob import NodeJob
from .packed import Chunk, SampleBlock
from .pause import Pause
from .placement import Placement
from .run import Run
from .series import Series
from .sketch import Sketch
from .stream import Stream
from .tag import Tag
from .transition import Transition

__all__ = [
    "Attempt",
    "Checkpoint",
    "CheckpointCopy",
    "CheckpointPart",
    "Chunk",
    "Event",
    "Export",
    "IdempotencyKey",
    "ModelSource",
    "NodeJob",
    "Pause",
    "Placement",
    "Run",
    "SampleBlock",
    "Series",
    "Sketch",
    "Stream",
    "Tag",
    "Transition",
]
