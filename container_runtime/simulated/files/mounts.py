"""The files of a container: those in its volumes, and those that every container has. Pure."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import inf
from posixpath import dirname, join, normpath
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.pods import claim_name
from mockube.apimachinery.quantity import scaled_value_or
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import cloned_claim
from mockube.container_runtime.behavior import message_path
from mockube.container_runtime.config.environment import References, environment_of, hostname_of
from mockube.container_runtime.config.file_projection import (
    DATA_LINK,
    Content,
    FileProjection,
    payload_folder,
)
from mockube.container_runtime.config.network_files import HOSTS, hosts_file, node_hosts_file, resolver_file
from mockube.container_runtime.config.resource_limits import limit_of
from mockube.container_runtime.config.volumes import (
    API_VOLUMES,
    READ_ONLY_VOLUMES,
    folder_mode,
    is_claim,
    is_fixed,
    is_in_memory,
    sub_path,
    time_of_content,
    volume_content,
    volume_kind,
)
from mockube.container_runtime.images.programs import ImagePrograms, programs_of_image
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.shell.devices import DEVICES, FULL, NULL
from mockube.container_runtime.simulated.shell.disks import SHARED_MEMORY_BYTES, SHARED_MEMORY_PATH
from mockube.container_runtime.simulated.shell.proc_files import PATHS as PROC_PATHS
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.system import sysctl_path
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.simulated.shell.vfs.mount_table import Mount, WriteProtection
from mockube.container_runtime.simulation_values import CLUSTER_DNS
from mockube.container_runtime.volume_contents import OF_NODE, OF_POD, OF_VOLUME, Volume

from . import cgroup_files
from .distributions import distribution_of
from .fs_groups import FsGroup, fs_group_of
from .image_places import file_places
from .image_volumes import image_volume_content, is_whole_artifact
from .users import account_files, identity_of

MESSAGE_FILE: Final = FileEntry(data=b"", mode=0o666)
"""The file for the message of a container, which every user may write."""
SCRIPT_FOLDER: Final = "/usr/local/bin"
"""Where an image has the programs that the table of images describes by scripts."""
_OF_GROUP: Final = 0o2770
"""The permissions that the fsGroup and the owner have on a volume's folder, whose new files belong to the group."""
_OF_GROUP_READS: Final = 0o2550
"""The same for the folders in a volume that cannot be written."""
_GROUP_READS: Final = 0o440
"""The permissions that the fsGroup and the owner have on a volume's files."""


_FOLDERS: Final = {
    "/tmp": 0o1777, "/var/tmp": 0o1777, "/dev/shm": 0o1777, "/root": 0o700, "/home": 0o755, "/var/log": 0o755,  # noqa: S108 - of a simulated container
    "/var/run": 0o755, "/usr/bin": 0o755, "/proc": 0o555,
}  # fmt: skip
"""The folders of every container with their modes."""


def file_system_of(  # noqa: PLR0913 - each argument is a dependency
    images: ImageTable,
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
        files_of(images, pod, container, references) if files is None else files,
        is_partial=is_partial,
        volumes=known_mounts(images, pod, container, references),
        places=file_places(images, container),
        mounts=mounts,
        user=identity_of(images, pod, container),
        protection=write_protection(images, pod, container),
    )


SERVICE_ACCOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where nearly every container has files of its ServiceAccount, which are read-only anyway."""


def write_protection(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> WriteProtection:
    """Return which paths of a container can only be read: those of its root file system, and of mounts."""
    has_read_only_root = bool((container.get("securityContext") or {}).get("readOnlyRootFilesystem"))
    mounts = [
        mount for mount in container.get("volumeMounts") or () if mount["mountPath"] != SERVICE_ACCOUNT_PATH
    ]
    of_images = {volume["name"] for volume in pod["spec"].get("volumes") or () if "image" in volume}
    paths = {
        normpath(mount["mountPath"]): bool(mount.get("readOnly")) or mount["name"] in of_images
        for mount in mounts
    }
    if not has_read_only_root and not any(paths.values()):
        return ()
    if has_read_only_root:
        image = images.behavior_of(container)
        paths = {**dict.fromkeys(() if image is None else image.volumes, False), **paths}
        paths = {"/": True, "/dev": False, message_path(container): False, **paths}
    return tuple(sorted(paths.items(), key=lambda item: -len(item[0])))


def volume_folders(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[tuple[str, FileEntry], ...]:
    """Return the mount paths of the volumes that containers write, with the folders as they are at first."""
    mounts = container.get("volumeMounts")
    if not mounts:
        return ()
    volumes = {
        volume["name"]: volume
        for volume in pod["spec"].get("volumes") or ()
        if READ_ONLY_VOLUMES.isdisjoint(volume)
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
        is_hosts = normpath(source.get("path") or "") == HOSTS
        return FileEntry(data=node_hosts_file(pod).encode() if is_hosts else b"")
    return _root(
        kind,
        folder_mode(kind, source),
        group,
        in_memory=is_in_memory(kind, source),
    )


@lru_cache(maxsize=256)
def _root(kind: str, mode: int, group: int | None, *, in_memory: bool) -> FileEntry:
    """Return a folder: a kubelet gives those of its own volumes and of drivers to the fsGroup, and not those of the node."""
    if kind in ("hostPath", "image"):
        return FileEntry(mode=0o755)
    return FileEntry(
        mode=mode if group is None else mode | _OF_GROUP,
        group=group or 0,
        file_system="tmpfs" if in_memory else "",
        is_guess=kind not in _KNOWN_ROOTS,
    )


_FILE_TYPES: Final = frozenset({"File", "FileOrCreate", "Socket", "CharDevice", "BlockDevice"})
"""The types of host paths that are no folders."""
_KNOWN_ROOTS: Final = frozenset({*API_VOLUMES, "emptyDir", "persistentVolumeClaim", "ephemeral"})
"""The volumes whose folders are root's with the rights for all, as those of local-path; of others nobody knows the owner."""


def files_of(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> dict[str, FileEntry]:
    """Return every file and directory of a container by its path."""
    files = dict(system_files(images, pod, container, references.cluster_dns))
    files |= _program_files(programs_of_image(images, container.get("image") or ""))
    files |= _image_files(images, container)
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"])
        if volume is not None:
            files |= _mounted_files(images, mount, volume, pod, container, references)
    return files


def known_mounts(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> tuple[str, ...]:
    """Return the mount paths of the volumes of which all files are known: the image has no others there.

    The files of an object that does not exist, and that another program may have created, are not known, and neither are all files of
    an image that has programs.
    """
    volume_names = {
        volume["name"]
        for volume in pod["spec"].get("volumes") or ()
        if (volume_kind(volume) in API_VOLUMES and not lacks_object(volume, references))
        or is_whole_artifact(images, volume)
    }
    return tuple(
        normpath(mount["mountPath"])
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in volume_names and not is_fixed(mount)
    )


def lacks_object(volume: ReadOnlyTree, references: References) -> bool:
    """Return whether a ConfigMap or a Secret of a volume does not exist."""
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


def _image_files(images: ImageTable, container: ReadOnlyTree) -> dict[str, FileEntry]:
    """Return the files of a known image; a mount hides those of its folder."""
    image = images.behavior_of(container)
    if image is None:
        return {}
    folders = [f"{normpath(mount['mountPath'])}/" for mount in container.get("volumeMounts") or ()]
    files = {
        f"{SCRIPT_FOLDER}/{name}": FileEntry(data=f"#!/bin/sh\n{script}\n".encode(), mode=0o755)
        for name, script in image.scripts.items()
    }
    files |= {path: FileEntry(data=text.encode()) for path, text in image.files.items()}
    for path, target in image.links.items():
        files[path] = FileEntry(data=target.encode(), target=target, mode=0o777)
    return {
        path: entry
        for path, entry in {**dict(written_folders(images, container)), **files}.items()
        if not any(f"{path}/".startswith(folder) for folder in folders)
    }


def written_folders(images: ImageTable, container: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    """Yield the folders of a known image in which its server writes, with their owners and modes."""
    image = images.behavior_of(container)
    for need in () if image is None else image.writes:
        yield need.path, FileEntry(mode=need.mode, user=need.user)


def system_files(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, cluster_dns: str = CLUSTER_DNS
) -> Iterator[tuple[str, FileEntry]]:
    """Yield the files and folders that every container has, but for those of its image's programs."""
    yield "/etc/hostname", FileEntry(data=f"{hostname_of(pod)}\n".encode())
    yield "/etc/hosts", FileEntry(data=hosts_file(pod).encode())
    yield "/etc/resolv.conf", FileEntry(data=resolver_file(pod, cluster_dns).encode())
    for device in (NULL, FULL, *DEVICES):
        yield device, FileEntry(data=b"", mode=0o666)
    yield message_path(container), MESSAGE_FILE
    yield from account_files(images, container)
    if os_release := distribution_of(images, container).os_release:
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
    images: ImageTable,
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
    is_image = kind == "image"
    content = (
        image_volume_content(images, (volume["image"] or {}).get("reference") or "")
        if is_image
        else volume_content(volume, pod, container, references) or {}
    )
    mount_path = normpath(mount["mountPath"])
    inner = sub_path(mount, environment_of(pod, container, references)).strip("/")

    def file(content: FileProjection) -> FileEntry:
        mode = content.mode if group is None or is_image else content.mode | _GROUP_READS
        return FileEntry(
            data=content.data,
            mode=mode,
            user=content.user or 0,
            group=0 if is_image else group or 0,
            read_only=read_only,
        )

    if inner in content:
        return {mount_path: file(content[inner])}
    files = {mount_path: replace(volume_root(pod, volume), read_only=read_only)}
    if kind in API_VOLUMES and not inner and not lacks_object(volume, references):
        written = time_of_content(volume, pod, references)
        folder = payload_folder(content, written, f"{meta.uid(pod)}/{volume['name']}")
        files |= dict(_links_to_payload(mount_path, folder, content, group))
        mount_path = join(mount_path, folder)
    for name, data_file in content.items():
        if not inner or name.startswith(f"{inner}/"):
            files[join(mount_path, name.removeprefix(f"{inner}/") if inner else name)] = file(data_file)
    return files


def _links_to_payload(
    mount_path: str, folder: str, content: Content, group: int | None
) -> Iterator[tuple[str, FileEntry]]:
    """Yield what a kubelet's atomic writer makes beside the files of a volume: their folders, and the links that lead to them."""
    mode = 0o755 if group is None else 0o755 | _OF_GROUP_READS
    of_group = group or 0
    folders = {""}
    for name in content:
        parent = dirname(name)
        while parent not in folders:
            folders.add(parent)
            parent = dirname(parent)
    for inner in sorted(folders):
        path = normpath(join(mount_path, folder, inner))
        yield path, FileEntry(mode=mode, group=of_group, read_only=True)
    targets = {
        DATA_LINK: folder,
        **{top: f"{DATA_LINK}/{top}" for top in (name.split("/")[0] for name in content)},
    }
    for name, target in targets.items():
        yield (
            join(mount_path, name),
            FileEntry(data=target.encode(), target=target, mode=0o777, group=of_group, read_only=True),
        )


def writable_paths(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, ...]:
    """Return the mount paths of the volumes that are empty when the pod starts."""
    if not container.get("volumeMounts"):
        return ()
    read_only_names = {
        volume["name"] for volume in pod["spec"].get("volumes") or () if READ_ONLY_VOLUMES & volume.keys()
    }
    return tuple(
        normpath(mount["mountPath"])
        for mount in container["volumeMounts"]
        if mount["name"] not in read_only_names
    )


SHARED_MEMORY: Final = "dev.shm"
"""The name of the shared memory of a pod among its volumes, whose names contain no dots."""
_SHARED_MEMORY_ROOT: Final = FileEntry(mode=0o1777, file_system="tmpfs")


class SharedMount(NamedTuple):
    """The mount of a volume that all containers of the pod may write."""

    mount_path: str
    volume: Volume
    inner: str
    """The path in the volume that is mounted: empty for the whole, or a path with a leading slash."""
    read_only: bool
    root: FileEntry
    """The folder of the volume when it is empty."""
    capacity: int | None = None
    """The size of the volume; None for that of the node's disk."""
    origin: Volume | None = None
    """The volume of which it is a clone."""
    folder: str = "/"
    """The folder of the volume in what it is stored in."""
    fs_group: FsGroup | None = None
    """The group that the contents get when the pod mounts them; None if they stay as they are."""


def shared_mounts(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> list[SharedMount]:
    """Return the mounts of a container that others may write, with the shared memory of the pod."""
    mounts = _volume_mounts(pod, container, references) if container.get("volumeMounts") else []
    if all(mount.mount_path != SHARED_MEMORY_PATH for mount in mounts):
        mounts.append(
            SharedMount(
                mount_path=SHARED_MEMORY_PATH,
                volume=(OF_POD, meta.uid(pod), SHARED_MEMORY),
                inner="",
                read_only=False,
                root=_SHARED_MEMORY_ROOT,
                capacity=SHARED_MEMORY_BYTES,
            )
        )
    return mounts


def _volume_mounts(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> list[SharedMount]:
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    environment = environment_of(pod, container, references)
    return [
        _shared_mount(mount, volumes[mount["name"]], pod, references, environment)
        for mount in container["volumeMounts"]
        if mount["name"] in volumes and volume_kind(volumes[mount["name"]]) not in READ_ONLY_VOLUMES
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
        read_only=bool(mount.get("readOnly")),
        root=volume_root(pod, volume),
        capacity=capacity,
        origin=_origin(pod, volume, references) if key[0] == OF_VOLUME else None,
        folder=normpath(f"/{folder}").replace("//", "/"),
        fs_group=fs_group_of(pod, volume, _bound_objects(claim_name(pod, volume), references)[1])
        if is_claim(volume)
        else None,
    )


def storage_of(
    pod: ReadOnlyTree, volume: ReadOnlyTree, references: References
) -> tuple[Volume, str, int | None]:
    """Return the volume whose contents a pod's volume has, the folder in them, and their size."""
    kind = volume_kind(volume)
    source = volume.get(kind) or {}
    node = pod["spec"].get("nodeName") or ""
    if kind == "hostPath":
        return (OF_NODE, node), normpath(source["path"]), None
    if kind == "emptyDir":
        capacity = _memory_capacity(pod, source, references) if source.get("medium") == "Memory" else None
        return (OF_POD, meta.uid(pod), volume["name"]), "", capacity
    if kind not in ("persistentVolumeClaim", "ephemeral"):
        return (OF_POD, meta.uid(pod), volume["name"]), "", None
    name = claim_name(pod, volume)
    claim, persistent = _bound_objects(name, references)
    spec = persistent.get("spec") or {}
    on_node = spec.get("local") or spec.get("hostPath")
    if on_node:
        return (OF_NODE, node), normpath(on_node["path"]), None
    capacity = ((claim.get("status") or {}).get("capacity") or {}).get("storage")
    uid = meta.uid(persistent) if persistent else f"{meta.namespace(pod)}/{name}"
    return (OF_VOLUME, uid, meta.name(persistent)), "", scaled_value_or(capacity, None)


def _bound_objects(claim_name: str, references: References) -> tuple[ReadOnlyTree, ReadOnlyTree]:
    """Return a claim and its PersistentVolume; each is empty if it does not exist."""
    claim = references.storage.get((PERSISTENT_VOLUME_CLAIMS, claim_name)) or {}
    volume_name = (claim.get("spec") or {}).get("volumeName") or ""
    return claim, references.storage.get((PERSISTENT_VOLUMES, volume_name)) or {}


def _origin(pod: ReadOnlyTree, volume: ReadOnlyTree, references: References) -> Volume | None:
    """Return the volume of the claim that a claim clones; None if there is none, or if it is a folder of a node."""
    claim, _ = _bound_objects(claim_name(pod, volume), references)
    source = cloned_claim(claim)
    persistent = _bound_objects(source, references)[1] if source else {}
    spec = persistent.get("spec") or {}
    if not persistent or spec.get("local") or spec.get("hostPath"):
        return None
    return OF_VOLUME, meta.uid(persistent), meta.name(persistent)


def _memory_capacity(pod: ReadOnlyTree, source: ReadOnlyTree, references: References) -> int | None:
    """Return the size of an emptyDir in memory: the least of its limit, the memory limit of the pod, and what its node can allocate."""
    limits = [limit_of(pod, container, "memory") for container in pod["spec"]["containers"]]
    total = sum(limit for limit in limits if limit is not None)
    sizes = [
        scaled_value_or(source.get("sizeLimit"), None),
        round(total) if 0 < total < inf else None,
        scaled_value_or(references.allocatable.get("memory"), None),
    ]
    return min((size for size in sizes if size is not None), default=None)


PERSISTENT_VOLUME_CLAIMS: Final = "persistentvolumeclaims"
PERSISTENT_VOLUMES: Final = "persistentvolumes"


def shared_volumes(pod: ReadOnlyTree, container: ReadOnlyTree) -> frozenset[str]:
    """Return the names of a container's volumes that containers may write."""
    read_only_names = {
        volume["name"] for volume in pod["spec"].get("volumes") or () if READ_ONLY_VOLUMES & volume.keys()
    }
    return frozenset(mount["name"] for mount in container.get("volumeMounts") or ()) - read_only_names


def shared_mount_paths(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[tuple[str, str], ...]:
    """Return the names and mount paths of the shared volumes that are mounted without a sub-path."""
    shared = shared_volumes(pod, container)
    return tuple(
        (mount["name"], normpath(mount["mountPath"]))
        for mount in container.get("volumeMounts") or ()
        if mount["name"] in shared and not is_fixed(mount)
    )
