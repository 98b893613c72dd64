"""The folders of a pod whose containers are processes: its volumes, and a root folder with mounts for each container.

POD/volumes/NAME         a volume of the pod; the files of a ConfigMap and the like are replaced atomically by the link `..data`
claims/UID               a PersistentVolume, and nodes/NAME the host paths of a simulated node: they outlive the pod
POD/containers/NAME      the root of a container; a volume is bound at each mount path in it, or a link there leads to the volume
POD/network/NAME         the files about names of a pod with a network of its own
POD/termination-messages/NAME   the termination message of a container whose mounts are bound
"""

import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import message_path
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.file_projection import DATA_LINK, Content, payload_folder
from mockube.container_runtime.config.volumes import (
    folder_mode,
    is_api_volume,
    sub_path,
    volume_content,
    volume_kind,
)
from mockube.container_runtime.start_errors import StartError

from .command import Identity
from .mount_namespace import TEMPORARY, Bind, Mounts

_WRITABLE: Final = frozenset({"emptyDir", "hostPath", "persistentVolumeClaim", "ephemeral"})
_OF_MACHINE: Final = ("/dev", "/proc", "/sys")
"""The folders of a node in which its kernel has files, which a simulated node has not."""
_PROC: Final = "/proc"
_SPECIAL_TYPES: Final = frozenset({"Socket", "CharDevice", "BlockDevice"})
"""The types of host paths that no file of a folder is."""
ACCOUNT_FOLDER: Final = "var/run/secrets/kubernetes.io/serviceaccount"


class Sources(NamedTuple):
    """Files and folders of this machine by their paths in a container."""

    now: datetime
    writable: Mapping[str, Path]
    """The volumes that the container may write."""
    image_files: Mapping[str, Path]
    """Files of its image; a volume at the same path hides one."""


def volume_problem(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return why a volume of the container is not supported; "" if all are."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    for volume in pod["spec"].get("volumes") or ():
        kind = volume_kind(volume)
        if volume["name"] in names and kind not in _WRITABLE and not is_api_volume(volume):
            return f"volume {volume['name']!r}: {kind} volumes are not supported for a container that runs as a local process"
        if (
            volume["name"] in names
            and kind == "hostPath"
            and (subject := _unsupported_host_path(volume["hostPath"]))
        ):
            return f"volume {volume['name']!r}: {subject} of a node is not supported for a container that runs as a local process"
    return ""


def _unsupported_host_path(source: ReadOnlyTree) -> str:
    """Return what of a node a host path is, if a process cannot have it: the node is simulated; else ""."""
    path = absolute_path(source["path"])
    if source.get("type") in _SPECIAL_TYPES:
        return f"the {source['type']} {path}"
    is_of_machine = any(path == folder or path.startswith(f"{folder}/") for folder in _OF_MACHINE)
    return f"the path {path}" if is_of_machine else ""


def container_root(pod_folder: Path, name: str) -> Path:
    return pod_folder / "containers" / name


def message_file(pod_folder: Path, container: ReadOnlyTree) -> Path:
    """Return the file that a container with mounts of its own has at its `terminationMessagePath`."""
    return pod_folder / "termination-messages" / str(container["name"])


def absolute_path(path: str) -> str:
    """Return a path of a container without `..` and repeated slashes."""
    return "/" + os.path.normpath(f"/{path}").lstrip("/")


def remove_root(base: Path, pod: ReadOnlyTree, container: ReadOnlyTree) -> None:
    """Remove the files of an earlier run, except in volumes."""
    shutil.rmtree(container_root(base / meta.uid(pod), container["name"]), ignore_errors=True)


def make_root(
    base: Path,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    identity: Identity,
    sources: Sources,
) -> Mounts:
    """Create a new root of the container and its volumes.

    The mounts that are returned appear in a mount namespace, or by `link_mounts`.
    """
    root = container_root(base / meta.uid(pod), container["name"])
    for folder in ("tmp", "dev"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    write_volumes(base, pod, container, references, sources.now)
    _hand_over(root, identity)
    for folder in ("tmp", "dev"):
        _hand_over(root / folder, identity)
    directory = container.get("workingDir")
    return Mounts(
        root=str(root),
        binds=_with_image_files(
            _binds(base, pod, container, references, sources.writable), sources.image_files
        ),
        folders=(absolute_path(directory),) if directory else (),
    )


def _hand_over(path: Path, identity: Identity) -> None:
    """Make a file or folder that of the process."""
    if identity.user is not None or identity.groups:
        os.chown(path, -1 if identity.user is None else identity.user, identity.groups[0])


def _binds(
    base: Path,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    writable: Mapping[str, Path],
) -> Iterator[Bind]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    mounts = [mount for mount in container.get("volumeMounts") or () if mount["name"] in volumes]
    for mount in sorted(mounts, key=lambda mount: len(mount["mountPath"])):
        _require_outside_of_proc(mount)
        volume = volumes[mount["name"]]
        source = writable.get(absolute_path(mount["mountPath"]))
        if source is None:
            inner = sub_path(mount, environment_of(pod, container, references)).strip("/")
            source = volume_folder(base, pod, volume) / inner
            if not source.exists():
                _make_volume_folder(source)
        read_only = bool(mount.get("readOnly")) or is_api_volume(volume)
        options = tuple(mount.get("bindMountOptions") or ())
        yield Bind(str(source), absolute_path(mount["mountPath"]), read_only, options)


def _require_outside_of_proc(mount: ReadOnlyTree) -> None:
    """Raise `StartError` for a mount in /proc, which is that of a namespace and no folder of the container's root."""
    path = absolute_path(mount["mountPath"])
    if path == _PROC or path.startswith(f"{_PROC}/"):
        raise StartError(
            f'error mounting "{mount["name"]}" to rootfs at "{path}": "{path}" cannot be mounted because it is inside /proc'
        )


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


def add_programs(mounts: Mounts, paths: Iterable[Path]) -> Mounts:
    """Add the folders of the machine's /tmp in which paths are, since a container has a /tmp of its own."""
    temporary = Path(TEMPORARY)
    tops = {
        temporary / path.relative_to(temporary).parts[0]
        for path in paths
        if path != temporary and path.is_relative_to(temporary) and mounts.source_of(str(path)) is None
    }
    own = (Bind(str(top), str(top), read_only=False) for top in sorted(tops) if top.exists())
    return mounts._replace(binds=tuple(sorted((*mounts.binds, *own), key=lambda bind: len(bind.path))))


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
            base / "nodes",
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
    """Return the folder of a volume from API objects."""
    return base / meta.uid(pod) / "volumes" / str(volume["name"])


def write_volumes(
    base: Path, pod: ReadOnlyTree, container: ReadOnlyTree, references: References, now: datetime
) -> None:
    """Write the present contents of volumes from API objects."""
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    for volume in pod["spec"].get("volumes") or ():
        if volume["name"] not in names or not is_api_volume(volume):
            continue
        folder = volume_folder(base, pod, volume)
        if not folder.exists():
            kind = volume_kind(volume)
            _make_volume_folder(folder, folder_mode(kind, volume.get(kind) or {}))
            _give_to_group(folder, group)
        content = volume_content(volume, pod, container, references)
        if content is not None:
            replace_content(folder, content, now, group)


def _give_to_group(path: Path, group: int | None) -> None:
    """Give a volume's file or folder to the pod's `fsGroup`, which may then read it as its owner does."""
    if group is not None and os.geteuid() == 0:
        os.chown(path, -1, group)
        mode = path.stat().st_mode
        path.chmod(stat.S_IMODE(mode) | (0o2770 if stat.S_ISDIR(mode) else 0o440))


def replace_content(folder: Path, content: Content, now: datetime, group: int | None = None) -> None:
    """Replace the files of a folder atomically, as a kubelet does: all names are links through one link."""
    link, present = folder / DATA_LINK, _read_files(folder / DATA_LINK)
    if present == {name: file.data for name, file in content.items()} and link.exists():
        return
    old = link.resolve() if link.exists() else None
    new = folder / payload_folder(content, now, str(folder))
    if new == old:  # Its files have been changed on this machine.
        new = new.with_name(f"{new.name}1")
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
            (folder / top).symlink_to(f"{DATA_LINK}/{top}")
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
