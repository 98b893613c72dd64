"""What `kubeadm init` leaves for the kubelets of the control plane; the API server creates its objects."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from mockube.apimachinery.ip_addresses import dns_address
from mockube.apimachinery.schema import minors
from mockube.kubelet.installation import Installation
from mockube.launch import (
    MINIMAL,
    LaunchOptions,
    api_server_port,
    pod_network,
    service_network,
    values_of,
)

from .static_pods import PKI, ControlPlaneFlags, control_plane_names, manifests

_CERTIFICATES: Final = ("apiserver", "apiserver-kubelet-client", "front-proxy-ca", "front-proxy-client")
_PROGRAMS: Final = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd")


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
        pod_network=pod_network(options.manager_flags),
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
