"""Destinations and jobs: what is refused, where, and that no secret is repeated."""

from __future__ import annotations

import json

import pytest

from training.spec.deliver import (
    DeliverJob,
    HubTarget,
    PathTarget,
    S3Target,
    missing_secrets,
    parse_job,
    parse_target,
)
from training.spec.lint import Refused

S3 = {"kind": "s3", "bucket": "models"}
HUB = {"kind": "hub", "repo": "org/name"}


def refused(data: dict[str, object]) -> str:
    with pytest.raises(Refused) as caught:
        parse_target(data)
    assert all(p.field and p.reason and p.fix for p in caught.value.problems)
    return str(caught.value)


def test_it_works() -> None:
    assert parse_target({"kind": "path", "folder": "/models/a/"}) == PathTarget(folder="/models/a")
    s3 = parse_target(S3 | {"prefix": "a/b/", "endpoint": "https://s3.example.org:9000"})
    assert isinstance(s3, S3Target)
    assert (s3.key("config.json"), s3.place) == ("a/b/config.json", "s3://models/a/b")
    hub = parse_target(HUB | {"branch": "release/1", "endpoint": "https://mirror.example.org/hub"})
    assert isinstance(hub, HubTarget)
    assert (hub.private, hub.place) == (True, "org/name@release/1")


def test_a_job_is_read_back_as_it_was_written() -> None:
    job = DeliverJob(source="/x/model", target=S3Target(bucket="models"), events="/x/events.jsonl")
    assert parse_job(job.model_dump_json()) == job
    assert not job.replace


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("models/a", "folder: it is a relative path"),
        ("", "folder: it is a relative path"),
        ("/models/../etc", "holds .."),
        ("/models/a\nb", "can't be printed"),
        ("/", "names no folder"),
        ("//host/a", "names no folder"),
        ("/models/a.delivery", "ends with .delivery"),
        ("/models/" + "ä" * 101, "longer than 200 bytes"),
    ],
)
def test_a_folder_is_refused(folder: str, said: str) -> None:
    assert said in refused({"kind": "path", "folder": folder})


@pytest.mark.parametrize(
    "bucket",
    ["ab", "a" * 64, "Models", "a_b", "-ab", "ab-", "a..b", "10.0.0.1", "xn--abc", "abc-s3alias", "s3://models", "a/b"],
)
def test_a_bucket_is_refused(bucket: str) -> None:
    assert refused(S3 | {"bucket": bucket}).startswith("bucket: ")


def test_a_bucket_with_dots_needs_the_path_style_where_a_certificate_is_checked() -> None:
    assert "certificate" in refused(S3 | {"bucket": "a.b.c"})
    assert parse_target(S3 | {"bucket": "a.b.c", "path_style": True})
    assert parse_target(S3 | {"bucket": "a.b.c", "endpoint": "http://127.0.0.1:9000"})


@pytest.mark.parametrize("prefix", ["/a", "a//b", "a/../b", "./a", "a\\b", "a\tb", "a" * 701])
def test_a_prefix_is_refused(prefix: str) -> None:
    assert refused(S3 | {"prefix": prefix}).startswith("prefix: ")


@pytest.mark.parametrize("target", [S3, HUB])
@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("https://key:hidden@s3.example.org", "credentials come from the environment"),
        ("https://hidden@s3.example.org", "credentials come from the environment"),
        ("https://s3.example.org?token=hidden", "a query or a fragment"),
        ("ftp://hidden.example.org", "no http or https URL"),
        ("s3.example.org", "no http or https URL"),
        ("https://", "no http or https URL"),
        ("https://s3.example.org:hidden", "no URL"),
        ("https://a b", "no http or https URL"),
        ("http://s3.example.org", "set insecure to true"),
        ("http://8.8.8.8", "set insecure to true"),
        ("http://169.254.169.254", "no address of a server"),
        ("https://[::ffff:169.254.169.254]", "no address of a server"),
        ("http://0.0.0.0:9000", "no address of a server"),
    ],
)
def test_an_endpoint_is_refused_without_repeating_it(target: dict[str, object], endpoint: str, said: str) -> None:
    text = refused(target | {"endpoint": endpoint})
    assert text.startswith("endpoint: ")
    assert said in text
    assert "hidden" not in text


@pytest.mark.parametrize("host", ["127.0.0.1:9000", "localhost:9000", "[::1]:9000", "10.1.2.3", "192.168.0.7:9000"])
def test_plain_http_is_for_near_hosts(host: str) -> None:
    assert parse_target(S3 | {"endpoint": f"http://{host}"})
    assert parse_target(S3 | {"endpoint": "http://s3.example.org", "insecure": True})


def test_only_a_hub_may_lie_under_a_path() -> None:
    assert "a path follows" in refused(S3 | {"endpoint": "https://example.org/s3"})


@pytest.mark.parametrize("repo", ["name", "a/b/c", "https://huggingface.co/a/b", "a/b--c", "a/..", "a/b.git", "-a/b"])
def test_a_repository_is_refused(repo: str) -> None:
    assert refused(HUB | {"repo": repo}).startswith("repo: ")


@pytest.mark.parametrize("branch", ["", "a..b", "/a", "a/", "a.lock", "a b", "-a", "a//b"])
def test_a_branch_is_refused(branch: str) -> None:
    assert refused(HUB | {"branch": branch}).startswith("branch: ")


@pytest.mark.parametrize("name", ["aws_secret_access_key", "token", "HF_TOKEN", "access_key_id"])
def test_a_secret_is_no_field_and_is_not_repeated(name: str) -> None:
    text = refused(S3 | {name: "hidden"})
    assert text.startswith(f"{name}: a secret is no field")
    assert "AWS_SECRET_ACCESS_KEY" in text
    assert "hidden" not in text


def test_unknown_kinds_and_fields_are_named() -> None:
    assert refused({"kind": "ftp"}).startswith("kind: no such kind")
    assert refused({"bucket": "models"}).startswith("kind: no such kind")
    assert refused(S3 | {"folder": "/x"}) == "folder: unknown field. Remove it."
    assert refused({"kind": "s3"}).startswith("bucket: field required")
    assert refused({"kind": "path", "folder": 3}).startswith("folder: ")


@pytest.mark.parametrize("folder", ["/x/model", "/x/model/out", "/x"])
def test_a_job_may_not_write_over_what_it_reads(folder: str) -> None:
    job = {"source": "/x/model", "target": {"kind": "path", "folder": folder}, "events": "e"}
    with pytest.raises(Refused, match=r"^target.folder: it is the export's own folder"):
        parse_job(json.dumps(job))


def test_a_jobs_problems_name_the_targets_fields() -> None:
    job = {"source": "/x/model", "target": S3 | {"endpoint": "http://s3.example.org", "region": "?"}, "events": "e"}
    with pytest.raises(Refused, match=r"^target.region: "):
        parse_job(json.dumps(job))
    job["target"] = S3 | {"endpoint": "http://s3.example.org"}
    with pytest.raises(Refused, match=r"^target.endpoint: plain http"):
        parse_job(json.dumps(job))
    with pytest.raises(Refused, match=r"^job: it is no JSON"):
        parse_job("{")


def test_the_environment_is_asked_for_what_a_target_needs() -> None:
    assert [p.field for p in missing_secrets("s3", {"AWS_ACCESS_KEY_ID": "x"})] == ["AWS_SECRET_ACCESS_KEY"]
    assert [p.field for p in missing_secrets("hub", {"HF_TOKEN": ""})] == ["HF_TOKEN"]
    assert missing_secrets("path", {}) == []
