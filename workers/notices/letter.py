"""A message as an e-mail."""

from __future__ import annotations

import smtplib
import ssl
from typing import Any

from django.conf import settings
from django.core.mail import EmailMessage

from .webhook import NotSent


def send(address: str, body: dict[str, Any], site: str) -> None:
    """Send it; raise NotSent where the mail server does not take it."""
    if not settings.EMAIL_HOST:
        raise NotSent("no mail server is set up: see SHARDBOARD_EMAIL_URL")
    try:
        EmailMessage(subject(body), text(body, site), to=[address]).send()
    except smtplib.SMTPAuthenticationError:
        raise NotSent("the mail server does not take our log-in") from None
    except smtplib.SMTPResponseException as error:
        raise NotSent(f"the mail server answered {error.smtp_code}") from None
    except smtplib.SMTPRecipientsRefused:
        raise NotSent("the mail server does not take mail to this address") from None
    except ssl.SSLError as error:
        raise NotSent(f"no TLS with the mail server: {error.reason or type(error).__name__}") from None
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(f"no mail server: {getattr(error, 'strerror', None) or type(error).__name__}") from None
    except ValueError:  # an address that is none, a password that is not ASCII
        raise NotSent("no letter is sent so: see its address, SHARDBOARD_EMAIL_FROM and _URL") from None


def subject(body: dict[str, Any]) -> str:
    what = f"{body['label']} is over" if body["event"] == "is over" else body["label"]
    about = f"{body['name']} (run {body['run']}): " if body["run"] else ""
    return f"[Shardboard] {' '.join((about + what).split())}"


def text(body: dict[str, Any], site: str) -> str:
    over = "This is over: " if body["event"] == "is over" else ""
    since = f"Since {body['since']}." if "since" in body else ""
    advice = body.get("advice", "") if not over else ""
    parts = [f"{over}{body['text']}", since, advice, body["link"]]
    return "\n\n".join(part for part in parts if part) + f"\n\n-- \nTo get none of these: {site}/accounts/notices/\n"
