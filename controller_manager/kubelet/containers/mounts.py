"""The files of a container: what its volumes hold, and the few that every container has. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from posixpath import join
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.kubelet.containers.environment import (
    References,
    decoded_data,
    field_value,
    hostname_of,
    resource_value,
)
from mockube.controller_manager.kubelet.shell.filesystem import Entry
from mockube.controller_manager.kubelet.shell.programs import PROGRAMS

_READ_ONLY: Final = frozenset({"configMap", "secret", "downwardAPI", "projected"})
_RESOLV_CONF: Final = "search {namespace}.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
Content = Mapping[str, bytes]


def files_of(pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> dict[str, Entry]:
    """Every file and directory by its path."""
    found = dict(_system_files(pod))
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"])
        if volume is not None:
            found |= _mounted(mount, volume, pod, container, references)
    return found


def referenced_names(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[set[str], set[str]]:
    """The names of the ConfigMaps and the Secrets that a container needs."""
    maps, secrets = set[str](), set[str]()
    for source in container.get("envFrom") or ():
        maps.add((source.get("configMapRef") or {}).get("name") or "")
        secrets.add((source.get("secretRef") or {}).get("name") or "")
    for entry in container.get("env") or ():
        source = entry.get("valueFrom") or {}
        maps.add((source.get("configMapKeyRef") or {}).get("name") or "")
        secrets.add((source.get("secretKeyRef") or {}).get("name") or "")
    for volume in _mounted_volumes(pod, container):
        maps.add((volume.get("configMap") or {}).get("name") or "")
        secrets.add((volume.get("secret") or {}).get("secretName") or "")
        for source in (volume.get("projected") or {}).get("sources") or ():
            maps.add((source.get("configMap") or {}).get("name") or "")
            secrets.add((source.get("secret") or {}).get("name") or "")
    return maps - {""}, secrets - {""}


def token_requests(pod: ReadOnlyTree, container: ReadOnlyTree) -> set[tuple[str, int]]:
    """The audience and the seconds of each token that is mounted."""
    return {
        _token_key(source["serviceAccountToken"])
        for volume in _mounted_volumes(pod, container)
        for source in (volume.get("projected") or {}).get("sources") or ()
        if source.get("serviceAccountToken")
    }


def _token_key(source: ReadOnlyTree) -> tuple[str, int]:
    return source.get("audience") or "", source.get("expirationSeconds") or 3600


def _mounted_volumes(pod: ReadOnlyTree, container: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    names = {mount["name"] for mount in container.get("volumeMounts") or ()}
    return (volume for volume in pod["spec"].get("volumes") or () if volume["name"] in names)


def _system_files(pod: ReadOnlyTree) -> Iterator[tuple[str, Entry]]:
    host, address = hostname_of(pod), (pod.get("status") or {}).get("podIP") or "127.0.0.1"
    hosts = f"# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n{address}\t{host}\n"
    yield "/etc/hostname", Entry(data=f"{host}\n".encode())
    yield "/etc/hosts", Entry(data=hosts.encode())
    yield "/etc/resolv.conf", Entry(data=_RESOLV_CONF.format(namespace=meta.namespace(pod)).encode())
    yield "/dev/null", Entry(data=b"", mode=0o666)
    for folder in ("/tmp", "/root", "/home", "/var/log", "/var/run", "/usr/bin", "/proc"):  # noqa: S108 - of a simulated container
        yield folder, Entry(mode=0o755)
    for name in PROGRAMS:
        yield f"/bin/{name}", Entry(data=b"", mode=0o755)


def _mounted(
    mount: ReadOnlyTree,
    volume: ReadOnlyTree,
    pod: ReadOnlyTree,
    container: ReadOnlyTree,
    references: References,
) -> dict[str, Entry]:
    kind = next((name for name in volume if name != "name"), "emptyDir")
    content = _content(kind, volume[kind] or {}, pod, container, references) if kind in _READ_ONLY else {}
    read_only = kind in _READ_ONLY or bool(mount.get("readOnly"))
    mode = (volume.get(kind) or {}).get("defaultMode") or 0o644
    place, inner = mount["mountPath"], (mount.get("subPath") or "").strip("/")
    if inner in content:
        return {place: Entry(data=content[inner], mode=mode, read_only=read_only)}
    found = {place: Entry(mode=0o755, read_only=read_only)}
    for name, data in content.items():
        if not inner or name.startswith(f"{inner}/"):
            path = join(place, name.removeprefix(f"{inner}/") if inner else name)
            found[path] = Entry(data=data, mode=mode, read_only=read_only)
    return found


def _content(
    kind: str, source: ReadOnlyTree, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Content:
    match kind:
        case "configMap":
            return _chosen(
                _map_data(references.config_maps.get(source.get("name") or "")), source.get("items")
            )
        case "secret":
            name = source.get("secretName") or source.get("name") or ""
            return _chosen(decoded_data(references.secrets.get(name) or {}), source.get("items"))
        case "downwardAPI":
            return {
                item["path"]: _downward(item, pod, container, references).encode()
                for item in source.get("items") or ()
            }
        case "serviceAccountToken":
            token = references.tokens.get(_token_key(source))
            return {} if token is None else {source["path"]: token.encode()}
        case "projected":
            found: dict[str, bytes] = {}
            for part in source.get("sources") or ():
                for name, inner in part.items():
                    found |= _content(name, inner or {}, pod, container, references)
            return found
        case _:
            return {}


def _map_data(config_map: ReadOnlyTree | None) -> Content:
    found = config_map or {}
    data = {name: text.encode() for name, text in (found.get("data") or {}).items()}
    return data | decoded_data({"data": found.get("binaryData") or {}})


def _chosen(data: Content, items: Sequence[Mapping[str, Any]] | None) -> Content:
    if not items:
        return data
    return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def _downward(item: ReadOnlyTree, pod: ReadOnlyTree, container: ReadOnlyTree, references: References) -> str:
    if item.get("fieldRef"):
        return field_value(pod, item["fieldRef"]["fieldPath"])
    return resource_value(pod, item["resourceFieldRef"], container, references.allocatable)
