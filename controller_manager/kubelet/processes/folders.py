"""The folders of a pod whose containers are processes: its volumes, and a root folder with mounts for each container.

POD/volumes/NAME         a volume; the files of a ConfigMap and the like are replaced atomically by the link `..data`
POD/containers/NAME      the root of a container; each mount path in it is a link to a volume
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.environment import References, environment_of
from mockube.controller_manager.kubelet.containers.mounts import (
    Content,
    sub_path,
    volume_content,
    volume_kind,
)
from mockube.controller_manager.workloads.volumes import claim_name

_WRITABLE: Final = frozenset({"emptyDir", "persistentVolumeClaim", "ephemeral"})
ACCOUNT_FOLDER: Final = "var/run/secrets/kubernetes.io/serviceaccount"


def volume_problem(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return why a volume of the container is not supported; "" if all are."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        kind = volume_kind(volume)
        if volume["name"] in names and kind not in _WRITABLE and not _is_api_volume(kind):
            return f"volume {volume['name']!r}: {kind} volumes are not supported for a container that runs as a local process"
    return ""


def _is_api_volume(kind: str) -> bool:
    return kind in ("configMap", "secret", "downwardAPI", "projected")


def container_root(pod_folder: Path, name: str) -> Path:
    return pod_folder / "containers" / name


def make_root(base: Path, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> Path:
    """Create a new root of the container with all mounts; the files of an earlier run are removed, except in volumes."""
    pod_folder = base / meta.uid(pod)
    root = container_root(pod_folder, container["name"])
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("tmp", "dev"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    write_volumes(base, pod, container, references)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    mounts = sorted(container.get("volumeMounts") or (), key=lambda mount: len(mount["mountPath"]))
    for mount in mounts:
        volume = volumes.get(mount["name"])
        if volume is not None:
            inner = sub_path(mount, environment_of(pod, container, references)).strip("/")
            _link(root, mount["mountPath"], volume_folder(base, pod, volume), inner)
    return root


def _link(root: Path, mount_path: str, volume: Path, inner: str) -> None:
    link = root / os.path.normpath(f"/{mount_path}").lstrip("/")
    target = volume / inner if inner else volume
    if not target.exists():
        target.mkdir(parents=True, exist_ok=True)
    if link.is_symlink() or link == root:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not any(link.iterdir()):
        link.rmdir()
    if not link.exists():
        link.symlink_to(target)


def volume_folder(base: Path, pod: ReadOnlyTree, volume: ReadOnlyTree) -> Path:
    """Return the folder of a volume; a volume of a claim outlives the pod."""
    kind, name = volume_kind(volume), volume["name"]
    if kind in ("persistentVolumeClaim", "ephemeral"):
        return base / "claims" / meta.namespace(pod) / claim_name(pod, volume)
    return base / meta.uid(pod) / "volumes" / str(name)


def write_volumes(base: Path, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> None:
    """Write the present contents of volumes from API objects, and create folders for other volumes."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] not in names:
            continue
        folder = volume_folder(base, pod, volume)
        folder.mkdir(parents=True, exist_ok=True)
        content = volume_content(volume, pod, container, references)
        if content is not None:
            replace_content(folder, content)


def replace_content(folder: Path, content: Content) -> None:
    """Replace the files of a folder atomically, as a kubelet does: all names are links through one link."""
    link, present = folder / "..data", _read_files(folder / "..data")
    if present == {name: file.data for name, file in content.items()} and link.exists():
        return
    old = link.resolve() if link.exists() else None
    number = 1 + max((int(version_folder.name[2:]) for version_folder in folder.glob("..[0-9]*")), default=0)
    new = folder / f"..{number}"
    for name, file in content.items():
        path = new / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.data)
        path.chmod(file.mode & 0o777)
    new.mkdir(exist_ok=True)
    _replace_link(link, new.name)
    top_names = {name.split("/")[0] for name in content}
    for top in top_names:
        if not (folder / top).is_symlink():
            (folder / top).symlink_to(f"..data/{top}")
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and entry.name not in top_names:
            entry.unlink()
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _replace_link(link: Path, target: str) -> None:
    new_link = link.with_name("..data_tmp")
    new_link.symlink_to(target)
    new_link.replace(link)


def _read_files(folder: Path) -> Mapping[str, bytes]:
    if not folder.exists():
        return {}
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def write_kubeconfig(root: Path, server: str, namespace: str) -> Path | None:
    """Write a kubeconfig for clients that ignore the mounted token, and return its path; None without a token."""
    account = root / ACCOUNT_FOLDER
    if not (account / "token").exists():
        return None
    path = root / "kubeconfig"
    path.write_text(
        "apiVersion: v1\n"
        "kind: Config\n"
        "clusters:\n"
        f'- {{name: mockube, cluster: {{server: "{server}", certificate-authority: "{account}/ca.crt"}}}}\n'
        "users:\n"
        f'- {{name: pod, user: {{tokenFile: "{account}/token"}}}}\n'
        "contexts:\n"
        f"- {{name: pod, context: {{cluster: mockube, user: pod, namespace: {namespace}}}}}\n"
        "current-context: pod\n"
    )
    path.chmod(0o600)
    return path
