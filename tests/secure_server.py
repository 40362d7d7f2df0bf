"""A server that speaks https with a certificate that nobody signed."""

from __future__ import annotations

import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_httpserver import HTTPServer

_REQUEST = (
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "1",
    "-subj",
    "/CN=localhost",
)


@contextmanager
def secure_server(folder: Path) -> Iterator[HTTPServer]:
    key, certificate = folder / "key.pem", folder / "cert.pem"
    subprocess.run([*_REQUEST, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HTTPServer(ssl_context=context)
    server.start()
    try:
        yield server
    finally:
        server.stop()
