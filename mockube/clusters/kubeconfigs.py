"""Kubeconfigs of a named cluster: its own, requested copies, and the one that kubectl reads.

The server writes one under its own name; those for users have the cluster's name, so that several fit into one file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.pki.private import write_private
from mockube.clusters.named_cluster import ClusterFolder
from mockube.failure import Failure

LISTS: Final = ("clusters", "users", "contexts")


def publish(folder: ClusterFolder) -> str:
    """Give the cluster its kubeconfig; answers with the server's address."""
    tree = rename_entries(_read(folder.admin), folder.context)
    _write(folder.kubeconfig, tree)
    return server_of(tree)


def rename_entries(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The same for one cluster, all of whose entries are called so."""
    (cluster,), (user,) = tree["clusters"], tree["users"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{**cluster, "name": name}],
        "users": [{**user, "name": name}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def server_of(tree: Mapping[str, Any]) -> str:
    """Nothing, if it names none."""
    for entry in tree.get("clusters") or ():
        return str((entry.get("cluster") or {}).get("server") or "")
    return ""


def read_url(folder: ClusterFolder) -> str:
    """Where the cluster was served last; "" if it never was."""
    return server_of(_read(folder.kubeconfig)) if folder.kubeconfig.exists() else ""


def copy(folder: ClusterFolder, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, _read(folder.kubeconfig))


def check_no_other_clusters(folder: ClusterFolder, path: Path) -> None:
    """A file that leads to other clusters is not overwritten."""
    there = {entry.get("name") for entry in _read(path).get("clusters") or ()} if path.exists() else set()
    if not there <= {folder.context}:
        raise Failure(
            f"{path} contains other clusters and is not overwritten: use `mockube kubeconfig --merge`"
        )


def merge(folder: ClusterFolder, path: Path) -> None:
    """Add the cluster to a file that may lead to others, and make it the current one."""
    mine = _read(folder.kubeconfig)
    there: Mapping[str, Any] = _read(path) if path.exists() else {"apiVersion": "v1", "kind": "Config"}
    merged = {name: _replace_entries(there.get(name) or [], mine[name]) for name in LISTS}
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, {**there, **merged, "current-context": folder.context})


def _replace_entries(there: list[Any], mine: list[Any]) -> list[Any]:
    names = {entry["name"] for entry in mine}
    return [*(entry for entry in there if entry.get("name") not in names), *mine]


def _read(path: Path) -> Mapping[str, Any]:
    try:
        tree = load(path.read_bytes()).tree
    except YamlError as error:
        raise Failure(f"{path} is not a kubeconfig: {error}".replace("\n", " ")) from error
    if tree is not None and not _is_config(tree):
        raise Failure(f"{path} is not a kubeconfig")
    return tree or {}


def _is_config(tree: Any) -> bool:
    return isinstance(tree, dict) and all(
        _is_list_of_entries(tree.get(part) or [], part[:-1]) for part in LISTS
    )


def _is_list_of_entries(entries: Any, field: str) -> bool:
    return isinstance(entries, list) and all(
        isinstance(entry, dict)
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get(field) or {}, dict)
        for entry in entries
    )


def _write(path: Path, tree: Mapping[str, Any]) -> None:
    write_private(path.resolve(), yaml.safe_dump(tree, sort_keys=False).encode())
