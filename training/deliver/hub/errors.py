"""What a hub answers, as a reason, a sentence and a way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...spec.deliver import HubTarget
from ...spec.faults import Reason
from ...spec.lint import Refused
from ..ends import Failed, causes, failed, words

AGAIN = "Deliver again: what has arrived stays and is not sent twice."
REASONS = {401: Reason.CREDENTIALS, 403: Reason.PERMISSION, 507: Reason.DISK_FULL, 429: Reason.NETWORK}
MOVED = (409, 412)


@contextmanager
def heard(target: HubTarget, endpoint: str) -> Iterator[None]:
    """Raise Failed in place of whatever the hub, or the way there, answers in the block."""
    from httpx2 import HTTPError
    from huggingface_hub.errors import HfHubHTTPError

    try:
        yield
    except Refused:  # ours, and a ValueError
        raise
    except (HTTPError, RuntimeError, ValueError) as error:
        found = next((e for e in causes(error) if isinstance(e, HTTPError)), error)
        if isinstance(found, HfHubHTTPError):
            raise _of_answer(target, endpoint, found) from None
        if isinstance(found, HTTPError):
            why = f"{endpoint} can't be reached: {words(found)}"
            raise failed(Reason.NETWORK, "target.endpoint", why, AGAIN) from None
        raise failed(Reason.DESTINATION, "target", f"{endpoint}: {words(error)}", "See its words.") from None


def _of_answer(target: HubTarget, endpoint: str, error: Exception) -> Failed:
    status = int(getattr(getattr(error, "response", None), "status_code", 0))
    reason = REASONS.get(status) or (Reason.NETWORK if status >= 500 else Reason.DESTINATION)
    if reason == Reason.CREDENTIALS:
        return failed(reason, "HF_TOKEN", f"{endpoint} does not take this token", "Set a token of that hub anew.")
    if reason == Reason.PERMISSION:
        why = f"{endpoint} does not allow this token to write to {target.repo}: {words(error)}"
        return failed(reason, "target.repo", why, "Give the token write access there.")
    if status in MOVED:
        why = f"somebody else committed to {target.place} meanwhile"
        return failed(reason, "target.repo", why, AGAIN)
    return failed(
        reason,
        "target",
        f"{endpoint} answered: {words(error)}",
        AGAIN if reason == Reason.NETWORK else "See its words.",
    )
