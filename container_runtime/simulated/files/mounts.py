"""The files of a container: those in its volumes, and those that every container has. Pure."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from posixpath import join, normpath
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.pods import claim_name
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.behavior import DEFAULT_MESSAGE_PATH
from mockube.container_runtime.config.environment import References, environment_of, hostname_of
from mockube.container_runtime.config.file_projection import FileProjection
from mockube.container_runtime.config.volumes import (
    API_VOLUMES,
    folder_mode,
    is_claim,
    is_fixed,
    sub_path,
    volume_content,
    volume_kind,
)
from mockube.container_runtime.images.programs import ImagePrograms, programs_of_image
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.simulated.shell.devices import DEVICES, FULL, NULL
from mockube.container_runtime.simulated.shell.filesystem import (
    FileEntry,
    FileSystem,
    Mount,
    WriteProtection,
)
from mockube.container_runtime.simulated.shell.proc_files import PATHS as PROC_PATHS
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.system import sysctl_path

from . import cgroup_files
from .distributions import distribution_of
from .fs_groups import FsGroup, fs_group_of
from .image_places import file_places
from .network_files import hosts_file, resolver_file
from .users import account_files, identity_of

_OF_GROUP: Final = 0o2770
"""The permissions that the fsGroup and the owner have on a volume's folder, whose new files belong to the group."""
_GROUP_READS: Final = 0o440
"""The permissions that the fsGroup and the owner have on a volume's files."""


_FOLDERS: Final = {
    "/tmp": 0o1777, "/var/tmp": 0o1777, "/dev/shm": 0o1777, "/root": 0o700, "/home": 0o755, "/var/log": 0o755,  # noqa: S108 - of a simulated container
    "/var/run": 0o755, "/usr/bin": 0o755, "/proc": 0o555,
}  # fmt: skip
"""The folders of every container with their modes."""


def file_system_of(
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    mounts: Mapping[str, Mount] | None = None,
    *,
    files: Mapping[str, FileEntry] | None = None,
    is_partial: bool = False,
) -> FileSystem:
    """Return the files of a container at its start, as its user sees them."""
    return FileSystem(
        files_of(pod, container, references) if files is None else files,
        is_partial=is_partial,
        volumes=known_mounts(pod, container, references),
        places=file_places(container),
        mounts=mounts,
        user=identity_of(pod, container),
        protection=write_protection(container),
    )


SERVICE_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where nearly every container has files of its ServiceAccount, which are read-only anyway."""


def write_protection(container: ReadOnlyTree) -> WriteProtection:
    """Return which paths of a container can only be read: those of its root file system, and of mounts."""
    has_read_only_root = bool((container.get("securityContext") or {}).get("readOnlyRootFilesystem"))
    mounts = [
        mount for mount in container.get("volumeMounts") or () if mount["mountPath"] != SERVICE_ACCOUNT_PATH
    ]
    if not has_read_only_root and not any(mount.get("readOnly") for mount in mounts):
        return ()
    paths = {normpath(mount["mountPath"]): bool(mount.get("readOnly")) for mount in mounts}
    if has_read_only_root:
        image = behavior_of(container)
        paths = {**dict.fromkeys(() if image is None else image.volumes, False), **paths}
        message_path = container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH
        paths = {"/": True, "/dev": False, message_path: False, **paths}
    return tuple(sorted(paths.items(), key=lambda item: -len(item[0])))


def volume_folders(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[tuple[str, FileEntry], ...]:
    """Return the mount paths of the volumes that containers write, with the folders as they are at first."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return ()
    volumes = {
        volume["name"]: volume
        for volume in pod["spec"].get("volumes") or ()
        if API_VOLUMES.isdisjoint(volume)
    }
    if not volumes:
        return ()
    return tuple(
        (normpath(mount["mountPath"]), volume_root(pod, volumes[mount["name"]]))
        for mount in mounts
        if mount["name"] in volumes
    )


def volume_root(pod: ReadOnlyTree, volume: ReadOnlyTree) -> FileEntry:
    """Return the folder of a volume as it is at first."""
    kind = volume_kind(volume)
    source = volume.get(kind) or {}
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    if kind == "hostPath" and source.get("type") in _FILE_TYPES:
        return FileEntry(data=b"")
    return _root(
        kind,
        source.get("mode") if kind == "emptyDir" else None,
        group,
        in_memory=source.get("medium") == "Memory",
    )


@lru_cache(maxsize=256)
def _root(kind: str, mode: int | None, group: int | None, *, in_memory: bool) -> FileEntry:
    """Return a folder: a kubelet gives those of its own volumes and of drivers to the fsGroup, and not those of the node."""
    if kind == "hostPath":
        return FileEntry(mode=0o755)
    full_mode = folder_mode(kind, {} if mode is None else {"mode": mode})
    if group is not None:
        full_mode |= _OF_GROUP
    return FileEntry(
        mode=full_mode,
        group=group or 0,
        file_system="tmpfs" if in_memory or kind in _IN_MEMORY else "",
        is_guess=kind not in _KNOWN_ROOTS,
    )


_FILE_TYPES: Final = frozenset({"File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"})
"""The types of host paths that are no folders."""
_IN_MEMORY: Final = frozenset({"secret", "downwardAPI", "projected"})
_KNOWN_ROOTS: Final = frozenset({*API_VOLUMES, "emptyDir", "persistentVolumeClaim", "ephemeral", "image"})
"""The volumes whose folders are root's with the rights for all, as those of local-path; of others nobody knows the owner."""


def files_of(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> dict[str, FileEntry]:
    """Return every file and directory of a container by its path."""
    files = dict(_system_files(pod, container))
    files |= _program_files(programs_of_image(container.get("image") or ""))
    files |= _image_files(container)
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
    files = {path: FileEntry(data=text.encode()) for path, text in image.files.items()}
    return {
        path: entry
        for path, entry in {**dict(written_folders(container)), **files}.items()
        if not any(f"{path}/".startswith(folder) for folder in folders)
    }


def written_folders(container: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    """Yield the folders of a known image in which its server writes, with their owners and modes."""
    image = behavior_of(container)
    for need in () if image is None else image.writes:
        yield need.path, FileEntry(mode=need.mode, user=need.user)


def _system_files(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    yield "/etc/hostname", FileEntry(data=f"{hostname_of(pod)}\n".encode())
    yield "/etc/hosts", FileEntry(data=hosts_file(pod).encode())
    yield "/etc/resolv.conf", FileEntry(data=resolver_file(pod).encode())
    for device in (NULL, FULL, *DEVICES):
        yield device, FileEntry(data=b"", mode=0o666)
    yield container.get("terminationMessagePath") or DEFAULT_MESSAGE_PATH, FileEntry(data=b"", mode=0o666)
    yield from account_files(container)
    if os_release := distribution_of(container).os_release:
        yield "/etc/os-release", FileEntry(data=os_release.encode())
    for path in PROC_PATHS:
        yield path, FileEntry(data=b"", mode=0o444, read_only=True)
    for folder, mode in _FOLDERS.items():
        yield folder, FileEntry(mode=mode)
    yield cgroup_files.PATH, FileEntry(mode=0o555, read_only=True)
    for name, data in cgroup_files.cgroup_files(pod, container):
        yield f"{cgroup_files.PATH}/{name}", FileEntry(data=data, read_only=True)
    for sysctl in (pod["spec"].get("securityContext") or {}).get("sysctls") or ():
        yield sysctl_path(sysctl["name"]), FileEntry(data=f"{sysctl['value']}\n".encode(), read_only=True)


@lru_cache(maxsize=256)
def _program_files(installed: ImagePrograms | None) -> Mapping[str, FileEntry]:
    """Return the files of the simulated programs that an image has, or may have; all if nobody knows its programs."""
    program = FileEntry(data=b"", mode=0o755)
    return {
        f"/bin/{name}": program for name in PROGRAMS if installed is None or installed.has(name) is not False
    }


def _mounted_files(
    mount: ReadOnlyTree,
    volume: ReadOnlyTree,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
) -> dict[str, FileEntry]:
    kind = volume_kind(volume)
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
    files = {mount_path: replace(volume_root(pod, volume), read_only=read_only)}
    for name, data_file in content.items():
        if not inner or name.startswith(f"{inner}/"):
            files[join(mount_path, name.removeprefix(f"{inner}/") if inner else name)] = file(data_file)
    return files


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


VolumeKey = tuple[str, ...]
"""Whose the contents of a volume are: those of the pod, of a volume that outlives it, or of a node."""
OF_POD: Final = "pod"
OF_NODE: Final = "node"
OF_VOLUME: Final = "volume"


class SharedMount(NamedTuple):
    """The mount of a volume that all containers of the pod may write."""

    mount_path: str
    volume: VolumeKey
    inner: str
    """The path in the volume that is mounted: empty for the whole, or a path with a leading slash."""
    read_only: bool
    root: FileEntry
    """The folder of the volume when it is empty."""
    capacity: int | None = None
    """The size of the volume; None for that of the node's disk."""
    folder: str = "/"
    """The folder of the volume in what it is stored in."""
    fs_group: FsGroup | None = None
    """The group that the contents get when the pod mounts them; None if they stay as they are."""


def shared_mounts(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> list[SharedMount]:
    if not container.get("volumeMounts"):
        return []
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    environment = environment_of(pod, container, references)
    return [
        _shared_mount(mount, volumes[mount["name"]], pod, references, environment)
        for mount in container["volumeMounts"]
        if mount["name"] in volumes and volume_kind(volumes[mount["name"]]) not in API_VOLUMES
    ]


def _shared_mount(
    mount: ReadOnlyTree,
    volume: ReadOnlyTree,
    pod: ReadOnlyTree,
    references: References,
    environment: Mapping[str, str],
) -> SharedMount:
    key, folder, capacity = storage_of(pod, volume, references)
    return SharedMount(
        mount_path=normpath(mount["mountPath"]),
        volume=key,
        inner=normpath(f"/{folder}/{sub_path(mount, environment)}").replace("//", "/").rstrip("/"),
        read_only=bool(mount.get("readOnly")) or volume_kind(volume) == "image",
        root=volume_root(pod, volume),
        capacity=capacity,
        folder=normpath(f"/{folder}").replace("//", "/"),
        fs_group=fs_group_of(pod, volume, _persistent_volume(pod, volume, references))
        if is_claim(volume)
        else None,
    )


def _persistent_volume(pod: ReadOnlyTree, volume: ReadOnlyTree, references: References) -> ReadOnlyTree:
    """Return the PersistentVolume of a claim; empty if it does not exist."""
    claim = references.storage.get((PERSISTENT_VOLUME_CLAIMS, claim_name(pod, volume))) or {}
    volume_name = (claim.get("spec") or {}).get("volumeName") or ""
    return references.storage.get((PERSISTENT_VOLUMES, volume_name)) or {}


def storage_of(
    pod: ReadOnlyTree, volume: ReadOnlyTree, references: References
) -> tuple[VolumeKey, str, int | None]:
    """Return whose the contents of a volume are, the folder in them, and their size."""
    kind = volume_kind(volume)
    source = volume.get(kind) or {}
    node = pod["spec"].get("nodeName") or ""
    if kind == "hostPath":
        return (OF_NODE, node), normpath(source["path"]), None
    if kind == "emptyDir":
        limit = source.get("sizeLimit") if source.get("medium") == "Memory" else None
        return (OF_POD, volume["name"]), "", None if limit is None else _bytes_of(limit)
    if kind not in ("persistentVolumeClaim", "ephemeral"):
        return (OF_POD, volume["name"]), "", None
    name = claim_name(pod, volume)
    claim = references.storage.get((PERSISTENT_VOLUME_CLAIMS, name)) or {}
    volume_name = (claim.get("spec") or {}).get("volumeName") or ""
    persistent = references.storage.get((PERSISTENT_VOLUMES, volume_name)) or {}
    spec = persistent.get("spec") or {}
    on_node = spec.get("local") or spec.get("hostPath")
    if on_node:
        return (OF_NODE, node), normpath(on_node["path"]), None
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    uid = meta.uid(persistent) if persistent else f"{meta.namespace(pod)}/{name}"
    return (OF_VOLUME, uid), "", None if capacity is None else _bytes_of(capacity)


def _bytes_of(amount: Any) -> int | None:
    try:
        return quantity.from_json(amount).scaled_value(0)
    except quantity.QuantityError:
        return None


PERSISTENT_VOLUME_CLAIMS: Final = "persistentvolumeclaims"
PERSISTENT_VOLUMES: Final = "persistentvolumes"


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
