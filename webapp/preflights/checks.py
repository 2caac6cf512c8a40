"""The checks of a preflight, in the order in which the page shows them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """`about`: what it asks, in one sentence."""

    slug: str
    title: str
    about: str


CHECKS = (
    Check("reach", "Reachable", "Does the node let the service in, and how long does a command take, there and back?"),
    Check("clock", "Clock", "How far is its clock from the service's? Shown, never refused."),
    Check("python", "Interpreter", "Is the node's Python there, and new enough?"),
    Check("versions", "Versions", "Are the libraries there, and the same on every node?"),
    Check("gpus", "GPUs", "Are there as many as the node is to train on?"),
    Check("idle", "GPUs idle", "Who holds their memory?"),
    Check("driver", "Driver and fabric", "Is the driver the same everywhere, and does NVSwitch's service run?"),
    Check("links", "NVLink and EFA", "What connects the GPUs within the node, and the node with the others?"),
    Check("memory", "Host memory", "Is there enough for loading and training?"),
    Check("disk", "Disk", "Is there room for checkpoints?"),
    Check("scratch", "Scratch folder", "May the node's user write there?"),
    Check("storage", "Storage", "Is the scratch folder seen by the other nodes, by a token written on each?"),
    Check("model", "Model", "Is the model's folder at its path?"),
    Check("interface", "Interface", "Which network interface leads to the other nodes?"),
    Check("ports", "Ports both ways", "Can every node open a connection to every other one?"),
    Check("allreduce", "All-reduce", "Do all nodes add up one tensor together, with torch itself?"),
)
SLUGS = tuple(check.slug for check in CHECKS)
