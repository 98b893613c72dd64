"""A kubeconfig for an administrator or a component: the server's address, its CA, and the client's credentials."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

from .outgoing import KubeconfigEndpoint, Tls
from .pki.issue import Pair
from .pki.private import write_private

NAME = "mockube"
"""The name of the cluster and of the context."""
USER = "kubernetes-admin"


class OtherKubeconfig(Exception):
    """The existing file is not a kubeconfig of mockube, so it is not overwritten."""


def write(  # noqa: PLR0913 - the parts of a kubeconfig
    path: Path,
    *,
    server: str,
    ca: bytes,
    client: Pair,
    token: str = "",
    user: str = USER,
    server_name: str = "",
) -> None:
    """Write a kubeconfig that only its owner can read. `server_name` is that of the certificate if it is not the host.

    Raise `OtherKubeconfig` rather than replace a file that `write` did not create.
    """
    if path.exists() and not _is_mockube_kubeconfig(path.read_bytes()):
        raise OtherKubeconfig(
            f"{path} was not created by mockube and is not overwritten: pass another path to "
            "--write-kubeconfig or --write-manager-kubeconfig"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = document(server=server, ca=ca, client=client, token=token, user=user, server_name=server_name)
    write_private(path, yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False).encode())


def document(
    *, server: str, ca: bytes, client: Pair, token: str, user: str = USER, server_name: str = ""
) -> Mapping[str, Any]:
    credentials = {
        "client-certificate-data": _encode(client.certificate),
        "client-key-data": _encode(client.key),
        **({"token": token} if token else {}),
    }
    cluster = {
        "server": server,
        "certificate-authority-data": _encode(ca),
        **({"tls-server-name": server_name} if server_name else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user}}],
        "current-context": NAME,
    }


def _is_mockube_kubeconfig(text: bytes) -> bool:
    """Return whether the text is a kubeconfig with the cluster of mockube alone, or an empty one."""
    try:
        tree = load(text).tree
    except YamlError:
        return False
    match tree:
        case None:
            return True
        case {"clusters": [{"name": name}]}:
            return bool(name == NAME)
        case _:
            return False


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


class BadKubeconfig(ValueError):
    """A kubeconfig is invalid; the message contains the reason."""


def read_endpoint(path: Path) -> KubeconfigEndpoint:
    """Return the address and the credentials in a webhook's kubeconfig, or raise BadKubeconfig."""
    try:
        tree = load(path.read_bytes()).tree
    except (OSError, YamlError) as error:
        raise BadKubeconfig(f"{path}: {error}") from error
    if not isinstance(tree, dict):
        raise BadKubeconfig(f"{path}: invalid configuration: no configuration has been provided")
    context = _section(path, tree, "contexts", tree.get("current-context") or "", "context")
    cluster = _section(path, tree, "clusters", context.get("cluster") or "", "cluster")
    user = _section(path, tree, "users", context["user"], "user") if context.get("user") else {}
    if not cluster.get("server"):
        raise BadKubeconfig(f"{path}: invalid configuration: no server found for cluster")
    refused = sorted(user.keys() & {"exec", "auth-provider", "as", "as-groups", "as-uid"})
    if refused:
        raise BadKubeconfig(f"{path}: users[].user.{refused[0]} is not supported")
    return KubeconfigEndpoint(
        url=cluster["server"],
        tls=Tls(
            authority=_bytes_of(path, cluster, "certificate-authority"),
            certificate=_bytes_of(path, user, "client-certificate"),
            key=_bytes_of(path, user, "client-key"),
            server_name=cluster.get("tls-server-name") or "",
            insecure=bool(cluster.get("insecure-skip-tls-verify")),
        ),
        headers=_authorization(path, user),
        proxy=cluster.get("proxy-url") or "",
    )


def _section(path: Path, tree: Mapping[str, Any], part: str, name: str, field: str) -> Mapping[str, Any]:
    for entry in tree.get(part) or ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(field) or {}, dict):
            return entry.get(field) or {}
    raise BadKubeconfig(f"{path}: invalid configuration: {field} {name!r} does not exist")


def _bytes_of(path: Path, tree: Mapping[str, Any], name: str) -> bytes:
    """Return inline data, or the content of the named file, relative to the kubeconfig."""
    try:
        if tree.get(f"{name}-data"):
            return base64.b64decode(tree[f"{name}-data"])
        return (path.parent / tree[name]).read_bytes() if tree.get(name) else b""
    except (OSError, ValueError, TypeError) as error:
        raise BadKubeconfig(f"{path}: unable to read {name}: {error}") from error


def _authorization(path: Path, user: Mapping[str, Any]) -> Mapping[str, str]:
    token = user.get("token") or _bytes_of(path, {"token": user.get("tokenFile")}, "token").decode().strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        pair = f"{user['username']}:{user.get('password') or ''}"
        return {"Authorization": f"Basic {_encode(pair.encode())}"}
    return {}
