"""The files of a container: those in its volumes, and those that every container has. Pure."""

from collections.abc import Iterator
from posixpath import join, normpath
from typing import Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References, environment_of, hostname_of
from mockube.container_runtime.config.file_projection import FileProjection
from mockube.container_runtime.config.volumes import (
    API_VOLUMES,
    folder_mode,
    is_fixed,
    sub_path,
    volume_content,
    volume_kind,
)
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.simulated.shell.devices import DEVICES, NULL
from mockube.container_runtime.simulated.shell.filesystem import FileEntry
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.system import sysctl_path

from . import cgroup_files
from .network_files import hosts_file, resolver_file

_OF_GROUP: Final = 0o2770
"""The permissions that the fsGroup and the owner have on a volume's folder, whose new files belong to the group."""
_GROUP_READS: Final = 0o440
"""The permissions that the fsGroup and the owner have on a volume's files."""


def files_of(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> dict[str, FileEntry]:
    """Return every file and directory of a container by its path."""
    files = dict(_system_files(pod, container)) | _image_files(container)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"])
        if volume is not None:
            files |= _mounted_files(mount, volume, pod, container, references)
    return files


def known_mounts(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> tuple[str, ...]:
    """Return the mount paths of the volumes of which all files are known: the image has no others there.

    The files of an object that does not exist, and that another program may have created, are not known.
    """
    volume_names = {
        volume["name"]
        for volume in pod["spec"].get("volumes") or ()
        if volume_kind(volume) in API_VOLUMES and not _lacks_object(volume, references)
    }
    return tuple(
        normpath(mount["mountPath"])
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in volume_names and not mount.get("subPath") and not mount.get("subPathExpr")
    )


def _lacks_object(volume: ReadOnlyTree, references: References) -> bool:
    for source in (volume.get("projected") or {}).get("sources") or (volume,):
        config_map, secret = source.get("configMap") or {}, source.get("secret") or {}
        secret_name = secret.get("secretName") or secret.get("name")
        needs_config_map = bool(config_map) and not config_map.get("optional")
        needs_secret = bool(secret) and not secret.get("optional")
        if needs_config_map and references.config_map(config_map.get("name") or "") is None:
            return True
        if needs_secret and references.secret(secret_name or "") is None:
            return True
    return False


def _image_files(container: ReadOnlyTree) -> dict[str, FileEntry]:
    """Return the files of a known image; a mount hides those of its folder."""
    image = behavior_of(container)
    if image is None:
        return {}
    folders = [f"{normpath(mount['mountPath'])}/" for mount in container.get("volumeMounts") or ()]
    return {
        path: FileEntry(data=text.encode())
        for path, text in image.files.items()
        if not any(path.startswith(folder) for folder in folders)
    }


def _system_files(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    yield "/etc/hostname", FileEntry(data=f"{hostname_of(pod)}\n".encode())
    yield "/etc/hosts", FileEntry(data=hosts_file(pod).encode())
    yield "/etc/resolv.conf", FileEntry(data=resolver_file(pod).encode())
    for device in (NULL, *DEVICES):
        yield device, FileEntry(data=b"", mode=0o666)
    for folder in ("/tmp", "/root", "/home", "/var/log", "/var/run", "/usr/bin", "/proc"):  # noqa: S108 - of a simulated container
        yield folder, FileEntry(mode=0o755)
    yield cgroup_files.PATH, FileEntry(mode=0o555, read_only=True)
    for name, data in cgroup_files.cgroup_files(pod, container):
        yield f"{cgroup_files.PATH}/{name}", FileEntry(data=data, read_only=True)
    for sysctl in (pod["spec"].get("securityContext") or {}).get("sysctls") or ():
        yield sysctl_path(sysctl["name"]), FileEntry(data=f"{sysctl['value']}\n".encode(), read_only=True)
    for name in PROGRAMS:
        yield f"/bin/{name}", FileEntry(data=b"", mode=0o755)


def _mounted_files(
    mount: ReadOnlyTree,
    volume: ReadOnlyTree,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
) -> dict[str, FileEntry]:
    kind = volume_kind(volume)
    source = volume.get(kind) or {}
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    read_only = kind in API_VOLUMES or bool(mount.get("readOnly"))
    references = references.at_start() if is_fixed(mount) else references
    content = volume_content(volume, pod, container, references) or {}
    mount_path = normpath(mount["mountPath"])
    inner = sub_path(mount, environment_of(pod, container, references)).strip("/")

    def file(content: FileProjection) -> FileEntry:
        mode = content.mode if group is None else content.mode | _GROUP_READS
        return FileEntry(
            data=content.data, mode=mode, user=content.user or 0, group=group or 0, read_only=read_only
        )

    if inner in content:
        return {mount_path: file(content[inner])}
    files = {mount_path: _directory(kind, source, group, read_only=read_only)}
    for name, data_file in content.items():
        if not inner or name.startswith(f"{inner}/"):
            files[join(mount_path, name.removeprefix(f"{inner}/") if inner else name)] = file(data_file)
    return files


def _directory(kind: str, source: ReadOnlyTree, group: int | None, *, read_only: bool) -> FileEntry:
    in_memory = kind in ("secret", "downwardAPI", "projected") or source.get("medium") == "Memory"
    is_shared = kind in API_VOLUMES or kind == "emptyDir"
    mode = folder_mode(kind, source) if is_shared else 0o755
    if group is not None and is_shared:
        mode |= _OF_GROUP
    file_system = "tmpfs" if in_memory else ""
    return FileEntry(mode=mode, group=group or 0, file_system=file_system, read_only=read_only)


def writable_paths(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the mount paths of the volumes that are empty when the pod starts."""
    if not container.get("volumeMounts"):
        return ()
    read_only_names = {
        volume["name"] for volume in pod["spec"].get("volumes") or () if API_VOLUMES & volume.keys()
    }
    return tuple(
        normpath(mount["mountPath"])
        for mount in container["volumeMounts"]
        if mount["name"] not in read_only_names
    )


class SharedMount(NamedTuple):
    """The mount of a volume that all containers of the pod may write."""

    mount_path: str
    volume: str
    inner: str
    """The path in the volume that is mounted: empty for the whole, or a path with a leading slash."""
    read_only: bool


def shared_mounts(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> list[SharedMount]:
    if not container.get("volumeMounts"):
        return []
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    environment = environment_of(pod, container, references)
    return [
        SharedMount(
            mount_path=normpath(mount["mountPath"]),
            volume=mount["name"],
            inner=normpath(f"/{sub_path(mount, environment)}").rstrip("/"),
            read_only=bool(mount.get("readOnly")),
        )
        for mount in container["volumeMounts"]
        if mount["name"] in volumes and volume_kind(volumes[mount["name"]]) not in API_VOLUMES
    ]


def shared_volumes(pod: ReadOnlyTree, container: ReadOnlyTree) -> frozenset[str]:
    """Return the names of a container's volumes that containers may write."""
    read_only_names = {
        volume["name"] for volume in pod["spec"].get("volumes") or () if API_VOLUMES & volume.keys()
    }
    return frozenset(mount["name"] for mount in container.get("volumeMounts") or ()) - read_only_names


def shared_mount_paths(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[tuple[str, str], ...]:
    """Return the names and mount paths of the shared volumes that are mounted without a sub-path."""
    shared = shared_volumes(pod, container)
    return tuple(
        (mount["name"], normpath(mount["mountPath"]))
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in shared and not mount.get("subPath") and not mount.get("subPathExpr")
    )
