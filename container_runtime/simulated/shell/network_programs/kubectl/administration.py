"""The commands of kubectl for administrators: of nodes, of the cluster's addresses and of kubeconfigs."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.container_runtime.simulated.shell.options import ProgramOptions
from mockube.container_runtime.simulated.shell.process import Output, Process, Run, Sleep, write_text

from . import output
from .client import ApiClient, ServerError, Work
from .connection import Kubeconfig, KubectlError, find_kubeconfig
from .selection import is_on, wait_gone

_TOO_MANY: Final = 429
_RETRY_SECONDS: Final = 5.0
_MERGE: Final = "application/merge-patch+json"
_DATA: Final = ("certificate-authority-data", "client-certificate-data", "client-key-data")
_HIDDEN: Final = {**dict.fromkeys(_DATA, "DATA+OMITTED"), "token": "REDACTED"}


def version(_: Process, client: ApiClient, _options: ProgramOptions, _words: Sequence[str]) -> Run:
    info = yield from client.send("GET", "/version")
    yield write_text(f"Server Version: {info.get('gitVersion')}\n")
    return 0


def cluster_info(_: Process, client: ApiClient, _options: ProgramOptions, _words: Sequence[str]) -> Run:
    yield write_text(f"Kubernetes control plane is running at {client.server}\n")
    query = {"labelSelector": "kubernetes.io/cluster-service=true"}
    services = yield from client.send("GET", "/api/v1/namespaces/kube-system/services", query=query)
    for service in services.get("items") or ():
        name = meta.name(service)
        title = meta.labels(service).get("kubernetes.io/name") or name
        port = next(
            (f":{each['name']}" for each in service["spec"].get("ports") or () if each.get("name")), ""
        )
        path = f"/api/v1/namespaces/kube-system/services/{name}{port}/proxy"
        yield write_text(f"{title} is running at {client.server}{path}\n")
    yield write_text("\nTo further debug and diagnose cluster problems, use 'kubectl cluster-info dump'.\n")
    return 0


def cordon(_: Process, client: ApiClient, _options: ProgramOptions, words: Sequence[str]) -> Run:
    return (yield from _set_unschedulable(client, words, value=True))


def uncordon(_: Process, client: ApiClient, _options: ProgramOptions, words: Sequence[str]) -> Run:
    return (yield from _set_unschedulable(client, words, value=False))


def _set_unschedulable(client: ApiClient, names: Sequence[str], *, value: bool) -> Run:
    verb = "cordoned" if value else "uncordoned"
    if not names:
        raise KubectlError(f"error: USAGE: {verb.removesuffix('ed')} NODE [flags]")
    for name in (each.removeprefix("node/") for each in names):
        node = yield from client.send("GET", f"/api/v1/nodes/{name}")
        if bool(node["spec"].get("unschedulable")) == value:
            yield write_text(f"node/{name} already {verb}\n")
            continue
        body = {"spec": {"unschedulable": value or None}}
        yield from client.send("PATCH", f"/api/v1/nodes/{name}", body=body, content_type=_MERGE)
        yield write_text(f"node/{name} {verb}\n")
    return 0


def drain(_: Process, client: ApiClient, options: ProgramOptions, words: Sequence[str]) -> Run:
    yield from _set_unschedulable(client, words, value=True)
    for name in (each.removeprefix("node/") for each in words):
        query = {"fieldSelector": f"spec.nodeName={name}"}
        listed = yield from client.send("GET", "/api/v1/pods", query=query)
        pods = [
            pod for pod in listed.get("items") or () if ANNOTATION_MIRROR_POD not in meta.annotations(pod)
        ]
        problems = [*_obstacles(pods, options)]
        if problems:
            text = ", ".join(problems)
            yield Output(
                2,
                f'error: unable to drain node "{name}" due to error: [{text}], continuing command...\n'
                f"There are pending nodes to be drained:\n {name}\n".encode(),
            )
            raise KubectlError("\n".join(problems))
        ignored = [pod for pod in pods if _is_of_daemon_set(pod)]
        if ignored:
            yield Output(2, f"Warning: ignoring DaemonSet-managed Pods: {_names(ignored)}\n".encode())
        yield from _evict(client, [pod for pod in pods if not _is_of_daemon_set(pod)])
        yield write_text(f"node/{name} drained\n")
    return 0


def _names(pods: Sequence[ReadOnlyTree]) -> str:
    return ", ".join(meta.namespaced_name(pod) for pod in pods)


def _is_of_daemon_set(pod: ReadOnlyTree) -> bool:
    owner = meta.controller_of(pod)
    return owner is not None and owner["kind"] == "DaemonSet"


def _obstacles(pods: Sequence[ReadOnlyTree], options: ProgramOptions) -> Iterator[str]:
    """Yield why a node cannot be drained without further flags."""
    running = [pod for pod in pods if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")]
    unmanaged = [pod for pod in running if meta.controller_of(pod) is None]
    of_daemon_sets = [pod for pod in pods if _is_of_daemon_set(pod)]
    with_data = [
        pod
        for pod in running
        if not _is_of_daemon_set(pod)
        and any("emptyDir" in volume for volume in pod["spec"].get("volumes") or ())
    ]
    if with_data and not is_on(options, "delete-emptydir-data"):
        yield f"cannot delete Pods with local storage (use --delete-emptydir-data to override): {_names(with_data)}"
    if of_daemon_sets and not is_on(options, "ignore-daemonsets"):
        yield f"cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): {_names(of_daemon_sets)}"
    if unmanaged and not is_on(options, "force"):
        yield f"cannot delete Pods that declare no controller (use --force to override): {_names(unmanaged)}"


def _evict(client: ApiClient, pods: Sequence[ReadOnlyTree]) -> Work[None]:
    for pod in pods:
        yield write_text(f"evicting pod {meta.namespaced_name(pod)}\n")
    for pod in pods:
        name, namespace = meta.name(pod), meta.namespace(pod)
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
        }
        while True:
            try:
                yield from client.send("POST", f"{path}/eviction", body=body)
                break
            except ServerError as error:
                if error.reason == "NotFound":
                    break
                if error.http_code != _TOO_MANY:
                    raise
                yield Output(
                    2,
                    f'error when evicting pods/"{name}" -n "{namespace}" (will retry after 5s): {error.text}\n'.encode(),
                )
            yield Sleep(_RETRY_SECONDS)
        yield from wait_gone(client, path, meta.uid(pod))
        yield write_text(f"pod/{name} evicted\n")


def config(process: Process, options: ProgramOptions, words: Sequence[str]) -> Run:
    """Run `kubectl config`, which needs no server."""
    kubeconfig = find_kubeconfig(process, options) or Kubeconfig(process, "", {})
    match words:
        case ["view"]:
            yield write_text(output.to_yaml(_hidden(kubeconfig.tree)))
        case ["current-context"]:
            if not kubeconfig.current_context:
                raise KubectlError("error: current-context is not set")
            yield write_text(f"{kubeconfig.current_context}\n")
        case ["get-contexts"]:
            yield write_text(output.align(_context_rows(kubeconfig)))
        case _:
            raise KubectlError(
                f"error: kubectl config {' '.join(words)} is not simulated: view, current-context and get-contexts are"
            )
    return 0


def _hidden(tree: Any) -> Any:
    """Return a kubeconfig without its credentials."""
    if isinstance(tree, dict):
        return {key: _HIDDEN.get(key) or _hidden(value) for key, value in tree.items()}
    return [_hidden(each) for each in tree] if isinstance(tree, list) else tree


def _context_rows(config: Kubeconfig) -> Sequence[Sequence[str]]:
    """Return what `kubectl config get-contexts` shows of each context."""
    rows: list[Sequence[str]] = [("CURRENT", "NAME", "CLUSTER", "AUTHINFO", "NAMESPACE")]
    for each in config.tree.get("contexts") or ():
        name, context = str(each.get("name") or ""), each.get("context") or {}
        mark = "*" if name == config.current_context else ""
        fields = (str(context.get(field) or "") for field in ("cluster", "user", "namespace"))
        rows.append((mark, name, *fields))
    return rows
