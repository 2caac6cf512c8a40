"""Secrets at rest: sealed with a key derived from SECRET_KEY (Fernet: AES-128-CBC with HMAC-SHA256)."""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings


class WrongKey(RuntimeError):
    """What was sealed with another SECRET_KEY can't be opened."""


def _fernet() -> Fernet:
    derived = hashlib.sha256(b"shardboard.vault:" + settings.SECRET_KEY.encode()).digest()
    return Fernet(base64.urlsafe_b64encode(derived))


def seal(text: str) -> str:
    return _fernet().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Return the text; raise WrongKey where SECRET_KEY has changed since."""
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise WrongKey(
            "sealed with another SHARDBOARD_SECRET_KEY; restore that key or enter the secret again"
        ) from None
