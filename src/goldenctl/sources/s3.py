"""Candidates from S3: ``s3://BUCKET/PREFIX`` with artifact zips or trees of golden files.

``?versionId=ID`` takes one object in that version. Zips are read by ranges: only the directory of
the zip and its golden members are transferred; an endpoint that does not answer ranges gives the whole.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import botocore.exceptions as bc
import urllib3.exceptions
from botocore.config import Config

from goldenctl.config import Settings
from goldenctl.errors import AuthError, CorruptError, NotFoundError, SourceError, UsageError
from goldenctl.model import Artifact, Fetched, Member, Run
from goldenctl.sources import FetchOptions, Source, http, restarts
from goldenctl.sources.artifact import MAX_MEMBER, RangeReader, is_golden_name, members, problem
from goldenctl.sources.parallel import fetch_all

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef

T = TypeVar("T")
_DENIED = {"AccessDenied", "403", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken"}
_GONE = {"NoSuchBucket", "NoSuchKey", "NoSuchVersion", "404", "InvalidVersionId", "InvalidBucketName"}
_ELSEWHERE = {"PermanentRedirect", "AuthorizationHeaderMalformed", "301", "IllegalLocationConstraintException"}
_TAKEN = {"PreconditionFailed", "412", "ConditionalRequestConflict", "409"}
_CHUNK = 2**20
PAGE = 1000
"""Keys per listing, the service's most."""


def client(workers: int = 32) -> S3Client:
    """A client by the usual ``AWS_*`` environment, endpoint override included."""
    config = Config(
        retries={"max_attempts": 5, "mode": "standard"},
        max_pool_connections=workers,
        connect_timeout=10,
        read_timeout=60,
        s3={"addressing_style": "path" if os.environ.get("AWS_ENDPOINT_URL_S3") else "auto"},
    )
    try:
        return boto3.Session().client("s3", config=config)
    except (bc.BotoCoreError, ValueError) as exc:
        hint = "check AWS_REGION, AWS_PROFILE and AWS_ENDPOINT_URL_S3"
        raise SourceError(f"S3 cannot be used: {exc}", hint=hint) from exc


def called(action: Callable[[], T], place: str) -> T:
    """The result of a call to S3, its errors mapped to ours.

    Raises
    ------
    AuthError, NotFoundError, SourceError
        As the service or the network says.
    """
    try:
        return action()
    except (bc.NoCredentialsError, bc.PartialCredentialsError) as exc:
        hint = "export AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        raise AuthError("no S3 credentials", place=place, hint=hint) from exc
    except bc.ClientError as exc:
        raise _refusal(str(exc.response.get("Error", {}).get("Code", "")), place) from exc
    except bc.ParamValidationError as exc:
        raise NotFoundError("is no name S3 accepts", place=place, hint="s3://BUCKET/PREFIX") from exc
    except (bc.EndpointConnectionError, bc.ConnectTimeoutError) as exc:
        raise SourceError("the S3 endpoint cannot be reached", place=place, hint="check AWS_ENDPOINT_URL_S3") from exc
    except (bc.IncompleteReadError, bc.ResponseStreamingError, urllib3.exceptions.HTTPError) as exc:
        raise http.CutError("the object was cut short", place=place, hint="try again") from exc
    except bc.BotoCoreError as exc:
        raise SourceError(f"S3: {type(exc).__name__}", place=place, hint="see `aws s3 ls`, and try again") from exc
    except OSError as exc:
        raise SourceError(f"S3: {exc.strerror or type(exc).__name__}", place=place) from exc


def _refusal(code: str, place: str) -> SourceError:
    if code in _DENIED:
        return AuthError(f"S3 refuses access ({code})", place=place, hint="check the credentials and the bucket's policy")
    if code in _GONE:
        return NotFoundError(f"not found, or no access ({code})", place=place, hint=f"aws s3 ls {place}")
    if code in _ELSEWHERE:
        return SourceError(f"the bucket is in another region ({code})", place=place, hint="export AWS_REGION=…")
    return SourceError(f"S3 answers {code}", place=place, hint="try again later")


def listing(s3: S3Client, bucket: str, prefix: str, place: str) -> Iterator[ObjectTypeDef]:
    """Objects whose keys begin with a prefix, all pages."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix, PaginationConfig={"PageSize": PAGE})
    for page in called(lambda: list(pages), place):
        yield from page.get("Contents", [])


def split(ref: str) -> tuple[str, str, str]:
    """Bucket, key or prefix, and version id (empty for the newest) of an ``s3://`` reference.

    Raises
    ------
    UsageError
        There is no bucket.
    """
    parts = urlsplit(ref)
    if parts.scheme != "s3" or not parts.netloc:
        raise UsageError(f"{ref} names no bucket", hint="s3://BUCKET/PREFIX")
    return parts.netloc, unquote(parts.path.lstrip("/")), parse_qs(parts.query).get("versionId", [""])[0]


def open(ref: str, settings: Settings, options: FetchOptions) -> Source:
    """The source of a prefix or object."""
    return S3Source(ref, client(options.workers), options)


class S3Source:
    """One prefix, or one object, of a bucket."""

    def __init__(self, ref: str, s3: S3Client, options: FetchOptions) -> None:
        self._ref = ref
        self._s3 = s3
        self._options = options
        self._bucket, self._prefix, self._version = split(ref)

    def describe(self) -> Run:
        """Every zip and golden file under the prefix is an artifact, all pages.

        Raises
        ------
        NotFoundError
            Nothing is there.
        """
        listed = [self._one_version()] if self._version else list(self._listed())
        loose = restarts.choose({a.id: None for a in listed if is_golden_name(a.id)}).taken
        artifacts = tuple(a for a in listed if a.id in loose or a.id.endswith(".zip"))
        if not artifacts:
            raise NotFoundError("no golden files and no artifact zips there", place=self._ref, hint=f"aws s3 ls {self._ref}")
        return Run(self._ref, "s3", f"{self._bucket}/{self._prefix}", repository=self._bucket, artifacts=artifacts)

    def _one_version(self) -> Artifact:
        head = called(lambda: self._s3.head_object(**self._object(self._prefix)), self._ref)
        return Artifact(self._prefix, self._prefix, head["ContentLength"], created_at=head["LastModified"])

    def _listed(self) -> Iterator[Artifact]:
        for item in listing(self._s3, self._bucket, self._prefix, self._ref):
            if self._within(item["Key"]):
                yield Artifact(item["Key"], item["Key"], item["Size"], created_at=item["LastModified"])

    def _within(self, key: str) -> bool:
        """Whether the prefix ends at a folder of the key: ``runs/1`` is not the prefix of ``runs/12/…``."""
        rest = key[len(self._prefix) :]
        return not self._prefix or self._prefix.endswith("/") or not rest or rest.startswith("/")

    def _object(self, key: str) -> dict[str, Any]:
        base = {"Bucket": self._bucket, "Key": key}
        return base | ({"VersionId": self._version} if self._version else {})

    def fetch(self, artifacts: Sequence[Artifact]) -> Iterator[Fetched]:
        """Fetch side by side; a problem of one object never stops the others."""
        return fetch_all(self._fetch, artifacts, self._options)

    def _fetch(self, artifact: Artifact) -> Fetched:
        try:
            return self._zip(artifact) if artifact.id.endswith(".zip") else self._loose(artifact)
        except SourceError as exc:
            return Fetched(artifact, problems=(problem(artifact.name, exc),))

    def _loose(self, artifact: Artifact) -> Fetched:
        if artifact.size > MAX_MEMBER:
            raise CorruptError(f"has {artifact.size} bytes, more than {MAX_MEMBER}")
        content = self._get(artifact.id)[1]
        return Fetched(artifact, (Member(artifact.id, content, restarts.replicate_of(artifact.id)),), (), len(content))

    def _zip(self, artifact: Artifact) -> Fetched:
        reader = RangeReader(lambda start, end: self._range(artifact.id, start, end), artifact.size)
        try:
            found, problems = members(reader, subject=artifact.name)
        except _NoRangesError:
            return self._whole(artifact)
        return Fetched(artifact, found, problems, reader.bytes_transferred)

    def _range(self, key: str, start: int, end: int) -> bytes:
        """Bytes ``start`` up to and without ``end``."""
        partial, content = self._get(key, f"bytes={start}-{end - 1}", most=end - start)
        if not partial:
            raise _NoRangesError
        return content

    def _get(self, key: str, asked: str = "", most: int = MAX_MEMBER) -> tuple[bool, bytes]:
        """Whether a range came, and at most so many bytes of what came."""
        wanted = self._object(key) | ({"Range": asked} if asked else {})

        def get() -> tuple[bool, bytes]:
            answer = self._s3.get_object(**wanted)
            with answer["Body"] as body:
                return "ContentRange" in answer, body.read(most) if asked and "ContentRange" not in answer else body.read()

        return self._tried(get, f"s3://{self._bucket}/{key}")

    @staticmethod
    def _tried(action: Callable[[], T], place: str) -> T:
        """The result of a transfer, tried again when it is cut: the client does so only before the body."""
        for attempt in http.tries(http.CutError):
            with attempt:
                return called(action, place)
        raise AssertionError("unreachable: the last try returns or raises")

    def _whole(self, artifact: Artifact) -> Fetched:
        with tempfile.TemporaryFile(prefix="goldenctl-") as stream:

            def store() -> None:
                stream.seek(0)
                stream.truncate()
                for piece in self._s3.get_object(**self._object(artifact.id))["Body"].iter_chunks(_CHUNK):
                    stream.write(piece)

            self._tried(store, f"s3://{self._bucket}/{artifact.id}")
            size = stream.tell()
            found, problems = members(stream, subject=artifact.name)
        return Fetched(artifact, found, problems, size)


class BucketStore:
    """Objects of a bucket below a prefix, written by conditional puts (``If-None-Match: *``)."""

    def __init__(self, s3: S3Client, bucket: str, prefix: str) -> None:
        self._s3 = s3
        self._bucket = bucket
        self._prefix = prefix.rstrip("/") + "/" if prefix else ""

    def _place(self, key: str) -> str:
        return f"s3://{self._bucket}/{self._prefix}{key}"

    def put_once(self, key: str, content: bytes) -> bool:
        """Store an object unless its key exists; of several writers at once one stores it."""
        try:
            called(lambda: self._put(key, content), self._place(key))
        except _ExistsError:
            return False
        return True

    def _put(self, key: str, content: bytes) -> None:
        try:
            self._s3.put_object(Bucket=self._bucket, Key=self._prefix + key, Body=content, IfNoneMatch="*")
        except bc.ClientError as exc:
            if exc.response.get("Error", {}).get("Code") in _TAKEN:
                raise _ExistsError from exc
            raise

    def get(self, key: str) -> bytes:
        """The object's bytes."""
        found = called(lambda: self._s3.get_object(Bucket=self._bucket, Key=self._prefix + key), self._place(key))
        return called(found["Body"].read, self._place(key))

    def names(self, prefix: str) -> Iterator[str]:
        """Keys below the store's prefix, all pages."""
        for item in listing(self._s3, self._bucket, self._prefix + prefix, self._place(prefix)):
            yield item["Key"].removeprefix(self._prefix)


class _ExistsError(Exception):
    """The key is taken; never leaves this module."""


class _NoRangesError(Exception):
    """The endpoint sends whole objects only; never leaves this module."""
