"""A client of the storage, made of the target and the environment's credentials and of nothing else."""

from __future__ import annotations

import os
from typing import Any

from ...spec.deliver import SECRETS, S3Target
from ..ends import refuse

CONNECT_SECONDS, READ_SECONDS, TRIES = 10, 60, 5
REQUIREMENTS = "training/requirements-s3.txt"


def connect(target: S3Target) -> Any:
    """Return botocore's S3 client; raise Refused where botocore is not installed here."""
    try:
        import botocore.session
        from botocore.config import Config
    except ImportError:
        fix = f"Run: pip install -r {REQUIREMENTS}"
        raise refuse("target.kind", "the package botocore is not installed on this node", fix) from None
    (key, secret), (token,) = SECRETS["s3"]
    return _alone(botocore.session.Session()).create_client(
        "s3",
        region_name=target.region,
        endpoint_url=target.endpoint or None,
        aws_access_key_id=os.environ[key],
        aws_secret_access_key=os.environ[secret],
        aws_session_token=os.environ.get(token) or None,
        config=Config(**_settings(target)),
    )


def _alone(session: Any) -> Any:
    """A profile or a file of somebody's home would decide otherwise where exports go."""
    session.set_config_variable("config_file", os.devnull)
    session.set_config_variable("credentials_file", os.devnull)
    session.set_config_variable("profile", None)
    return session


def _settings(target: S3Target) -> dict[str, Any]:
    return {
        "signature_version": "s3v4",
        "s3": {"addressing_style": "path" if target.path_style else "virtual"},
        "connect_timeout": CONNECT_SECONDS,
        "read_timeout": READ_SECONDS,
        "retries": {"mode": "standard", "max_attempts": TRIES},
        # our own SHA-256 goes with each request: storage that is not AWS knows no other checksum by default
        "request_checksum_calculation": "when_required",
        "response_checksum_validation": "when_required",
        "ignore_configured_endpoint_urls": True,
    }
