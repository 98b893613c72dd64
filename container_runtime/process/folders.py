"""The folders of a pod whose containers are processes: its volumes, and a root folder with mounts for each container.

POD/volumes/NAME         a volume; the files of a ConfigMap and the like are replaced atomically by the link `..data`
POD/containers/NAME      the root of a container; a volume is bound at each mount path in it, or a link there leads to the volume
POD/network/NAME         the files about names of a pod with a network of its own
POD/termination-messages/NAME   the termination message of a container whose mounts are bound
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.pods import claim_name, every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import message_path
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.file_projection import Content
from mockube.container_runtime.config.volumes import (
    folder_mode,
    is_api_volume,
    sub_path,
    volume_content,
    volume_kind,
)
from mockube.container_runtime.start_errors import StartError

from .command import Identity
from .mount_namespace import Bind, Mounts

_WRITABLE: Final = frozenset({"emptyDir", "persistentVolumeClaim", "ephemeral"})
ACCOUNT_FOLDER: Final = "var/run/secrets/kubernetes.io/serviceaccount"


def volume_problem(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return why a volume of the container is not supported; "" if all are."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        kind = volume_kind(volume)
        if volume["name"] in names and kind not in _WRITABLE and not is_api_volume(volume):
            return f"volume {volume['name']!r}: {kind} volumes are not supported for a container that runs as a local process"
    return ""


def volumes_of_simulated(pod: ReadOnlyTree, container: ReadOnlyTree, processes: Collection[str]) -> list[str]:
    """Return the names of the volumes that a process shares with simulated containers, which have files of their own there.

    `processes` are the names of the containers that are processes.
    """
    others = {
        mount["name"]
        for other in every_container(pod["spec"])
        if other["name"] not in processes
        for mount in other.get("volumeMounts") or ()
    }
    mounted = others & {mount["name"] for mount in container.get("volumeMounts") or ()}
    volumes = pod["spec"].get("volumes") or ()
    return [
        volume["name"] for volume in volumes if volume["name"] in mounted and volume_kind(volume) in _WRITABLE
    ]


def container_root(pod_folder: Path, name: str) -> Path:
    return pod_folder / "containers" / name


def message_file(pod_folder: Path, container: ReadOnlyTree) -> Path:
    """Return the file that a container with mounts of its own has at its `terminationMessagePath`."""
    return pod_folder / "termination-messages" / str(container["name"])


def absolute_path(path: str) -> str:
    """Return a path of a container without `..` and repeated slashes."""
    return "/" + os.path.normpath(f"/{path}").lstrip("/")


def make_root(
    base: Path,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    identity: Identity,
    image_files: Mapping[str, Path],
) -> Mounts:
    """Create a new root of the container and its volumes; the files of an earlier run are removed, except in volumes.

    `image_files` are files of this machine by their paths in the container; a volume at the same path hides one. The mounts that are returned appear in a mount namespace, or by `link_mounts`.
    """
    pod_folder = base / meta.uid(pod)
    root = container_root(pod_folder, container["name"])
    shutil.rmtree(root, ignore_errors=True)
    for folder in ("tmp", "dev"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    write_volumes(base, pod, container, references)
    _hand_over(root, identity)
    for folder in ("tmp", "dev"):
        _hand_over(root / folder, identity)
    directory = container.get("workingDir")
    return Mounts(
        root=str(root),
        binds=_with_image_files(_binds(base, pod, container, references), image_files),
        folders=(absolute_path(directory),) if directory else (),
    )


def _hand_over(path: Path, identity: Identity) -> None:
    """Make a file or folder that of the process."""
    if identity.user is not None or identity.groups:
        os.chown(path, -1 if identity.user is None else identity.user, identity.groups[0])


def _binds(base: Path, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> Iterator[Bind]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    mounts = [mount for mount in container.get("volumeMounts") or () if mount["name"] in volumes]
    for mount in sorted(mounts, key=lambda mount: len(mount["mountPath"])):
        volume = volumes[mount["name"]]
        inner = sub_path(mount, environment_of(pod, container, references)).strip("/")
        source = volume_folder(base, pod, volume) / inner
        if not source.exists():
            _make_volume_folder(source)
        read_only = bool(mount.get("readOnly")) or is_api_volume(volume)
        options = tuple(mount.get("bindMountOptions") or ())
        yield Bind(str(source), absolute_path(mount["mountPath"]), read_only, options)


def _with_image_files(binds: Iterable[Bind], files: Mapping[str, Path]) -> tuple[Bind, ...]:
    """Return the binds of volumes and of an image's files, the outer ones first; raise StartError for a missing file."""
    volumes = {bind.path: bind for bind in binds}
    own = []
    for path, source in files.items():
        if not source.exists():
            raise StartError(f"{path} of the image: {source} does not exist")
        if path not in volumes:
            own.append(Bind(str(source.absolute()), path, read_only=True))
    return tuple(sorted((*own, *volumes.values()), key=lambda bind: len(bind.path)))


def add_message_file(base: Path, pod: ReadOnlyTree, container: ReadOnlyTree, mounts: Mounts) -> Mounts:
    """Add a file for the termination message, which every user may write, to the mounts of a namespace."""
    path = message_file(base / meta.uid(pod), container)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    path.chmod(0o666)
    bind = Bind(str(path), absolute_path(message_path(container)), read_only=False)
    return mounts._replace(binds=(*mounts.binds, bind))


def add_network_files(base: Path, pod: ReadOnlyTree, mounts: Mounts, files: Mapping[str, str]) -> Mounts:
    """Add files with their texts, which all containers of a pod share, to the mounts of a namespace, unless a volume is there."""
    folder = base / meta.uid(pod) / "network"
    folder.mkdir(parents=True, exist_ok=True)
    present = {bind.path for bind in mounts.binds}
    added = []
    for path, text in files.items():
        source = folder / Path(path).name
        source.write_text(text)
        source.chmod(0o644)
        if path not in present:
            added.append(Bind(str(source), path, read_only=False))
    return mounts._replace(binds=tuple(sorted((*mounts.binds, *added), key=lambda bind: len(bind.path))))


def link_mounts(base: Path, pod: ReadOnlyTree, mounts: Mounts, identity: Identity) -> None:
    """Let each mount path below the root be a link to its volume, for a container without a mount namespace."""
    root = Path(mounts.root)
    for bind in mounts.binds:
        _link(root, bind)
    if identity.user:
        # The folders lead to the container's files. Their names, which nobody can guess, keep them private.
        pod_folder = base / meta.uid(pod)
        for folder in (
            base,
            base / "claims",
            base / "claims" / meta.namespace(pod),
            pod_folder,
            *pod_folder.iterdir(),
        ):
            if folder.is_dir():
                folder.chmod(0o711)


def _link(root: Path, bind: Bind) -> None:
    link = root / bind.path.lstrip("/")
    if link.is_symlink() or link == root:
        return
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.is_dir() and not any(link.iterdir()):
        link.rmdir()
    if not link.exists():
        link.symlink_to(bind.source)


def _make_volume_folder(folder: Path, mode: int = 0o777) -> None:
    """Create a folder of a volume, which every user of the pod may write unless the volume has a mode."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(mode)


def volume_folder(base: Path, pod: ReadOnlyTree, volume: ReadOnlyTree) -> Path:
    """Return the folder of a volume; a volume of a claim outlives the pod."""
    kind, name = volume_kind(volume), volume["name"]
    if kind in ("persistentVolumeClaim", "ephemeral"):
        return base / "claims" / meta.namespace(pod) / claim_name(pod, volume)
    return base / meta.uid(pod) / "volumes" / str(name)


def write_volumes(base: Path, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> None:
    """Write the present contents of volumes from API objects, and create folders for other volumes."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] not in names:
            continue
        folder = volume_folder(base, pod, volume)
        if not folder.exists():
            kind = volume_kind(volume)
            _make_volume_folder(folder, folder_mode(kind, volume.get(kind) or {}))
            _give_to_group(folder, group)
        content = volume_content(volume, pod, container, references)
        if content is not None:
            replace_content(folder, content, group)


def _give_to_group(path: Path, group: int | None) -> None:
    """Give a volume's file or folder to the pod's `fsGroup`, which may then read it as its owner does."""
    if group is not None and os.geteuid() == 0:
        os.chown(path, -1, group)
        mode = path.stat().st_mode
        path.chmod(stat.S_IMODE(mode) | (0o2770 if stat.S_ISDIR(mode) else 0o440))


def replace_content(folder: Path, content: Content, group: int | None = None) -> None:
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
        if file.user is not None and os.geteuid() == 0:
            os.chown(path, file.user, -1)
        _give_to_group(path, group)
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


def write_kubeconfig(
    mounts: Mounts, root: Path, server: str, namespace: str, identity: Identity
) -> Path | None:
    """Write a kubeconfig for clients that ignore the mounted token, and return its path; None without a token.

    `root` is the container's folder as the process sees it, and so is the path.
    """
    token = mounts.source_of(f"/{ACCOUNT_FOLDER}/token")
    if token is None or not Path(token).exists():
        return None
    account, path = root / ACCOUNT_FOLDER, Path(mounts.root) / "kubeconfig"
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
    _hand_over(path, identity)
    return root / "kubeconfig"
