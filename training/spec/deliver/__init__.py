"""Where an export goes, the job that brings it there, and what has then arrived. No secret is a field of these."""

from .folder import WORKING
from .job import DeliverJob, parse_job, parse_target
from .secrets import SECRETS, missing_secrets
from .targets import HUB, HubTarget, PathTarget, S3Target

__all__ = [
    "HUB",
    "SECRETS",
    "WORKING",
    "DeliverJob",
    "HubTarget",
    "PathTarget",
    "S3Target",
    "missing_secrets",
    "parse_job",
    "parse_target",
]
