"""Which environment variables of the node hold the secrets of a kind of destination."""

from __future__ import annotations

from collections.abc import Mapping

from ..lint import Problem

# kind of target: (variables that it needs, variables that it also reads)
SECRETS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "path": ((), ()),
    "s3": (("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), ("AWS_SESSION_TOKEN",)),
    "hub": (("HF_TOKEN",), ()),
}
WORDS_OF_SECRETS = ("secret", "token", "password", "access_key", "credential")


def missing_secrets(kind: str, env: Mapping[str, str]) -> list[Problem]:
    """Return a problem for each environment variable that a target of this kind needs and `env` lacks."""
    return [
        Problem(name, "this environment variable is not set", "Set it where the delivery runs; never in the job file.")
        for name in SECRETS[kind][0]
        if not env.get(name)
    ]
