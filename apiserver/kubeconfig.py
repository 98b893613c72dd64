"""A kubeconfig for an administrator or a component: where the server is, who has signed it, and what to show it."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from mockube.apimachinery.yaml_decode import YamlError, load
from mockube.apiserver.pki.issue import Pair
from mockube.apiserver.pki.private import write_private

NAME = "mockube"
"""Of the cluster and of the context."""
USER = "kubernetes-admin"


class NotOurs(Exception):
    """The file that is there leads to other clusters."""


def write(
    path: Path, *, server: str, authority: bytes, client: Pair, token: str = "", user: str = USER
) -> None:
    """Nobody but its owner may read it, for whoever can is that user. It replaces none but its own kind."""
    if path.exists() and not _is_ours(path.read_bytes()):
        raise NotOurs(f"{path} leads to other clusters, and is not overwritten: name another file")
    path.parent.mkdir(parents=True, exist_ok=True)
    tree = document(server=server, authority=authority, client=client, token=token, user=user)
    write_private(path, yaml.dump(tree, Dumper=yaml.CSafeDumper, sort_keys=False).encode())


def document(
    *, server: str, authority: bytes, client: Pair, token: str, user: str = USER
) -> Mapping[str, Any]:
    credentials = {
        "client-certificate-data": _encoded(client.certificate),
        "client-key-data": _encoded(client.key),
        **({"token": token} if token else {}),
    }
    cluster = {"server": server, "certificate-authority-data": _encoded(authority)}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user}}],
        "current-context": NAME,
    }


def _is_ours(text: bytes) -> bool:
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


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
