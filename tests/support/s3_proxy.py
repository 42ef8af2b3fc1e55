"""A real HTTP server between a client and an S3 server that spoils the exchanges a test names."""

import http.client
import ssl
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

_HOP_BY_HOP = {"connection", "content-length", "date", "server", "transfer-encoding"}


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the client asked for; ``path`` is decoded, header names are in lower case."""

    method: str
    target: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def part(self) -> int:
        """The number of the part that is uploaded; 0 for any other request."""
        return int(self.query.get("partNumber", 0)) if self.method == "PUT" else 0

    @property
    def access_key(self) -> str:
        return self.headers["authorization"].partition("Credential=")[2].partition("/")[0]

    @property
    def region(self) -> str:
        return self.headers["authorization"].partition("Credential=")[2].split("/")[2]


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What the client gets. With ``cut_after`` the connection ends after so many body bytes.

    With ``unsized`` no length is told, and the body ends with the connection.
    """

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""
    cut_after: int | None = None
    lost: bool = False
    unsized: bool = False
    delay_s: float = 0


Change = Callable[[Reply], Reply]
Rule = Callable[[Request], Reply | Change | None]
"""A reply in place of the server's, a change to the server's own, or None: not my business."""


def s3_error(status: int, code: str, message: str = "said the test", **fields: str) -> Reply:
    """Return an error as S3 words it."""
    more = "".join(f"<{name}>{value}</{name}>" for name, value in fields.items())
    body = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}</Error>"
    return Reply(status=status, headers={"content-type": "application/xml"}, body=body.encode())


def first(count: int, rule: Rule) -> Rule:
    """Let ``rule`` act ``count`` times, on the first requests that it would act on."""
    lock = threading.Lock()
    left = [count]

    def limited(request: Request) -> Reply | Change | None:
        answer = rule(request)
        with lock:
            if answer is None or not left[0]:
                return None
            left[0] -= 1
        return answer

    return limited


class S3Proxy:
    """Passes requests to ``upstream`` unless a rule acts; ``requests`` holds all of them."""

    def __init__(self, upstream: str, url: str) -> None:
        self.url = url
        self.rules: list[Rule] = []
        self.requests: list[Request] = []
        self._upstream = urlsplit(upstream)

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        found = next((act for rule in self.rules if (act := rule(request)) is not None), None)
        if isinstance(found, Reply):
            return found
        reply = self._forwarded(request)
        return reply if found is None else found(reply)

    def seen(self, method: str, *, query: str | None = None) -> list[Request]:
        """Return the requests of a method, those with a query parameter if one is named."""
        return [
            request
            for request in self.requests
            if request.method == method and (query is None or query in request.query)
        ]

    def _forwarded(self, request: Request) -> Reply:
        assert self._upstream.hostname is not None
        connection = http.client.HTTPConnection(self._upstream.hostname, self._upstream.port)
        headers = {name: value for name, value in request.headers.items() if name != "expect"}
        headers["host"] = self._upstream.netloc
        connection.request(request.method, request.target, request.body or None, headers)
        with connection.getresponse() as response:
            kept = {
                name.lower(): value
                for name, value in response.getheaders()
                if name.lower() not in _HOP_BY_HOP
                or (request.method == "HEAD" and name.lower() == "content-length")
            }
            reply = Reply(status=response.status, headers=kept, body=response.read())
        connection.close()
        return reply


@contextmanager
def s3_proxy(upstream: str, certificate: Path | None = None) -> Iterator[S3Proxy]:
    """Run one on a free port, with TLS when ``certificate`` (and its key, in one file) is given."""
    server = _Server(("127.0.0.1", 0), _Exchange)
    scheme = "http"
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "https"
    server.proxy = S3Proxy(upstream, f"{scheme}://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server.proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    proxy: S3Proxy

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that gave up: it would stand in the output of another test."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Exchange(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def proxy(self) -> S3Proxy:
        assert isinstance(self.server, _Server)
        return self.server.proxy

    def exchange(self) -> None:
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        request = Request(
            method=self.command,
            target=target,
            path=unquote(parts.path),
            query=dict(parse_qsl(parts.query, keep_blank_values=True)),
            headers=headers,
            body=self.rfile.read(int(headers.get("content-length", 0))),
        )
        reply = self.proxy.answer(request)
        time.sleep(reply.delay_s)
        if reply.lost:
            self.close_connection = True
            return
        self.send_response_only(reply.status)
        for name, value in reply.headers.items():
            if not (reply.unsized and name == "content-length"):
                self.send_header(name, value)
        if reply.unsized:
            self.send_header("connection", "close")
        elif "content-length" not in reply.headers:
            self.send_header("content-length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body[: reply.cut_after])
        if reply.cut_after is not None or reply.unsized:
            self.wfile.flush()
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing: what was asked is in ``requests``."""


for _verb in ("GET", "PUT", "POST", "HEAD", "DELETE"):
    setattr(_Exchange, f"do_{_verb}", _Exchange.exchange)
