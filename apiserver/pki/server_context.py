"""The TLS context of the server: it requests a certificate of each client, and leaves its verification to the authenticators.

Python's `ssl` has no call for that: a certificate that OpenSSL does not trust ends the handshake, and the client is sent no names of
CAs. OpenSSL itself has both, so the three functions are called in the library that `ssl` uses. An interpreter whose library
exports no functions, such as one with a static OpenSSL, gets the slower context of `portable_context`.

A certificate that a connection has received proves that the client has its key, and nothing more.
"""

import _ssl
import ctypes
import ssl
import sys
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from mockube.apimachinery.x509.tls import received_chain

if TYPE_CHECKING:
    from .portable_context import PortableContext

_HTTP: Final = "http/1.1"
_CPYTHON: Final = ((3, 11), (3, 14))
"""The releases of CPython whose `ssl.SSLContext` begins with the pointer of OpenSSL's context."""
_OPTIONS: Final = (
    ssl.OP_NO_RENEGOTIATION  # a later handshake could present another certificate
    | ssl.OP_CIPHER_SERVER_PREFERENCE
    | ssl.OP_NO_COMPRESSION
    # A resumed session has the client's certificate, but not those between it and its CA.
    | ssl.OP_NO_TICKET
)
# From OpenSSL's ssl.h.
_CTRL_SET_SESSION_CACHE_MODE: Final = 44
_SESSION_CACHE_OFF: Final = 0
_VERIFY_PEER: Final = 1


@runtime_checkable
class ServerConnection(Protocol):
    """A connection of a server's context."""

    def received_chain(self) -> list[bytes]:
        """Return the certificates that the client has sent in DER, its own first. None of them is verified."""
        ...


class TlsConnection(ssl.SSLObject):
    """A connection whose client may have sent any certificate."""

    def getpeercert(self, *_arguments: Any, **_fields: Any) -> None:
        """Return None: no certificate is verified. `received_chain` returns what the client has sent."""
        return

    def received_chain(self) -> list[bytes]:
        return received_chain(self)


class ServerContext(ssl.SSLContext):
    """The context of a server's connections, with the functions of OpenSSL that `ssl` lacks."""

    sslobject_class = TlsConnection  # type: ignore[mutable-override]

    def request_client_certificates(self, authorities_file: str) -> None:
        """Request a certificate of each client, with the names of the CAs in a file, and accept any."""
        library = _library()
        assert library is not None
        self.verify_mode = ssl.CERT_OPTIONAL
        context = _address_of(self)
        names = library.SSL_load_client_CA_file(authorities_file.encode())
        if not names:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, "the file of CAs contains no certificate")
        library.SSL_CTX_set_client_CA_list(context, names)
        library.SSL_CTX_set_cert_verify_callback(context, _ACCEPT_ANY, None)

    def wrap_bio(
        self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *_arguments: Any, **_fields: Any
    ) -> ssl.SSLObject:
        """Return a server's connection between two buffers of encrypted data."""
        return super().wrap_bio(incoming, outgoing, server_side=True)

    def wrap_socket(self, *_arguments: Any, **_fields: Any) -> ssl.SSLSocket:
        """Refuse: a connection of a socket would look verified."""
        raise NotImplementedError("connections of this context are made by wrap_bio")


def server_context(
    certificate_file: str, key_file: str, *, minimum_version: ssl.TLSVersion, ciphers: Sequence[str] = ()
) -> "ServerContext | PortableContext":
    """Return a context with a certificate and its key. Raise `ssl.SSLError` if they do not match."""
    if _library() is None:
        from .portable_context import PortableContext  # noqa: PLC0415 - few interpreters need it

        return PortableContext(certificate_file, key_file, minimum_version=minimum_version, ciphers=ciphers)
    context = ServerContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate_file, key_file)
    context.minimum_version = minimum_version
    if ciphers:
        context.set_ciphers(":".join(ciphers))
    context.options |= _OPTIONS
    context.num_tickets = 0
    context.set_alpn_protocols([_HTTP])
    library = _library()
    assert library is not None
    library.SSL_CTX_ctrl(_address_of(context), _CTRL_SET_SESSION_CACHE_MODE, _SESSION_CACHE_OFF, None)
    return context


_VerifyCallback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
_ACCEPT_ANY: Final = _VerifyCallback(lambda _store, _argument: 1)
"""It is referred to for as long as the process runs: OpenSSL has its address."""


def _address_of(context: ssl.SSLContext) -> int:
    """Return the address of OpenSSL's context, the first field of the interpreter's object after its head."""
    address = ctypes.c_void_p.from_address(id(context) + object.__basicsize__).value
    assert address is not None
    return address


@cache
def _library() -> ctypes.CDLL | None:
    """Return the OpenSSL of `ssl`; None if its functions or its contexts cannot be reached."""
    is_known = _CPYTHON[0] <= sys.version_info[:2] <= _CPYTHON[1]
    file = getattr(_ssl, "__file__", None)
    if sys.implementation.name != "cpython" or not is_known or file is None:
        return None
    library = ctypes.CDLL(file)
    pointer, number = ctypes.c_void_p, ctypes.c_int
    try:
        for function, result, arguments in (
            (library.SSL_CTX_get_verify_mode, number, (pointer,)),
            (library.SSL_CTX_set_cert_verify_callback, None, (pointer, _VerifyCallback, pointer)),
            (library.SSL_load_client_CA_file, pointer, (ctypes.c_char_p,)),
            (library.SSL_CTX_set_client_CA_list, None, (pointer, pointer)),
            (library.SSL_CTX_ctrl, ctypes.c_long, (pointer, number, ctypes.c_long, pointer)),
        ):
            function.restype, function.argtypes = result, arguments
    except AttributeError:
        return None
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    probe.verify_mode = ssl.CERT_OPTIONAL
    return library if library.SSL_CTX_get_verify_mode(_address_of(probe)) == _VERIFY_PEER else None
