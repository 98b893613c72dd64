"""The certificates that the machine trusts, from the files and folders in which Go looks for them."""

import os
import ssl
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from .der import CertificateError
from .pool import CertificatePool, authorities_problem, pool_from_pem

_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/tls/cacert.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""The first one that can be read is used."""
_FOLDERS: Final = ("/etc/ssl/certs", "/etc/pki/tls/certs")
"""All files of all folders are used."""


def trusted_pool(text: bytes) -> CertificatePool:
    """Return the certificates of a text, or those of the machine for b"". Raise CertificateError if there are none."""
    if not text:
        return system_roots()
    pool = pool_from_pem(text)
    if not len(pool):
        raise CertificateError(authorities_problem(text))
    return pool


@cache
def system_roots() -> CertificatePool:
    """Return the certificates that the machine trusts. They are read once."""
    return pool_from_pem(b"\n".join(_contents()))


def _contents() -> Iterator[bytes]:
    own = ssl.get_default_verify_paths().cafile  # where Go asks the system instead, as on macOS
    file = os.environ.get("SSL_CERT_FILE")
    for path in (file,) if file else (*_FILES, *((own,) if own else ())):
        if (content := _read(Path(path))) is not None:
            yield content
            break
    folders = os.environ.get("SSL_CERT_DIR")
    for folder in folders.split(":") if folders else _FOLDERS:
        for path in sorted(Path(folder).glob("*")):
            is_link_within = path.is_symlink() and not path.readlink().parent.parts
            yield b"" if is_link_within else _read(path) or b""


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
