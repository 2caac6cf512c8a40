"""PURE: the mail server, as SHARDBOARD_EMAIL_URL names it."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


@dataclass(frozen=True)
class Mail:
    """`host` is empty where there is none. `tls`: by STARTTLS; `ssl`: from the first byte on."""

    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    tls: bool = False
    ssl: bool = False


def parse(url: str) -> Mail:
    """Return the server of scheme://user:password@host:port; one without a host where it is empty or malformed."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return Mail()
    if parts.scheme not in PORTS or not parts.hostname or port == 0 or parts.path.strip("/") or parts.query:
        return Mail()
    return Mail(
        parts.hostname,
        port or PORTS[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        tls=parts.scheme == "smtp+starttls",
        ssl=parts.scheme == "smtps",
    )
