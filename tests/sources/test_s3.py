"""S3 prefixes, objects and versions are runs; only what is needed of a zip is transferred."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import boto3
import botocore.exceptions as bc
import pytest

from goldenctl.errors import AuthError, NotFoundError, SourceError, UsageError
from goldenctl.sources import s3
from goldenctl.sources.s3 import called, split
from tests.doubles.server import Reply, Request, Service, ranged
from tests.sources.conftest import Taken, every
from tests.sources.zips import GB200, GOLDEN, H100, RESTART, zipped

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

Take = Callable[..., Taken]


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> tuple[S3Client, str]:
    """A client and a fresh bucket."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", endpoint)
    client = boto3.client("s3")
    name = f"b-{abs(hash(request.node.name)) % 10**9}"
    client.create_bucket(Bucket=name)
    return client, name


def put(bucket: tuple[S3Client, str], files: dict[str, bytes]) -> str:
    for key, content in files.items():
        bucket[0].put_object(Bucket=bucket[1], Key=key, Body=content)
    return f"s3://{bucket[1]}"


def test_a_prefix_gives_its_zips_and_golden_files(bucket: tuple[S3Client, str], take: Take) -> None:
    base = put(bucket, {f"runs/1/moe/tiny/{H100}": GOLDEN, "runs/1/logs-x.zip": zipped({GB200: b"{}"}), "runs/1/a.txt": b""})
    taken = take(f"{base}/runs/1")
    assert taken.contents == {f":runs/1/moe/tiny/{H100}": GOLDEN, f":{GB200}": b"{}"}
    assert (taken.run.provider, taken.run.id, taken.run.repository) == ("s3", f"{bucket[1]}/runs/1", bucket[1])


def test_a_prefix_ends_at_a_folder(bucket: tuple[S3Client, str], take: Take) -> None:
    base = put(bucket, {f"runs/1/{H100}": b"1", f"runs/12/{H100}": b"12"})
    assert take(f"{base}/runs/1").contents == take(f"{base}/runs/1/").contents == {f":runs/1/{H100}": b"1"}


def test_one_object_can_be_named(bucket: tuple[S3Client, str], take: Take) -> None:
    base = put(bucket, {"runs/a b.zip": zipped({H100: GOLDEN})})
    assert take(f"{base}/runs/a%20b.zip").contents == {f":{H100}": GOLDEN}


def test_all_pages_are_listed(bucket: tuple[S3Client, str], take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "PAGE", 3)
    base = put(bucket, {f"runs/case_{i}/{H100}": b"%d" % i for i in range(10)})
    assert len(take(f"{base}/runs").contents) == 10


def test_only_the_golden_members_of_a_zip_are_transferred(bucket: tuple[S3Client, str], take: Take) -> None:
    base = put(bucket, {"x.zip": zipped({H100: GOLDEN, "logs/0": os.urandom(1_000_000)})})
    taken = take(f"{base}/x.zip")
    assert taken.contents == {f":{H100}": GOLDEN}
    assert taken.fetched[0].bytes_transferred < 70_000


def test_a_version_can_be_asked_for(bucket: tuple[S3Client, str], take: Take) -> None:
    client, name = bucket
    client.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    old = client.put_object(Bucket=name, Key="x.zip", Body=zipped({H100: b"old"}))["VersionId"]
    put(bucket, {"x.zip": zipped({H100: b"new"})})
    assert take(f"s3://{name}/x.zip").contents == {f":{H100}": b"new"}
    assert take(f"s3://{name}/x.zip?versionId={old}").contents == {f":{H100}": b"old"}


def test_of_open_files_of_several_restarts_the_newest_is_taken(bucket: tuple[S3Client, str], take: Take) -> None:
    base = put(bucket, {f"r/{RESTART.format(0, n)}": b"%d" % n for n in (9, 10)})
    [member] = [m for f in take(f"{base}/r").fetched for m in f.members]
    assert (member.content, member.replicate) == (b"10", "iteration=0/restart=10")


def test_one_broken_zip_does_not_stop_the_others(bucket: tuple[S3Client, str], take: Take) -> None:
    base = put(bucket, {"r/a.zip": b"no zip", "r/b.zip": zipped({H100: GOLDEN})})
    taken = take(f"{base}/r")
    assert taken.contents == {f":{H100}": GOLDEN}
    assert [(p.subject, p.kind) for p in taken.problems] == [("r/a.zip", "corrupt")]


def test_an_empty_prefix_is_not_found(bucket: tuple[S3Client, str], take: Take) -> None:
    with pytest.raises(NotFoundError, match="no golden files and no artifact zips there"):
        take(f"s3://{bucket[1]}/nothing")


@pytest.mark.parametrize("ref", ["s3://no-such-bucket-here/x", "s3://B_/x"])
def test_a_bucket_that_is_not_there_is_not_found(ref: str, take: Take, bucket: tuple[S3Client, str]) -> None:
    with pytest.raises(NotFoundError):
        take(ref)


def test_a_reference_without_a_bucket_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="names no bucket"):
        split("s3:///x")


def test_no_credentials_are_said(take: Take, bucket: tuple[S3Client, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(AuthError, match="no S3 credentials") as caught:
        take(f"s3://{bucket[1]}/x")
    assert "AWS_ACCESS_KEY_ID" in caught.value.hint


def test_an_endpoint_that_is_not_there_is_said(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service(lambda _: Reply())
    service.close()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", service.url)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("time.sleep", lambda _: None)
    with pytest.raises(SourceError, match="endpoint cannot be reached"):
        take("s3://bucket/x")


def test_an_endpoint_that_is_no_address_is_said(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "nonsense")
    with pytest.raises(SourceError, match="S3 cannot be used"):
        take("s3://bucket/x")


def error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>m</Message></Error>".encode()


@pytest.mark.parametrize(
    ("status", "code", "kind", "fact"),
    [
        (403, "AccessDenied", AuthError, "S3 refuses access (AccessDenied)"),
        (403, "SignatureDoesNotMatch", AuthError, "S3 refuses access (SignatureDoesNotMatch)"),
        (400, "AuthorizationHeaderMalformed", SourceError, "the bucket is in another region (AuthorizationHeaderMalformed)"),
        (301, "PermanentRedirect", SourceError, "the bucket is in another region (PermanentRedirect)"),
        (404, "NoSuchBucket", NotFoundError, "not found, or no access (NoSuchBucket)"),
        (418, "Teapot", SourceError, "S3 answers Teapot"),
    ],
)
def test_refusals_are_told_apart(
    status: int, code: str, kind: type[SourceError], fact: str, take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = Reply(status, error(code), {"Content-Type": "application/xml"})
    service = Service(lambda request: Reply(403) if request.method == "HEAD" else there)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", service.url)
    with pytest.raises(SourceError) as caught:
        take("s3://bucket/x")
    service.close()
    assert (type(caught.value), caught.value.fact) == (kind, fact)


def one_object(raw: bytes, *, ranges: bool = True) -> Service:
    listing = (
        "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>x.zip</Key><LastModified>2026-05-01T10:00:00.000Z"
        f"</LastModified><Size>{len(raw)}</Size></Contents></ListBucketResult>"
    )

    def answer(request: Request) -> Reply:
        if request.path.endswith("x.zip"):
            reply = ranged(raw, request.headers.get("Range") if ranges else None)
            return Reply(reply.status, reply.body, reply.headers | {"Last-Modified": "Fri, 01 May 2026 10:00:00 GMT"})
        return Reply(200, listing.encode(), {"Content-Type": "application/xml"})

    return Service(answer)


def test_an_endpoint_without_ranges_gives_the_same(take: Take, monkeypatch: pytest.MonkeyPatch) -> None:
    service = one_object(zipped({H100: GOLDEN, "logs": os.urandom(200_000)}), ranges=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", service.url)
    assert take("s3://bucket/x.zip").contents == {f":{H100}": GOLDEN}
    service.close()


@pytest.mark.parametrize(("times", "kinds"), [(2, []), (None, ["corrupt"])])
def test_a_cut_object_is_fetched_again(
    times: int | None, kinds: list[str], take: Take, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = one_object(zipped({H100: GOLDEN, "logs": os.urandom(200_000)}))
    service.fault("x.zip$", lambda _, reply: Reply(reply.status, reply.body, reply.headers, cut=50), times)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", service.url)
    assert take("s3://bucket/x.zip").kinds == kinds
    service.close()


@pytest.mark.parametrize("kind", [*every(bc.BotoCoreError), OSError, ConnectionResetError], ids=lambda k: k.__name__)
def test_every_error_of_botocore_is_mapped(kind: type[Exception]) -> None:
    def fail() -> None:
        raise kind.__new__(kind)

    with pytest.raises(SourceError):
        called(fail, "s3://b/k")


def test_a_json_object_too_large_is_refused(take: Take, bucket: tuple[S3Client, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(s3, "MAX_MEMBER", 10)
    taken = take(put(bucket, {H100: GOLDEN}))
    assert [(p.kind, p.message) for p in taken.problems] == [("corrupt", "has 88 bytes, more than 10")]
