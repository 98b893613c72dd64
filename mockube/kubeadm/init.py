"""What `kubeadm init` does, as a client of the API server, and what it leaves for the kubelets of the control plane."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import SUFFIX_ALPHABET, Random
from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import AlreadyExists, NotFound
from mockube.apimachinery.tree import Tree
from mockube.client.kinds import CONFIG_MAPS, NAMESPACES
from mockube.client.kubeconfig import Access
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.component_base.supervision import start_in
from mockube.kubelet.addresses import node_address
from mockube.kubelet.installation import Installation
from mockube.launch import MINIMAL, LaunchOptions, dns_address, service_network, values_of

from .addons import ClusterFacts, objects
from .static_pods import PKI, ControlPlaneFlags, api_server_port, control_plane_names, manifests

CONFIGURATION: Final = Key("kube-system", "kubeadm-config")
"""The ConfigMap that shows that kubeadm has made the cluster, as also a real one does."""
ANNOTATION_MINOR: Final = "mockube.dev/kubeadm-minor"
"""The annotation of the namespace kube-system, which nobody can delete, with the minor release whose objects were created."""
_STORAGE_CLASS_CREATOR: Final = "simulated-storage-class"
"""What creates the storage class in a cluster of another profile, and what a user disables who wants none."""
_NAMESPACE: Final = Key("", CONFIGURATION.namespace)
POD_NETWORK: Final = "10.128.0.0/9"
_SEVERAL: Final = 2
_AT_ONCE: Final = 2
"""The requests that are sent at the same time: each takes a connection, whose TLS costs more than a request."""
_TOKEN: Final = (6, 16)
"""The lengths of the id and of the secret of a token."""
_KUBECONFIGS: Final = {
    Key("kube-public", "cluster-info"): "kubeconfig",
    Key("kube-system", "kube-proxy"): "kubeconfig.conf",
}
"""The ConfigMaps with the address of the API server, and its place there."""
_LOOPBACK_SERVER: Final = re.compile(r"server: https://(127\.[0-9.]+|localhost|\[::1\]):[0-9]+")
_CERTIFICATES: Final = ("apiserver", "apiserver-kubelet-client", "front-proxy-ca", "front-proxy-client")
_PROGRAMS: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")
_PLURALS: Final = {"APIService": "apiservices", "StorageClass": "storageclasses"}


def write_installation(
    path: Path, options: LaunchOptions, logs: Mapping[str, Path], store: str
) -> Sequence[str]:
    """Write what kubelets find on control-plane nodes; return the flags that tell it to the manager.

    `logs` are the log files of the two processes by the name of the first static pod that each stands for.
    """
    note = path.with_name("etcd-note.txt")
    note.write_bytes(_etcd_note(store))
    server, manager = (str(logs[name]) for name in _PROGRAMS[:2])
    names = control_plane_names(options.control_planes)
    flags = ControlPlaneFlags(
        minor=minor_of(options.flags),
        server=options.flags,
        manager=options.manager_flags,
        service_network=service_network(options.flags),
        pod_network=_pod_network(options.manager_flags),
    )
    installation = Installation(
        control_planes=len(names),
        files={name: manifests(flags, name, names[:index]) for index, name in enumerate(names)},
        logs=dict(zip(_PROGRAMS, (server, manager, manager, str(note)), strict=True)),
        certificates=_certificates(options.flags),
        authority=_pair(options.flags, "ca"),
        administrator=_pair(options.flags, "admin"),
        port=api_server_port(options.flags),
    )
    path.write_bytes(msgspec.json.encode(installation))
    return ("--installation", str(path))


def _certificates(flags: Sequence[str]) -> Mapping[str, str]:
    """Return where the API server has its certificates, by their paths on control-plane nodes."""
    values = values_of(flags)
    folder = values.get("cert-dir")
    paths = {name: str(Path(folder, f"{name}.crt")) for name in _CERTIFICATES} if folder else {}
    if "tls-cert-file" in values:
        paths["apiserver"] = values["tls-cert-file"]
    return {f"{PKI}/{name}.crt": path for name, path in paths.items()}


def _pair(flags: Sequence[str], name: str) -> tuple[str, str] | None:
    """Return the paths of a certificate and its key on this machine."""
    folder = values_of(flags).get("cert-dir")
    return (str(Path(folder, f"{name}.crt")), str(Path(folder, f"{name}.key"))) if folder else None


def _etcd_note(store: str) -> bytes:
    """Return the log of etcd, which says what there is in its place."""
    lines = (
        "this is not etcd: the API server of mockube keeps its objects in a store of its own, which no client of etcd reaches",
        f"objects are stored in {store}; `mockube snapshot save` saves them, as etcdctl snapshot save does",
    )
    return b"".join(
        msgspec.json.encode({"level": "warn", "logger": "mockube", "msg": line}) + b"\n" for line in lines
    )


def minor_of(flags: Sequence[str]) -> str:
    return values_of(flags).get("kubernetes-version") or minors.NEWEST


def problem_of(options: LaunchOptions) -> str:
    """Return why the flags do not allow the profile kubeadm; "" if they do."""
    try:
        dns_address(service_network(options.flags))
    except ValueError as error:
        return f"--service-cluster-ip-range: {error}, which --profile={MINIMAL} does not need"
    return ""


def _pod_network(flags: Sequence[str]) -> str:
    return values_of(flags).get("cluster-cidr") or POD_NETWORK


async def init(
    client: Client, access: Access, options: LaunchOptions, *, clock: Clock, random: Random
) -> bool:
    """Create the objects of a new cluster; return False if kubeadm has made it before, so that users keep their changes.

    A cluster that starts again may have another address on this machine.
    """
    if await _is_made(client):
        await update_server(client, access.server)
        return False
    facts = ClusterFacts(
        minor=minor_of(options.flags),
        server=access.server,
        authority=access.authority,
        service_network=service_network(options.flags),
        pod_network=_pod_network(options.manager_flags),
        token=(_token(random, _TOKEN[0]), _token(random, _TOKEN[1])),
        now=clock.now(),
        endpoint=_control_plane_endpoint(options),
    )
    has_class = _creates_storage_class(options.controllers)
    first, *others = objects(facts, has_storage_class=has_class)
    limit = asyncio.Semaphore(_AT_ONCE)

    async def create(tree: Tree) -> None:
        async with limit:
            await _create(client, tree)

    async with asyncio.TaskGroup() as group:
        for tree in others:
            start_in(group, f"create {meta.name(tree)}", create(tree))
    await _create(client, first)  # kubeadm-config, so that an interrupted start is repeated
    mark = {"metadata": {"annotations": {ANNOTATION_MINOR: facts.minor}}}
    await client.patch(NAMESPACES, _NAMESPACE, mark)
    return True


async def update_server(client: Client, server: str) -> None:
    """Write the address of the API server into the ConfigMaps that have an earlier one of this machine."""
    for key, name in _KUBECONFIGS.items():
        try:
            config_map = await client.get(CONFIG_MAPS, key)
        except NotFound:
            continue
        text = str((config_map.get("data") or {}).get(name) or "")
        new = _LOOPBACK_SERVER.sub(f"server: {server}", text)
        if new != text:
            await client.patch(CONFIG_MAPS, key, {"data": {name: new}})


def _control_plane_endpoint(options: LaunchOptions) -> str:
    """Return the address by which nodes reach the control plane if it has several nodes: that of the first one, as it gets it in a new cluster."""
    if options.control_planes < _SEVERAL:
        return ""
    return f"{node_address(options.nodes.count + 1)}:{api_server_port(options.flags)}"


def _creates_storage_class(controllers: Sequence[str]) -> bool:
    """Return whether `--controllers` includes what creates the class."""
    is_included = bool({"*", _STORAGE_CLASS_CREATOR} & {*controllers})
    return is_included and f"-{_STORAGE_CLASS_CREATOR}" not in controllers


async def _is_made(client: Client) -> bool:
    """Return whether objects were created before: a user may have deleted or changed any of them since."""
    namespace, has_configuration = await asyncio.gather(
        client.get(NAMESPACES, _NAMESPACE), _exists(client, CONFIGURATION)
    )
    return has_configuration or ANNOTATION_MINOR in meta.annotations(namespace)


async def _exists(client: Client, config_map: Key) -> bool:
    try:
        await client.get(CONFIG_MAPS, config_map)
    except NotFound:
        return False
    return True


def _token(random: Random, length: int) -> str:
    return "".join(SUFFIX_ALPHABET[byte % len(SUFFIX_ALPHABET)] for byte in random.bytes(length))


async def _create(client: Client, tree: Tree) -> None:
    """Create an object, unless it exists already."""
    api_version, kind = tree["apiVersion"], tree["kind"]
    prefix = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    namespace = f"/namespaces/{quote(meta.namespace(tree))}" if meta.namespace(tree) else ""
    path = f"{prefix}{namespace}/{_PLURALS.get(kind, f'{kind.lower()}s')}?fieldManager=kubeadm"
    with suppress(AlreadyExists):
        await client.raw("POST", path, body=msgspec.json.encode(tree))
