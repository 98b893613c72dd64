"""Files that only their owner can read: keys, and kubeconfigs of the administrator."""

import os
import ssl
from pathlib import Path
from tempfile import TemporaryDirectory, mkstemp


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600 atomically: a reader gets the complete old content or the complete new content.

    The name of the temporary file is unpredictable, because other users may be able to write to the folder.
    """
    descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def load_client_certificate(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a client certificate into a context. OpenSSL reads it from files only, so private files exist for a moment."""
    with TemporaryDirectory() as folder:
        certificate_file, key_file = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        certificate_file.write_bytes(certificate)
        key_file.write_bytes(key)
        context.load_cert_chain(certificate_file, key_file)
