"""Kubeconfigs of a named cluster: its own, copies of it, and the merge into the file that kubectl reads.

In the kubeconfigs for users, all entries are named after the cluster, so that several clusters fit into one file.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.apiserver.pki.private import write_private
from mockube.failure import Failure

from .named_cluster import ClusterFolder

ENTRY_LISTS: Final = ("clusters", "users", "contexts")


def publish(folder: ClusterFolder) -> str:
    """Write the cluster's kubeconfig for users, and return the server's URL."""
    tree = rename_entries(_read(folder.admin_kubeconfig), folder.context)
    _write(folder.kubeconfig, tree)
    return server_url(tree)


def rename_entries(tree: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a kubeconfig of one cluster with the name for all of its entries."""
    (cluster,), (user,) = tree["clusters"], tree["users"]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{**cluster, "name": name}],
        "users": [{**user, "name": name}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }


def server_url(tree: Mapping[str, Any]) -> str:
    """Return the server's URL of the first cluster in a kubeconfig; "" if there is none."""
    for entry in tree.get("clusters") or ():
        return str((entry.get("cluster") or {}).get("server") or "")
    return ""


def read_url(folder: ClusterFolder) -> str:
    """Return the URL of the cluster's last run; "" if it was never ready."""
    return server_url(_read(folder.kubeconfig)) if folder.kubeconfig.exists() else ""


def with_server_path(source: Path, suffix: str, path: Path) -> None:
    """Write a kubeconfig with the current context of another one, whose server has a longer path."""
    tree = _read(source)
    name = tree.get("current-context")
    context = _entry(source, tree, "context", name)
    cluster = _with_absolute_files(_entry(source, tree, "cluster", context.get("cluster")), source)
    user = _entry(source, tree, "user", context["user"]) if context.get("user") else {}
    cluster["server"] = str(cluster.get("server") or "").rstrip("/") + suffix
    _write(
        path,
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "users": [{"name": name, "user": _with_absolute_files(user, source)}],
            "contexts": [{"name": name, "context": {**context, "cluster": name, "user": name}}],
            "current-context": name,
        },
    )


def _entry(source: Path, tree: Mapping[str, Any], field: str, name: Any) -> Mapping[str, Any]:
    for entry in tree.get(f"{field}s") or ():
        if entry["name"] == name:
            return entry.get(field) or {}
    raise Failure(f"{source}: it has no {field} {name!r}")


def _with_absolute_files(entry: Mapping[str, Any], source: Path) -> dict[str, Any]:
    """Return an entry whose files are found from any folder."""
    paths = {name: str(source.absolute().parent / entry[name]) for name in _FILES if entry.get(name)}
    return {**entry, **paths}


_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def copy(folder: ClusterFolder, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, _read(folder.kubeconfig))


def check_no_other_clusters(folder: ClusterFolder, path: Path) -> None:
    """Refuse to overwrite a kubeconfig that contains other clusters."""
    existing = {entry.get("name") for entry in _read(path).get("clusters") or ()} if path.exists() else set()
    if not existing <= {folder.context}:
        raise Failure(
            f"{path} contains other clusters and is not overwritten: use `mockube kubeconfig --merge`"
        )


def merge(folder: ClusterFolder, path: Path) -> None:
    """Add the cluster to a kubeconfig that may contain others, and make it the current context."""
    own_tree = _read(folder.kubeconfig)
    existing: Mapping[str, Any] = _read(path) if path.exists() else {"apiVersion": "v1", "kind": "Config"}
    merged = {name: _replace_entries(existing.get(name) or [], own_tree[name]) for name in ENTRY_LISTS}
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, {**existing, **merged, "current-context": folder.context})


def _replace_entries(existing: list[Any], own_entries: list[Any]) -> list[Any]:
    names = {entry["name"] for entry in own_entries}
    return [*(entry for entry in existing if entry.get("name") not in names), *own_entries]


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
        _is_list_of_entries(tree.get(part) or [], part[:-1]) for part in ENTRY_LISTS
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
