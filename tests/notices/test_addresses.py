"""Where a webhook may go (case S6): what an address stands for counts, whatever it looks like."""

from __future__ import annotations

import ipaddress
import socket

import pytest

from training.spec.lint import Refused
from webapp.notices.addresses import parse, refusal, resolve

PRIVATE = [
    "127.0.0.1", "10.0.0.1", "172.16.3.4", "192.168.1.1", "100.64.0.1", "::1", "fd00::1", "::ffff:127.0.0.1",
    "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "192.0.2.1", "::7f00:1", "fec0::1", "64:ff9b:1::7f00:1",
]  # fmt: skip
NEVER = ["169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fe80::1", "0.0.0.0", "::", "224.0.0.1"]
PUBLIC = ["1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"]


@pytest.mark.parametrize("address", PRIVATE)
def test_private_ones_are_for_the_operator_to_allow(address: str) -> None:
    assert refusal(ipaddress.ip_address(address), private=False)
    assert not refusal(ipaddress.ip_address(address), private=True)


@pytest.mark.parametrize("address", NEVER)
def test_some_are_never_a_server_s(address: str) -> None:
    assert refusal(ipaddress.ip_address(address), private=False)
    assert refusal(ipaddress.ip_address(address), private=True)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_are_fine(address: str) -> None:
    assert not refusal(ipaddress.ip_address(address), private=False)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]", "169.254.169.254"]
)
def test_what_a_name_leads_to_counts(host: str) -> None:
    with pytest.raises(Refused, match=r"which is (not public|no server's)"):
        resolve(parse(f"http://{host}/planted"), private=False)


def test_one_bad_address_of_several_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of a public name that has been given a private address as well."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("1.1.1.1", "10.0.0.9")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(Refused, match=r"10\.0\.0\.9"):
        resolve(parse("https://hooks.example.org"), private=False)
    assert resolve(parse("https://hooks.example.org"), private=True) == ["1.1.1.1", "10.0.0.9"]


@pytest.mark.parametrize(
    "url",
    [
        "", "hooks.example.org", "ftp://h/planted", "file:///planted", "http://", "http://h:0/planted",
        "http://h:99999/planted", "http://planted:x@h/", "http://h/pl anted", "http://h/planted\r\nX: y",
        "http://h/planted#x", "http://h\\planted", "http://hé/planted", "http://[::1/planted", "http://h/" + "x" * 2000,
    ],
)  # fmt: skip
def test_what_is_no_plain_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(url)
    assert "planted" not in str(caught.value)
    assert all(problem.field == "url" and problem.fix for problem in caught.value.problems)


def test_an_address_is_shown_without_what_may_be_a_token() -> None:
    found = parse("https://Hooks.Example.org:8443/services/T0/planted?x=1")
    assert (found.host, found.port, found.path) == ("hooks.example.org", 8443, "/services/T0/planted?x=1")
    assert found.shown == "https://hooks.example.org:8443/…"
    assert parse("http://[fd00::1]").authority == "[fd00::1]"
