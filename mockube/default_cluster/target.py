"""The cluster that client libraries use by default: a kubeconfig, and the same credentials as files."""

import atexit
import os
import shutil
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final
from urllib.parse import urlsplit

import yaml
from msgspec import Struct

from mockube.client.kubeconfig import Access

_NAME: Final = "mockube"
"""The name of the cluster, the user and the context in a kubeconfig."""
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}

Address = tuple[str, int]
"""Host, in lower case, and port of a server."""


class Target(Struct, frozen=True, kw_only=True):
    """A cluster, and how to authenticate."""

    kubeconfig: Path
    url: str
    token: str = ""
    authority: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    insecure: bool = False
    server_name: str = ""


def address_of(url: str) -> Address | None:
    """Return host and port of a URL; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return (parts.hostname, port) if parts.hostname and port else None


@lru_cache(maxsize=32)
def target_of(access: Access, kubeconfig: Path | None) -> Target:
    """Return the target of an access, whose credentials are written into files that are removed with the process.

    Without the path of a kubeconfig, one is written as well.
    """
    folder = _folder_of_process()
    files = dict(
        _write_files(folder, access)
    )  # a client may outlive the block, and reads them when it connects
    token = access.token or (access.token_file.read_text().strip() if access.token_file else "")
    if kubeconfig is None:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(yaml.safe_dump(_kubeconfig(access, files, token)))
    return Target(
        kubeconfig=kubeconfig.absolute(),
        url=access.server,
        token=token,
        insecure=access.insecure,
        server_name=access.server_name,
        **files,
    )


def _folder_of_process() -> Path:
    folder, owner = Path(mkdtemp(prefix="mockube-")), os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _write_files(folder: Path, access: Access) -> Iterator[tuple[str, Path]]:
    for name, data in (
        ("authority", access.authority),
        ("certificate", access.certificate),
        ("key", access.key),
    ):
        if data:
            path = folder / f"{name}.pem"
            path.touch(mode=0o600)
            path.write_bytes(data)
            yield name, path


def _kubeconfig(access: Access, files: Mapping[str, Path], token: str) -> Mapping[str, Any]:
    cluster = {
        "server": access.server,
        "certificate-authority": str(files.get("authority", "")),
        "insecure-skip-tls-verify": access.insecure,
        "tls-server-name": access.server_name,
    }
    user = {
        "client-certificate": str(files.get("certificate", "")),
        "client-key": str(files.get("key", "")),
        "token": token,
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": _without_empty(cluster)}],
        "users": [{"name": _NAME, "user": _without_empty(user)}],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }


def _without_empty(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
