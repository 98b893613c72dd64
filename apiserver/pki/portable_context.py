"""A TLS context of pyOpenSSL, for interpreters whose own OpenSSL cannot be called: see `server_context`.

asyncio and uvloop see an `ssl.SSLContext` whose `wrap_bio` returns what they expect of an `ssl.SSLObject`. Each request costs 30
microseconds more than with `ssl`.

A certificate that a connection has received proves that the client has its key, and nothing more.
"""

import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

RECORD_BYTES: Final = 16 * 1024
"""The most data of one TLS record."""
_RECORD_OVERHEAD: Final = 64
"""More bytes than a record has besides its data."""
_HTTP: Final = b"http/1.1"
_OPTIONS: Final = (
    SSL.OP_NO_RENEGOTIATION  # a later handshake could present another certificate
    | SSL.OP_CIPHER_SERVER_PREFERENCE
    | SSL.OP_NO_COMPRESSION
    # A resumed session has the client's certificate, but not those between it and its CA.
    | SSL.OP_NO_TICKET
)


def _accept_any(_connection: object, _certificate: object, _error: int, _depth: int, _is_valid: int) -> bool:
    return True


def _select_protocol(_connection: object, protocols: Sequence[bytes]) -> Any:
    return _HTTP if _HTTP in protocols else SSL.NO_OVERLAPPING_PROTOCOLS


class PortableContext(ssl.SSLContext):
    """The context of a server's connections. What `ssl.SSLContext` itself has, has no effect."""

    def __new__(cls, *_arguments: Any, **_fields: Any) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)

    def __init__(
        self,
        certificate_file: str,
        key_file: str,
        *,
        minimum_version: ssl.TLSVersion,
        ciphers: Sequence[str] = (),
    ) -> None:
        """Raise `ssl.SSLError` if the certificate and the key do not match."""
        self._tls = SSL.Context(SSL.TLS_SERVER_METHOD)
        with _as_ssl_error():
            self._tls.use_certificate_chain_file(certificate_file)
            self._tls.use_privatekey_file(key_file)
            self._tls.check_privatekey()
        self._tls.set_min_proto_version(minimum_version)
        if ciphers:
            self._tls.set_cipher_list(":".join(ciphers).encode())
        self._tls.set_options(_OPTIONS)
        self._tls.set_session_cache_mode(SSL.SESS_CACHE_OFF)
        self._tls.set_mode(SSL.MODE_RELEASE_BUFFERS)
        self._tls.set_alpn_select_callback(_select_protocol)

    def request_client_certificates(self, authorities_file: str) -> None:
        """Request a certificate of each client, with the names of the CAs in a file."""
        with _as_ssl_error():
            self._tls.load_client_ca(authorities_file.encode())
        self._tls.set_verify(SSL.VERIFY_PEER, _accept_any)

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *_arguments: Any, **_fields: Any
    ) -> Any:
        """Return a connection between two buffers of encrypted data."""
        return PortableConnection(self._tls, incoming, outgoing)

    def wrap_socket(self, *_arguments: Any, **_fields: Any) -> ssl.SSLSocket:
        """Refuse: a connection of a socket would have none of the settings."""
        raise NotImplementedError("connections of this context are made by wrap_bio")


class PortableConnection:
    """One connection, with the methods of `ssl.SSLObject` that asyncio and uvloop call."""

    def __init__(self, context: SSL.Context, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> None:
        self._connection = connection = SSL.Connection(context)
        connection.set_accept_state()
        self._take, self._put = incoming.read, outgoing.write
        self._decrypt, self._encrypt = connection.recv, connection.send
        self._feed, self._encrypted = connection.bio_write, connection.bio_read
        self._may_have_data = False
        """Whether OpenSSL may have received data that were not read."""

    def do_handshake(self) -> None:
        self._run(self._connection.do_handshake)

    def read(self, size: int = RECORD_BYTES, buffer: Any = None) -> Any:
        """Return the data of the next record, or their number if they are written to a buffer."""
        self._receive()
        try:
            if buffer is not None:
                return self._connection.recv_into(buffer, size)
            return self._decrypt(min(size, RECORD_BYTES))
        except SSL.WantReadError:
            self._may_have_data = False
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "more data are needed") from None
        except SSL.ZeroReturnError:
            return 0 if buffer is not None else b""
        except SSL.Error as error:
            self._flush()
            raise _ssl_error(error) from error

    def write(self, data: Any) -> int:
        """Encrypt all data."""
        size = len(data)
        if size <= RECORD_BYTES:
            self._write_record(data, size)
            return size
        view = memoryview(data)
        for start in range(0, size, RECORD_BYTES):
            self._write_record(view[start : start + RECORD_BYTES], RECORD_BYTES)
        return size

    def _write_record(self, data: Any, size: int) -> None:
        try:
            self._encrypt(data)
        except SSL.Error as error:
            raise _ssl_error(error) from error
        self._flush(size + _RECORD_OVERHEAD)

    def pending(self) -> int:
        """Return how many bytes can be read; 1 if that is not known before the next read."""
        return self._connection.pending() or self._may_have_data

    def unwrap(self) -> None:
        """Send close_notify, and raise SSLWantReadError until the client's has arrived."""
        self._run(lambda: self._connection.shutdown() or self._connection.shutdown())

    def cipher(self) -> tuple[str, str, int] | None:
        connection = self._connection
        name, version, bits = (
            connection.get_cipher_name(),
            connection.get_cipher_version(),
            connection.get_cipher_bits(),
        )
        return None if name is None or version is None or bits is None else (name, version, bits)

    def version(self) -> str:
        return self._connection.get_protocol_version_name()

    def selected_alpn_protocol(self) -> str | None:
        return self._connection.get_alpn_proto_negotiated().decode() or None

    @staticmethod
    def compression() -> None:
        return None

    @staticmethod
    def getpeercert(*_arguments: Any, **_fields: Any) -> None:
        """Return None: no certificate is verified. `received_chain` returns what the client has sent."""
        return

    def received_chain(self) -> list[bytes]:
        """Return the certificates that the client has sent in DER, its own first. None of them is verified."""
        own = self._connection.get_peer_certificate(as_cryptography=True)
        if own is None:
            return []
        others = self._connection.get_peer_cert_chain(as_cryptography=True) or ()
        return [certificate.public_bytes(Encoding.DER) for certificate in (own, *others)]

    def _run(self, step: Callable[[], object]) -> None:
        """Do a step that may need data of the client, and pass on what it sends."""
        self._receive()
        try:
            step()
        except SSL.WantReadError:
            raise ssl.SSLWantReadError(ssl.SSL_ERROR_WANT_READ, "more data are needed") from None
        except SSL.Error as error:
            raise _ssl_error(error) from error
        finally:
            self._flush()

    def _receive(self) -> None:
        if data := self._take():
            self._feed(data)
            self._may_have_data = True

    def _flush(self, size: int = RECORD_BYTES) -> None:
        """Pass on all encrypted data; `size` is how many there should be at most."""
        while True:
            try:
                data = self._encrypted(size)
            except SSL.WantReadError:
                return
            self._put(data)
            if len(data) < size:
                return


@contextmanager
def _as_ssl_error() -> Iterator[None]:
    try:
        yield
    except SSL.Error as error:
        raise _ssl_error(error) from error


def _ssl_error(error: SSL.Error) -> ssl.SSLError:
    reasons = (
        [str(part[-1]) for part in error.args[0]] if error.args and isinstance(error.args[0], list) else []
    )
    return ssl.SSLError(ssl.SSL_ERROR_SSL, "; ".join(reasons) or str(error))
