"""A real HTTP server on loopback whose answers can be made to fail as networks and services do."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit


@dataclass
class Request:
    """One request as the server got it."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Message

    @property
    def token(self) -> str:
        """The token of the request, empty for none."""
        scheme, _, token = (self.headers.get("Authorization") or "").partition(" ")
        return (token if scheme else "") or self.headers.get("PRIVATE-TOKEN") or self.headers.get("JOB-TOKEN") or ""


@dataclass
class Reply:
    """One answer."""

    status: int = 200
    body: bytes | memoryview = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None
    """The connection is closed after this many bytes of the body."""
    reset: bool = False
    """The connection is reset before any answer."""
    unannounced: bool = False
    """No Content-Length: the end of the connection is the end of the body."""


@dataclass
class Fault:
    """What happens to requests whose path (with its query) a pattern finds."""

    pattern: re.Pattern[str]
    change: Callable[[Request, Reply], Reply]
    left: int | None
    """How many more requests it happens to; None for all."""


class Service:
    """One server; ``answer`` says what it replies."""

    def __init__(self, answer: Callable[[Request], Reply], *, latency: float = 0.0, tls: ssl.SSLContext | None = None) -> None:
        self._answer = answer
        self._latency = latency
        self._lock = threading.Lock()
        self.faults: list[Fault] = []
        self.requests: list[Request] = []
        self.bytes_sent = 0
        """Bytes of bodies sent so far."""
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def do_GET(self) -> None:
                service._serve(self)

            do_POST = do_PUT = do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256
            block_on_close = False

            def handle_error(self, *_: object) -> None:
                """Clients that go away are part of the tests."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._scheme = "https" if tls else "http"
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.005,), daemon=True).start()

    @property
    def port(self) -> int:
        """The port it listens on."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``, ``https`` with TLS."""
        return f"{self._scheme}://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def fault(self, pattern: str, change: Callable[[Request, Reply], Reply], times: int | None = None) -> None:
        """Let something happen to requests whose path and query the pattern finds."""
        self.faults.append(Fault(re.compile(pattern), change, times))

    def seen(self, pattern: str) -> list[Request]:
        """Requests so far whose path the pattern finds."""
        return [r for r in self.requests if re.search(pattern, r.path)]

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {k: v[-1] for k, v in parse_qs(parts.query).items()}
        request = Request(handler.command, parts.path, query, handler.headers)
        if self._latency:
            time.sleep(self._latency)
        with self._lock:
            self.requests.append(request)
            change = self._fault_of(handler.path)
        reply = self._answer(request)
        self._send(handler, change(request, reply) if change else reply)

    def _fault_of(self, path: str) -> Callable[[Request, Reply], Reply] | None:
        for fault in self.faults:
            if fault.left != 0 and fault.pattern.search(path):
                if fault.left is not None:
                    fault.left -= 1
                return fault.change
        return None

    def _send(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        if reply.reset:
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            handler.connection.close()
            handler.close_connection = True
            return
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        if reply.unannounced:
            handler.send_header("Connection", "close")
        else:
            handler.send_header("Content-Length", str(len(reply.body)))
        handler.end_headers()
        body = reply.body if reply.cut is None else reply.body[: reply.cut]
        with self._lock:
            self.bytes_sent += len(body)
        handler.wfile.write(body)
        handler.wfile.flush()
        if reply.cut is not None or reply.unannounced:
            handler.close_connection = True


Change = Callable[[Request, Reply], Reply]


def status(code: int, body: bytes = b"{}", headers: Mapping[str, str] | None = None) -> Change:
    """Another status."""
    return lambda _request, _reply: Reply(code, body, dict(headers or {}))


def cut(after: int) -> Change:
    """The connection ends in the middle of the body."""
    return lambda _, reply: Reply(reply.status, reply.body, reply.headers, cut=after)


def short(length: int) -> Change:
    """The body is shorter than the file, and nothing tells so."""
    return lambda _, reply: Reply(reply.status, reply.body[:length], reply.headers, unannounced=True)


def reset(_request: Request, _reply: Reply) -> Reply:
    """The connection is reset."""
    return Reply(reset=True)


def page(_request: Request, _reply: Reply) -> Reply:
    """A login page in the place of the answer."""
    return Reply(200, b"<!DOCTYPE html><html><body>Sign in</body></html>", {"Content-Type": "text/html"})


def ranged(raw: bytes | memoryview, header: str | None) -> Reply:
    """A file or the range of it that was asked for, as blob storage answers."""
    size = len(raw)
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", header or "")
    if match is None:
        return Reply(200, raw, {"Content-Type": "application/zip", "Accept-Ranges": "bytes"})
    start, end = int(match[1]), min(int(match[2] or size - 1), size - 1)
    if start >= size:
        return Reply(416, b"", {"Content-Range": f"bytes */{size}"})
    return Reply(206, raw[start : end + 1], {"Content-Range": f"bytes {start}-{end}/{size}", "Content-Type": "application/zip"})


def links(base: str, query: Mapping[str, str], page_number: int, pages: int) -> str:
    """A ``Link`` header for one page of a list."""
    rest = "&".join(f"{k}={v}" for k, v in query.items() if k != "page")

    def link(number: int, name: str) -> str:
        return f'<{base}?{rest}{"&" if rest else ""}page={number}>; rel="{name}"'

    out: Sequence[str] = []
    if page_number > 1:
        out = [link(page_number - 1, "prev"), link(1, "first")]
    if page_number < pages:
        out = [*out, link(page_number + 1, "next"), link(pages, "last")]
    return ", ".join(out)


FAULTS: Mapping[str, Callable[[str], Change]] = {
    "status": lambda argument: status(int(argument)),
    "limit": lambda argument: status(429, b"{}", {"Retry-After": argument}),
    "cut": lambda argument: cut(int(argument)),
    "short": lambda argument: short(int(argument)),
    "reset": lambda _: reset,
    "html": lambda _: page,
}
"""Kinds of ``--fault PATTERN=KIND[:ARGUMENT][*TIMES]`` that every double knows."""


def plant(services: Sequence[Service], text: str, kinds: Mapping[str, Callable[[str], Change]]) -> None:
    """Let happen what a ``--fault`` of the command line says."""
    pattern, _, what = text.rpartition("=")
    what, _, times = what.partition("*")
    kind, _, argument = what.partition(":")
    for service in services:
        service.fault(pattern, kinds[kind](argument), int(times) if times else None)


def serve(port: int, file: Path) -> None:
    """Say the port in a file, at once and as a whole, and serve until stopped."""
    partial = file.with_name(file.name + ".partial")
    partial.write_text(f"{port}\n")
    partial.rename(file)
    with contextlib.suppress(KeyboardInterrupt):
        threading.Event().wait()
