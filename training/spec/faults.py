"""Why a job ended: one vocabulary for nodes, rows and pages."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    """The end of a job. Values are stored and shown; never rename one."""

    COMPLETED = "completed"
    STOPPED = "stopped"  # asked for by a person, state saved
    STOPPED_UNSAVED = "stopped_unsaved"  # asked for, but ended before a save
    TIME_LIMIT = "time_limit"  # limits.hours, state saved
    NON_FINITE = "non_finite"
    OUT_OF_GPU_MEMORY = "out_of_gpu_memory"
    KILLED_BY_HOST = "killed_by_host"  # signal 9 that we did not send
    DISK_FULL = "disk_full"
    DATA = "data"
    CHECKPOINT = "checkpoint"  # damaged, incomplete, or of another run
    CONFIGURATION = "configuration"
    RANK_FAILED = "rank_failed"
    PEER_ENDED = "peer_ended"  # ended because another node of the group ended
    NODE_UNREACHABLE = "node_unreachable"
    HOST_KEY_CHANGED = "host_key_changed"
    PREFLIGHT = "preflight"
    LAUNCH = "launch"
    PROOF = "proof"  # an export that did not load or compare
    SUPERVISOR_LOST = "supervisor_lost"  # no exit file and no process
    COLLECTIVE_TIMEOUT = "collective_timeout"  # torch's own limit: some rank did not come
    ASSERTION = "assertion"
    NODE_LOST = "node_lost"  # the host itself went: started anew, or silent and unreachable for limits.lost_seconds
    LINK_LOST = "link_lost"  # ranks lost each other while every node's supervisor lived
    HANG = "hang"  # no progress for limits.hang_seconds, and no end of it for limits.hang_end_seconds
    # of a delivery
    CREDENTIALS = "credentials"  # not known to the destination, or none were given
    PERMISSION = "permission"  # known, and not allowed to; of an export: the system does not let it write there
    DESTINATION = "destination"  # not there, holding something else, or answering what it should not
    NETWORK = "network"  # the destination could not be reached, or did not go on answering

    @property
    def good(self) -> bool:
        """Whether what was asked for was done, and its state saved."""
        return self in (Reason.COMPLETED, Reason.STOPPED, Reason.TIME_LIMIT)


SENTENCES = {
    Reason.COMPLETED: "finished",
    Reason.STOPPED: "stopped on request, state saved",
    Reason.STOPPED_UNSAVED: "stopped on request, the step in hand not saved",
    Reason.TIME_LIMIT: "the hours given to it are over, state saved",
    Reason.NON_FINITE: "the loss was not a finite number for too many steps",
    Reason.OUT_OF_GPU_MEMORY: "a GPU ran out of memory",
    Reason.KILLED_BY_HOST: "killed by a signal that Shardboard did not send",
    Reason.DISK_FULL: "the disk is full",
    Reason.DATA: "the data could not be read",
    Reason.CHECKPOINT: "the checkpoint can not be gone on from",
    Reason.CONFIGURATION: "the recipe does not fit the model or the node",
    Reason.RANK_FAILED: "a rank failed",
    Reason.PEER_ENDED: "ended because another node ended",
    Reason.NODE_UNREACHABLE: "a node could not be reached",
    Reason.HOST_KEY_CHANGED: "a node's host key is not the pinned one",
    Reason.PREFLIGHT: "a node is not ready",
    Reason.LAUNCH: "the job could not be started",
    Reason.PROOF: "the exported model did not pass its proof",
    Reason.SUPERVISOR_LOST: "the supervisor vanished without an exit file",
    Reason.COLLECTIVE_TIMEOUT: "a collective timed out: a rank did not come to it in time",
    Reason.ASSERTION: "an assertion failed",
    Reason.NODE_LOST: "a node was lost",
    Reason.LINK_LOST: "ranks lost the connection to each other",
    Reason.HANG: "no rank made progress any more",
    Reason.CREDENTIALS: "the destination does not know these credentials",
    Reason.PERMISSION: "the destination or its disk does not allow this",
    Reason.DESTINATION: "the destination is not as it should be",
    Reason.NETWORK: "the destination could not be reached",
}

# What a node writes of a process that was killed, where its kernel tells of no lack of memory.
NOT_FOR_MEMORY = "killed, and not by the kernel for a lack of memory"

# Why another try from the newest checkpoint may go well. A reason that is not here comes from the recipe, the data or
# the set-up, and would end the next attempt the same way.
WORTH_RETRYING = {
    Reason.RANK_FAILED: "a link, a device or a library may have failed once",
    Reason.KILLED_BY_HOST: "what ended it may be gone, such as others who took the memory",
    Reason.OUT_OF_GPU_MEMORY: "a fresh process has its memory in one piece; what truly does not fit fails again soon",
    Reason.PEER_ENDED: "nothing is known against this recipe",
    Reason.NODE_UNREACHABLE: "the node or its network may come back",
    Reason.SUPERVISOR_LOST: "the node may have been started anew",
    Reason.COLLECTIVE_TIMEOUT: "a link, a device or a disk may have been slow once",
    Reason.NODE_LOST: "the node may come back, or another take its place",
    Reason.LINK_LOST: "the network may come back",
    Reason.HANG: "a link, a device or a disk may have hung once",
}

# What a node says that only met the end, or the silence, of another one: true, and not why the run ended.
SYMPTOMS = frozenset({Reason.PEER_ENDED, Reason.COLLECTIVE_TIMEOUT, Reason.LINK_LOST, Reason.HANG})
