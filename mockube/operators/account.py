"""The account that an operator under test has if nobody names another one, and the kubeconfig with its token."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import orjson

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kubeconfig import Access

UNDER_TEST: Final = "operator-under-test"
_RBAC: Final = "rbac.authorization.k8s.io"


def account_with_all_rights(namespace: str, name: str) -> Sequence[ReadOnlyTree]:
    """Return a service account, and the binding that gives it all rights."""
    subject = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [subject],
        },
    ]


def write_kubeconfig(path: Path, access: Access, token: str, namespace: str) -> None:
    """Write a kubeconfig with a token, in JSON, which is YAML, too."""
    authority = base64.b64encode(access.authority).decode()
    tree: ReadOnlyTree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "mockube", "cluster": {"server": access.server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "operator", "user": {"token": token}}],
        "contexts": [
            {"name": "mockube", "context": {"cluster": "mockube", "user": "operator", "namespace": namespace}}
        ],
        "current-context": "mockube",
    }
    path.touch(mode=0o600)
    path.write_bytes(orjson.dumps(tree))
