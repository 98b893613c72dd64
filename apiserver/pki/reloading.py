"""The serving certificate and the authorities of clients, which are reloaded from the files that flags name.

A file that cannot be read, or whose content is invalid, has no effect: its last valid content stays in use.
"""

import asyncio
import logging
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cryptography.x509 import load_pem_x509_certificates
from msgspec import Struct

from mockube.apimachinery.x509.pool import pool_from_pem
from mockube.component_base.clock import Clock

from .issue import Pair
from .server_context import ServerContext, server_context

if TYPE_CHECKING:
    from .portable_context import PortableContext

LOG: Final = logging.getLogger(__name__)
POLL_SECONDS: Final = 1.0
"""The interval at which the files are checked for changes; upstream is notified of them."""


class FollowedFiles:
    """The last valid content of files. Without paths, the content never changes."""

    def __init__(
        self,
        name: str,
        contents: Sequence[bytes],
        check: Callable[[Sequence[bytes]], None],
        paths: Sequence[Path] = (),
    ) -> None:
        """Begin with `contents`; `check` raises OSError or ValueError for invalid contents."""
        self.contents = contents
        self.paths = paths
        self._name = "::".join([name, *map(str, paths)])
        self._check = check
        self._problem = ""

    def refresh(self) -> bool:
        """Read the files; return whether their valid content has changed."""
        try:
            contents = [path.read_bytes() for path in self.paths]
            if not self.paths or contents == self.contents:
                self._problem = ""
                return False
            self._check(contents)
        except (OSError, ValueError) as error:
            self._report(str(error))
            return False
        self.contents, self._problem = contents, ""
        LOG.info("Loaded the new content of %s", self._name)
        return True

    def _report(self, problem: str) -> None:
        """Log a problem once, as long as it stays the same."""
        if problem != self._problem:
            LOG.error("%s was not loaded: %s", self._name, problem)
        self._problem = problem


class Handshake(Struct, frozen=True, kw_only=True):
    """The TLS settings of the server."""

    minimum_version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: Sequence[str] = ()
    """OpenSSL's names of suites for TLS 1.2; without any, OpenSSL's default."""


class CertificateFiles(Struct, frozen=True, kw_only=True):
    """The files to reload. Without paths, the content never changes."""

    pair: Sequence[Path] = ()
    client_ca: Sequence[Path] = ()
    request_headers_ca: Sequence[Path] = ()


OPENSSL_DEFAULT: Final = Handshake()
NO_FILES: Final = CertificateFiles()


class ServingCertificates:
    """The certificates for TLS handshakes of the server."""

    def __init__(
        self,
        pair: Pair,
        client_ca: bytes,
        request_headers_ca: bytes = b"",
        *,
        handshake: Handshake = OPENSSL_DEFAULT,
        files: CertificateFiles = NO_FILES,
    ) -> None:
        self._handshake = handshake
        contents = [pair.certificate, pair.key]
        self._pair = FollowedFiles("serving-cert", contents, _check_pair, files.pair)
        self._client_ca = FollowedFiles("client-ca-bundle", [client_ca], _check_authorities, files.client_ca)
        self._proxies = FollowedFiles(
            "request-header", [request_headers_ca], _check_authorities, files.request_headers_ca
        )
        self.context = self._make_context()
        """The TLS context of new connections."""
        self.on_new_certificate: list[Callable[[], None]] = []
        """Called after the serving certificate has changed."""
        self.on_change: list[Callable[[], None]] = []
        """Called after the authorities have changed."""

    @property
    def certificate(self) -> bytes:
        """The serving certificate."""
        return self._pair.contents[0]

    @property
    def client_ca(self) -> bytes:
        """The authorities that sign certificates of clients."""
        return self._client_ca.contents[0]

    @property
    def request_headers_ca(self) -> bytes:
        """The authorities that sign certificates of front proxies; b"" if there are none."""
        return self._proxies.contents[0]

    @property
    def follows_files(self) -> bool:
        return any(files.paths for files in (self._pair, self._client_ca, self._proxies))

    async def run(self, clock: Clock) -> None:
        """Reload the files after changes, until cancelled."""
        while True:
            await clock.sleep(POLL_SECONDS)
            await self.reload()

    async def reload(self) -> None:
        """Use the current content of the files for new connections, as far as it is valid."""
        is_new_pair, *are_new_authorities = await asyncio.to_thread(self._refresh)
        if is_new_pair or any(are_new_authorities):
            self.context = self._make_context()
        for notify in self.on_new_certificate if is_new_pair else ():
            notify()
        for notify in self.on_change if any(are_new_authorities) else ():
            notify()

    def _refresh(self) -> Sequence[bool]:
        return [files.refresh() for files in (self._pair, self._client_ca, self._proxies)]

    def _make_context(self) -> "ServerContext | PortableContext":
        """Return a TLS context, which requests a certificate and accepts any: the authenticators verify it."""
        context = _context_with_pair(self._pair.contents, self._handshake)
        # As upstream, with the names of both: a client may choose its certificate by them.
        authorities = _authorities("--client-ca-file", self.client_ca) + _authorities(
            "--requestheader-client-ca-file", self.request_headers_ca
        )
        if authorities:
            with _temporary_file(authorities) as path:
                context.request_client_certificates(path)
        return context


def _authorities(flag: str, text: bytes) -> bytes:
    """Return the certificates of a text without what surrounds them; raise `ssl.SSLError` if there are none."""
    pool = pool_from_pem(text)
    if text and not pool:
        raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"{flag}: the file contains no certificate")
    return "".join(ssl.DER_cert_to_PEM_cert(certificate.raw) for certificate in pool).encode()


def _check_authorities(contents: Sequence[bytes]) -> None:
    if not contents[0]:
        raise ValueError("the file is empty")
    load_pem_x509_certificates(contents[0])


def _check_pair(contents: Sequence[bytes]) -> None:
    _context_with_pair(contents)


def _context_with_pair(
    contents: Sequence[bytes], handshake: Handshake = OPENSSL_DEFAULT
) -> "ServerContext | PortableContext":
    """Return a TLS context with a certificate and its key; raise `ssl.SSLError` if they do not match."""
    certificate, key = contents
    with _temporary_file(certificate) as certificate_path, _temporary_file(key) as key_path:
        return server_context(
            certificate_path,
            key_path,
            minimum_version=handshake.minimum_version,
            ciphers=handshake.ciphers,
        )


@contextmanager
def _temporary_file(content: bytes) -> Iterator[str]:
    """Write content to a private temporary file, because OpenSSL's functions read files only."""
    descriptor, path = tempfile.mkstemp(prefix="mockube-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()
