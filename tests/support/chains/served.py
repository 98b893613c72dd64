"""TLS contexts of servers that present chains of certificates, and the roots that a client is given."""

import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


def pem(*certificates: bytes) -> bytes:
    return b"".join(ssl.DER_cert_to_PEM_cert(data).encode() for data in certificates)


def private_pem(private: Any) -> bytes:
    key: bytes = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key


def server_context(folder: Path, chain: Sequence[bytes], private: Any) -> ssl.SSLContext:
    """Return the context of a server with a chain and the key of its first certificate."""
    file = folder / "chain.pem"
    file.write_bytes(pem(*chain) + private_pem(private))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context
