"""Read where the server is and what to show it, from files as kubectl writes them.

What such a file may hold and this cannot do is refused by name.

How the API server is reached: from the settings to an `Access`, and to a limit of requests.
"""

import base64
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.controller_manager.client.flowcontrol import Rate
from mockube.controller_manager.config.settings import Server

REFUSED: Final[Mapping[str, Sequence[str]]] = {
    "cluster": ("proxy-url",),
    "user": ("exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"),
}


class KubeconfigError(Exception):
    """A file cannot be read, or names no server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Where a server is, how it is known, and what is shown to it."""

    server: str
    """`https://host:port`, perhaps with a path."""
    authority: bytes = b""
    """Certificates that sign the server's, as PEM; the machine's own where there are none."""
    server_name: str = ""
    """The name in the server's certificate, if it is not the host of the address."""
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
    """Return the current context's server and user; `master` replaces the server's address."""
    config = _parse(path)
    context = _find_entry(config, "context", _text(config, "current-context"))
    cluster = _find_entry(config, "cluster", _text(context, "cluster"))
    user = _find_entry(config, "user", _text(context, "user")) if context.get("user") else {}
    _refuse("cluster", cluster)
    _refuse("user", user)
    insecure = bool(cluster.get("insecure-skip-tls-verify"))
    authority = _data(cluster, "certificate-authority", path)
    if insecure and authority:
        raise KubeconfigError(
            f"{path}: insecure-skip-tls-verify and a certificate authority exclude each other"
        )
    server = master or _text(cluster, "server")
    if not server:
        raise KubeconfigError(f"{path}: the cluster of the current context has no server")
    token_file = _text(user, "tokenFile")
    return Access(
        server=server.rstrip("/"),
        authority=authority,
        server_name=_text(cluster, "tls-server-name"),
        insecure=insecure,
        certificate=_data(user, "client-certificate", path),
        key=_data(user, "client-key", path),
        token=_text(user, "token"),
        token_file=path.parent / token_file if token_file else None,
    )


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        config = load(path.read_bytes()).tree
    except (OSError, YamlError) as error:
        raise KubeconfigError(f"{path}: {error}") from error
    if not isinstance(config, dict):
        raise KubeconfigError(f"{path}: is not a kubeconfig")
    return config


def _find_entry(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    """The cluster, user or context of that name."""
    entries = config.get(f"{kind}s") or []
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise KubeconfigError(f"{kind}s must be a list of objects")
    for entry in entries:
        if entry.get("name") == name:
            value = entry.get(kind) or {}
            if not isinstance(value, dict):
                raise KubeconfigError(f'{kind} "{name}" must be an object')
            return value
    raise KubeconfigError(f'{kind} "{name}" does not exist')


def _text(entry: Mapping[str, Any], name: str) -> str:
    """A field's text; "" where there is none."""
    value = entry.get(name)
    if not isinstance(value, str | None):
        raise KubeconfigError(f"{name} must be a string")
    return value or ""


def _refuse(kind: str, entry: Mapping[str, Any]) -> None:
    for name in REFUSED[kind]:
        if entry.get(name):
            raise KubeconfigError(f"{name} of a {kind} is not supported")


def _data(entry: Mapping[str, Any], name: str, path: Path) -> bytes:
    """Return inline data, or the content of a file that is named relative to the kubeconfig."""
    data, file = _text(entry, f"{name}-data"), _text(entry, name)
    try:
        if data:
            return base64.b64decode(data, validate=True)
        return (path.parent / file).read_bytes() if file else b""
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"{path}: {name}: {error}") from error


UPSTREAM = Rate(qps=20.0, burst=30)
"""For a server elsewhere, which others share. One on this machine is there for us."""


def access_of(server: Server) -> Access:
    if server.kubeconfig is None:
        return Access(server=server.master)
    return read(server.kubeconfig, master=server.master)


def rate_of(server: Server, access: Access) -> Rate | None:
    if server.kube_api_qps is None and server.kube_api_burst is None and _is_here(access.server):
        return None
    return Rate(
        qps=UPSTREAM.qps if server.kube_api_qps is None else server.kube_api_qps,
        burst=UPSTREAM.burst if server.kube_api_burst is None else server.kube_api_burst,
    )


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
