"""Read kubeconfig files: the server's address, how to verify it, and the credentials. Also the rate limit of requests.

A file with an unsupported feature is rejected, with the name of the feature.
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

from .connection_options import ClientConnectionOptions
from .flowcontrol import Rate

UNSUPPORTED: Final[Mapping[str, Sequence[str]]] = {
    "cluster": ("proxy-url",),
    "user": ("exec", "auth-provider", "username", "password", "as", "as-uid", "as-groups", "as-user-extra"),
}
_MAX_BYTES: Final = 8 << 20
"""The maximum length of a kubeconfig: one that names a device would never end."""


class KubeconfigError(Exception):
    """A kubeconfig cannot be read, has no server, or needs an unsupported feature."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The address of a server, how to verify it, and the credentials: what client-go calls a rest.Config."""

    server: str
    """The URL of the server, such as `https://host:port`; it may have a path."""
    authority: bytes = b""
    """The CA certificates that sign the server's, as PEM; empty for those of the machine."""
    has_inline_authority: bool = False
    """Whether the kubeconfig contains the CA certificates, instead of naming a file."""
    server_name: str = ""
    """The name in the server's certificate, if it is not the host of the address."""
    insecure: bool = False
    """Whether any server certificate is accepted."""
    certificate: bytes = b""
    key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)
    token_file: Path | None = None
    """A file with a token, which is read again at intervals, because another program renews the token."""

    def anonymous(self) -> "Access":
        """Return the same server without credentials."""
        return self.with_certificate(b"", b"")

    def with_certificate(self, certificate: bytes, key: bytes) -> "Access":
        """Return the same server for the owner of another certificate."""
        return dataclasses.replace(self, certificate=certificate, key=key, token="", token_file=None)


def read(path: Path, *, master: str = "", context: str = "") -> Access:
    """Read the server and the user of a context, the current one by default; `master` overrides the server's address."""
    config = _parse(path)
    chosen_context = _find_entry(config, "context", context or _text(config, "current-context"))
    cluster = _find_entry(config, "cluster", _text(chosen_context, "cluster"))
    user = _find_entry(config, "user", _text(chosen_context, "user")) if chosen_context.get("user") else {}
    _check_supported("cluster", cluster)
    _check_supported("user", user)
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
        has_inline_authority=bool(_text(cluster, "certificate-authority-data")),
        server_name=_text(cluster, "tls-server-name"),
        insecure=insecure,
        certificate=_data(user, "client-certificate", path),
        key=_data(user, "client-key", path),
        token=_text(user, "token"),
        token_file=path.parent / token_file if token_file else None,
    )


def _parse(path: Path) -> Mapping[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise KubeconfigError(f"{path}: has more than {_MAX_BYTES} bytes, so it is not a kubeconfig")
        config = load(data).tree
    except OSError as error:
        raise KubeconfigError(f"{path}: {error.strerror}") from error
    except YamlError as error:
        raise KubeconfigError(f"{path}: {error}") from error
    if not isinstance(config, dict):
        raise KubeconfigError(f"{path}: is not a kubeconfig")
    return config


def _find_entry(config: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    """Return the cluster, user or context of this name."""
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
    """Return the text of a field; "" if it is absent."""
    value = entry.get(name)
    if not isinstance(value, str | None):
        raise KubeconfigError(f"{name} must be a string")
    return value or ""


def _check_supported(kind: str, entry: Mapping[str, Any]) -> None:
    for name in UNSUPPORTED[kind]:
        if entry.get(name):
            raise KubeconfigError(f"{name} of a {kind} is not supported")


def _data(entry: Mapping[str, Any], name: str, path: Path) -> bytes:
    """Return inline data, or the content of the file that a path relative to the kubeconfig names."""
    data, file = _text(entry, f"{name}-data"), _text(entry, name)
    try:
        if data:
            return base64.b64decode(data, validate=True)
        return (path.parent / file).read_bytes() if file else b""
    except (OSError, ValueError) as error:
        raise KubeconfigError(f"{path}: {name}: {error}") from error


DEFAULT_RATE = Rate(qps=20.0, burst=30)
"""Upstream's rate limit, for a server on another machine, which others use as well."""


def access_of(server: ClientConnectionOptions) -> Access:
    """Return the access to the server that flags name, from the kubeconfig if they name one."""
    if server.kubeconfig is None:
        return Access(server=server.master)
    return read(server.kubeconfig, master=server.master)


def rate_of(server: ClientConnectionOptions, access: Access) -> Rate | None:
    """Return the rate limit of each controller; None for a server on this machine, unless flags set a limit."""
    if server.kube_api_qps is None and server.kube_api_burst is None and _is_on_this_machine(access.server):
        return None
    return Rate(
        qps=DEFAULT_RATE.qps if server.kube_api_qps is None else server.kube_api_qps,
        burst=DEFAULT_RATE.burst if server.kube_api_burst is None else server.kube_api_burst,
    )


def _is_on_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
