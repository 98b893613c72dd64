"""The volumes of a container: the files that API objects give them, and the names of these objects. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree

from .environment import (
    References,
    decoded_data,
    field_value,
    known_environment,
    resource_value,
    unknown_variables,
)
from .file_projection import Content, FileProjection, Permissions, default_permissions
from .projections import certificate_files, certificate_sources, trust_anchors
from .variables import expand_references, reference_names

API_VOLUMES: Final = frozenset({"configMap", "secret", "downwardAPI", "projected"})
"""The kinds of volumes whose files come from API objects; containers cannot write them."""
READ_ONLY_VOLUMES: Final = API_VOLUMES | {"image"}
"""The kinds of volumes that containers cannot write: also those that are made of an image."""


_IN_MEMORY: Final = frozenset({"secret", "downwardAPI", "projected"})
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


def volume_kind(volume: ReadOnlyTree) -> str:
    return next((name for name in volume if name != "name"), "emptyDir")


def is_api_volume(volume: ReadOnlyTree) -> bool:
    """Return whether the files of a volume come from API objects."""
    return not API_VOLUMES.isdisjoint(volume)


def api_volume_names(pod: ReadOnlyTree) -> frozenset[str]:
    """Return the names of the volumes whose files come from API objects."""
    return frozenset(volume["name"] for volume in pod["spec"].get("volumes") or () if is_api_volume(volume))


def is_claim(volume: ReadOnlyTree) -> bool:
    """Return whether the contents of a volume are those of a claim."""
    return "persistentVolumeClaim" in volume or "ephemeral" in volume


def volume_content(
    volume: ReadOnlyTree, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Content | None:
    """Return the files of a volume from API objects; None for a volume that containers write."""
    kind = volume_kind(volume)
    if kind not in API_VOLUMES:
        return None
    content = _content(kind, volume.get(kind) or {}, pod, container, references)
    return {**content, **_credential_files(volume, pod, references)}


def _credential_files(volume: ReadOnlyTree, pod: ReadOnlyTree, references: References) -> Content:
    default = default_permissions(volume.get("projected") or {})
    return {
        path: FileProjection(data, *default.of_credential(source, pod))
        for index, source in certificate_sources(volume)
        for path, data in certificate_files(source, references.credential(volume["name"], index)).items()
    }


def referenced_names(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[set[str], set[str]]:
    """Return the names of the ConfigMaps and of the Secrets that a container refers to."""
    return _names(container, mounted_volumes(pod, container))


def names_at_start(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[set[str], set[str]]:
    """Return the names of those whose changes do not reach a running container: in variables, and at subPaths."""
    fixed = {mount["name"] for mount in container.get("volumeMounts") or () if is_fixed(mount)}
    volumes = pod["spec"].get("volumes") or () if fixed else ()
    return _names(container, (volume for volume in volumes if volume["name"] in fixed))


def is_fixed(mount: ReadOnlyTree) -> bool:
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


def is_in_memory(kind: str, source: ReadOnlyTree) -> bool:
    """Return whether a kubelet keeps a volume in memory, so that it is never on the disk of a node."""
    return kind in _IN_MEMORY or (kind == "emptyDir" and source.get("medium") == "Memory")


def folder_mode(kind: str, source: ReadOnlyTree) -> int:
    """Return the permissions of a volume's folder, before it is given to the fsGroup; a new tmpfs has the sticky bit."""
    mode = int(source.get("mode", 0o777)) if kind == "emptyDir" else 0o777
    return mode | 0o1000 if is_in_memory(kind, source) else mode


def time_of_content(volume: ReadOnlyTree, pod: ReadOnlyTree, references: References) -> datetime:
    """Return when a kubelet has written the present files of a volume: at the start of the pod, or after a change of an object."""
    maps, secrets = _names({}, [volume])
    objects = [*map(references.config_map, maps), *map(references.secret, secrets)]
    # Writes of statuses change no file.
    sources = [pod] if "downwardAPI" in volume or "projected" in volume else []
    times = [
        entry["time"]
        for tree in (*objects, *sources)
        if tree is not None
        for entry in meta.metadata(tree).get("managedFields") or ()
        if entry.get("time") and entry.get("subresource") != "status"
    ]
    started = (pod.get("status") or {}).get("startTime") or meta.metadata(pod).get("creationTimestamp")
    texts = [*times, started] if started else times
    return max(map(parse_time, texts), default=_NO_TIME)


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
            permissions = default.of_credential(source, pod)
            return {} if token is None else {source["path"]: FileProjection(token.encode(), *permissions)}
        case "projected":
            files: dict[str, FileProjection] = {}
            for part in source.get("sources") or ():
                for name, inner in part.items():
                    files |= _content(name, inner or {}, pod, container, references, default)
            return files
        case "clusterTrustBundle":
            anchors, _ = trust_anchors(source, references.bundles)
            return {source["path"]: FileProjection(anchors, *default.of_credential(source, pod))}
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
