"""Read where the server is and what to show it, from files as kubectl writes them.

What such a file may hold and this cannot do is refused by name.
"""

import base64
import binascii
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

REFUSED: Final[Mapping[str, Sequence[str]]] = {
    "cluster": ("proxy-url",),
    "user": ("exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"),
}


class KubeconfigError(Exception):
    """A file cannot be read, or says nothing that leads to a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where a server is, how it is known, and what is shown to it."""

    server: str
    """`https://host:port`, perhaps with a path."""
    authority: bytes = b""
    """Certificates that sign the server's, as PEM; the machine's own where there are none."""
    server_name: str = ""
    """Whose certificate the server shows, if not that of the host in the address."""
    insecure: bool = False
    """Take any certificate."""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """Read again and again, since what is in it ends and is replaced."""

    def anonymous(self) -> "Access":
        """The same server, shown nothing."""
        return dataclasses.replace(self, certificate=b"", key=b"", token="", token_file=None)


def read(path: Path, *, master: str = "") -> Access:
    """What the current context says; `master` replaces the server's address."""
    config = _parse(path)
    context = _named(config, "context", str(config.get("current-context") or ""))
    cluster = _named(config, "cluster", str(context.get("cluster") or ""))
    user = _named(config, "user", str(context["user"])) if context.get("user") else {}
    _refuse("cluster", cluster)
    _refuse("user", user)
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    authority = _data(cluster, "certificate-authority", path)
    if insecure and authority:
        raise KubeconfigError(
            f"{path}: insecure-skip-tls-verify and a certificate authority exclude each other"
        )
    server = master or str(cluster.get("server") or "")
    if not server:
        raise KubeconfigError(f"{path}: the cluster of the current context has no server")
    token_file = user.get("tokenFile")
    return Access(
        server=server.rstrip("/"),
        authority=authority,
        server_name=str(cluster.get("tls-server-name") or ""),
        insecure=insecure,
        certificate=_data(user, "client-certificate", path),
        key=_data(user, "client-key", path),
        token=str(user.get("token") or ""),
        token_file=path.parent / token_file if token_file else None,
    )


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        config = yaml.load(path.read_bytes(), yaml.CSafeLoader)
    except (OSError, yaml.YAMLError) as error:
        raise KubeconfigError(f"{path}: {error}") from error
    if not isinstance(config, dict):
        raise KubeconfigError(f"{path}: is no kubeconfig")
    return config


def _named(config: Mapping[str, Any], what: str, name: str) -> Mapping[str, Any]:
    """The cluster, user or context of that name."""
    for entry in config.get(f"{what}s") or ():
        if entry.get("name") == name:
            found: Mapping[str, Any] = entry.get(what) or {}
            return found
    raise KubeconfigError(f'{what} "{name}" does not exist')


def _refuse(what: str, entry: Mapping[str, Any]) -> None:
    for name in REFUSED[what]:
        if entry.get(name):
            raise KubeconfigError(f"{name} of a {what} is not supported")


def _data(entry: Mapping[str, Any], name: str, path: Path) -> bytes:
    """What stands in the file itself, or in another one that it names relative to itself."""
    try:
        if entry.get(f"{name}-data"):
            return base64.b64decode(entry[f"{name}-data"], validate=True)
        return (path.parent / entry[name]).read_bytes() if entry.get(name) else b""
    except (OSError, binascii.Error) as error:
        raise KubeconfigError(f"{path}: {name}: {error}") from error
