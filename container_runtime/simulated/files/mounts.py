"""The files of a container: those in its volumes, and those that every container has. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import Any, Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import (
    References,
    decoded_data,
    environment_of,
    field_value,
    hostname_of,
    known_environment,
    resource_value,
    unknown_variables,
)
from mockube.container_runtime.config.file_projection import (
    Content,
    FileProjection,
    Permissions,
    default_permissions,
)
from mockube.container_runtime.config.projections import certificate_files, certificate_sources, trust_anchors
from mockube.container_runtime.simulated.images.table import behavior_of
from mockube.container_runtime.simulated.programs.program import expand_references, reference_names
from mockube.container_runtime.simulated.shell.devices import DEVICES, NULL
from mockube.container_runtime.simulated.shell.filesystem import FileEntry
from mockube.container_runtime.simulated.shell.programs.registry import PROGRAMS
from mockube.container_runtime.simulated.shell.programs.system import sysctl_path

from . import cgroup_files
from .network_files import hosts_file, resolver_file

API_VOLUMES: Final = frozenset({"configMap", "secret", "downwardAPI", "projected"})
"""The kinds of volumes whose files come from API objects; containers cannot write them."""
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


def volume_kind(volume: ReadOnlyTree) -> str:
    return next((name for name in volume if name != "name"), "emptyDir")


def volume_content(
    volume: ReadOnlyTree, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Content | None:
    """Return the files of a volume from API objects; None for a volume that containers write."""
    kind = volume_kind(volume)
    if kind not in API_VOLUMES:
        return None
    content = _content(kind, volume.get(kind) or {}, pod, container, references)
    return {**content, **_credential_files(volume, references)}


def _credential_files(volume: ReadOnlyTree, references: References) -> Content:
    default = default_permissions(volume.get("projected") or {})
    return {
        path: FileProjection(data, *default.of_credential(source))
        for index, source in certificate_sources(volume)
        for path, data in certificate_files(source, references.credential(volume["name"], index)).items()
    }


def referenced_names(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[set[str], set[str]]:
    """Return the names of the ConfigMaps and of the Secrets that a container refers to."""
    return _names(container, mounted_volumes(pod, container))


def names_at_start(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[set[str], set[str]]:
    """Return the names of those whose changes do not reach a running container: in variables, and at subPaths."""
    fixed = {mount["name"] for mount in container.get("volumeMounts") or () if _is_fixed(mount)}
    volumes = pod["spec"].get("volumes") or () if fixed else ()
    return _names(container, (volume for volume in volumes if volume["name"] in fixed))


def _is_fixed(mount: ReadOnlyTree) -> bool:
    """Return whether a mount keeps the files that its volume had when the container started."""
    return bool(mount.get("subPath") or mount.get("subPathExpr"))


def _names(container: ReadOnlyTree, volumes: Iterable[ReadOnlyTree]) -> tuple[set[str], set[str]]:
    maps, secrets = set[str](), set[str]()
    for source in container.get("envFrom") or ():
        maps.add((source.get("configMapRef") or {}).get("name") or "")
        secrets.add((source.get("secretRef") or {}).get("name") or "")
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        maps.add((source.get("configMapKeyRef") or {}).get("name") or "")
        secrets.add((source.get("secretKeyRef") or {}).get("name") or "")
    for volume in volumes:
        maps.add((volume.get("configMap") or {}).get("name") or "")
        secrets.add((volume.get("secret") or {}).get("secretName") or "")
        for source in (volume.get("projected") or {}).get("sources") or ():
            maps.add((source.get("configMap") or {}).get("name") or "")
            secrets.add((source.get("secret") or {}).get("name") or "")
    return maps - {""}, secrets - {""}


def token_requests(pod: ReadOnlyTree, container: ReadOnlyTree) -> set[tuple[str, int]]:
    """Return the audience and the expiration seconds of each mounted token."""
    return {
        token_key(source["serviceAccountToken"])
        for volume in mounted_volumes(pod, container)
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken")
    }


def token_key(source: ReadOnlyTree) -> tuple[str, int]:
    return source.get("audience") or "", source.get("expirationSeconds") or 3600


def missing_token(pod: ReadOnlyTree, volume: ReadOnlyTree, references: References) -> str:
    """Return why a volume lacks a token of the pod's account; "" if it has all."""
    for source in (volume.get("projected") or {}).get("sources") or ():
        token = source.get("serviceAccountToken")
        if token and token_key(token) not in references.tokens:
            account = pod["spec"].get("serviceAccountName") or "default"
            return f"failed to fetch token: no token for the service account {account}"
    return ""


def mounted_volumes(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    return (volume for volume in pod["spec"].get("volumes") or () if volume["name"] in names)


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
    references = references.at_start() if _is_fixed(mount) else references
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


def folder_mode(kind: str, source: ReadOnlyTree) -> int:
    """Return the permissions of a volume's folder, before it is given to the fsGroup."""
    return int(source.get("mode", 0o777)) if kind == "emptyDir" else 0o777


def sub_path(mount: ReadOnlyTree, environment: Mapping[str, str]) -> str:
    """Return the path in the volume that is mounted; "" for the whole volume."""
    expression = mount.get("subPathExpr")
    return expand_references([expression], environment)[0] if expression else mount.get("subPath") or ""


def config_error(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return a kubelet's message why a container's mounts are invalid; "" if they are valid."""
    mounts = [mount for mount in container.get("volumeMounts") or () if mount.get("subPathExpr")]
    unknown = unknown_variables(container) if mounts else None
    if unknown is None:
        return ""
    environment = known_environment(pod, container)
    for mount in mounts:
        names = reference_names(mount["subPathExpr"])
        missing = sorted(name for name in names - unknown if not environment.get(name))
        if missing:
            return f"missing value for {', '.join(missing)}"
        path = "" if names & unknown else sub_path(mount, environment)
        if path.startswith("/"):
            return f"error SubPath `{path}` must not be an absolute path"
        if ".." in path.split("/"):
            return f"unable to provision SubPath `{path}`: must not contain '..'"
    return ""


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


def _content(
    kind: str,
    source: ReadOnlyTree,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
    outer: Permissions | None = None,
) -> Content:
    default = default_permissions(source, outer)
    match kind:
        case "configMap":
            data = _map_data(references.config_maps.get(source.get("name") or ""))
            return _select_items(data, source.get("items"), default)
        case "secret":
            name = source.get("secretName") or source.get("name") or ""
            secret_data = decoded_data(references.secrets.get(name) or {})
            return _select_items(secret_data, source.get("items"), default)
        case "downwardAPI":
            return {
                item["path"]: FileProjection(
                    _downward_api_value(item, pod, container, references).encode(), *default.of(item)
                )
                for item in source.get("items") or ()
            }
        case "serviceAccountToken":
            token = references.tokens.get(token_key(source))
            permissions = default.of_credential(source)
            return {} if token is None else {source["path"]: FileProjection(token.encode(), *permissions)}
        case "projected":
            files: dict[str, FileProjection] = {}
            for part in source.get("sources") or ():
                for name, inner in part.items():
                    files |= _content(name, inner or {}, pod, container, references, default)
            return files
        case "clusterTrustBundle":
            anchors, _ = trust_anchors(source, references.bundles)
            return {source["path"]: FileProjection(anchors, *default.of_credential(source))}
        case _:
            return {}


def _map_data(config_map: ReadOnlyTree | None) -> Mapping[str, bytes]:
    tree = config_map or {}
    data = {name: text.encode() for name, text in (tree.get("data") or {}).items()}
    return data | decoded_data({"data": tree.get("binaryData") or {}})


def _select_items(
    data: Mapping[str, bytes], items: Sequence[Mapping[str, Any]] | None, default: Permissions
) -> Content:
    if not items:
        return {name: FileProjection(value, *default) for name, value in data.items()}
    return {
        item["path"]: FileProjection(data[item["key"]], *default.of(item))
        for item in items
        if item["key"] in data
    }


def _downward_api_value(
    item: ReadOnlyTree, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> str:
    if item.get("fieldRef"):
        return field_value(pod, item["fieldRef"]["fieldPath"])
    return resource_value(pod, item["resourceFieldRef"], container, references.allocatable)
