"""Health checks of a cluster. They use the HTTP client of the standard library, which is imported faster than others."""

import http.client
import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.pods import assumption_of
from mockube.client.kubeconfig import Access, KubeconfigError, read
from mockube.component_base import component_urls

from .named_cluster import ClusterState, FoundCluster

SECONDS: Final = 5.0
_PAGE: Final = 500
"""The pods of one request."""
_NOT_SIMULATED: Final = "NotSimulated"
"""The reason of the event about a program that is not simulated."""
_NOT_RECONCILED: Final = "NotReconciled"
"""The reason of the event about a custom object whose operator is simulated."""


class ClusterHealth(Struct, frozen=True, kw_only=True):
    """The problems of a cluster, and its nodes."""

    problems: tuple[str, ...] = ()
    nodes: int = 0
    nodes_ready: int = 0
    not_simulated: tuple[str, ...] = ()
    """The pods with something that is not simulated, each with the message of its event."""
    assumed: tuple[str, ...] = ()
    """The pods that are ready by assumption, each with what of it was not run."""
    not_reconciled: tuple[str, ...] = ()
    """The custom objects whose operator is simulated, each with the message of its event."""


def check_health(cluster: FoundCluster) -> ClusterHealth:
    """Return the health of a cluster that is running, starting or was killed."""
    if cluster.record is None or cluster.state is ClusterState.DEAD:
        return ClusterHealth(problems=("the process that ran it was killed",))
    if cluster.state is ClusterState.STARTING:
        return ClusterHealth(problems=("it is not ready yet",))
    problems = [
        f"the {name} is not running"
        for name, component in cluster.record.components.items()
        if not component.pid
    ]
    problems += _component_problems(cluster)
    try:
        return _check_server(cluster.folder.kubeconfig, problems)
    except (OSError, http.client.HTTPException, KubeconfigError) as error:
        return ClusterHealth(problems=(*problems, f"{cluster.record.url} does not respond: {error}"))


def _component_problems(cluster: FoundCluster) -> Iterator[str]:
    """Yield the components that do not say in time that they are healthy, such as one that was stopped."""
    urls = component_urls.read_component_urls(cluster.folder.component_urls)
    names = (component_urls.CONTROLLER_MANAGER, component_urls.SCHEDULER)
    by_url = {urls[name]: name for name in reversed(names) if name in urls}
    running = cluster.record.components if cluster.record is not None else {}
    for url, name in by_url.items():
        if name in running and not running[name].pid:
            continue
        parts = urlsplit(url)
        try:
            status, body = get(Access(server=f"{parts.scheme}://{parts.netloc}", insecure=True), parts.path)
        except (OSError, http.client.HTTPException) as error:
            yield f"the {name} does not respond: {error}"
        else:
            if status != http.client.OK:
                yield f"the {name} is not healthy: {body.decode(errors='replace')}"


def _check_server(kubeconfig: Path, problems: list[str]) -> ClusterHealth:
    access = read(kubeconfig)
    status, body = get(access, "/readyz")
    if status != http.client.OK:
        return ClusterHealth(
            problems=(*problems, f"the API server is not ready: {body.decode(errors='replace')}")
        )
    status, body = get(access, "/api/v1/nodes")
    nodes: list[Mapping[str, Any]] = msgspec.json.decode(body).get("items") or []
    ready = sum(conditions.is_true(node, "Ready") for node in nodes)
    return ClusterHealth(
        problems=tuple(problems),
        nodes=len(nodes),
        nodes_ready=ready,
        not_simulated=_events(access, _NOT_SIMULATED),
        assumed=(*_assumed(access),),
        not_reconciled=_events(access, _NOT_RECONCILED),
    )


def _assumed(access: Access) -> Iterator[str]:
    """Yield the pods that are ready by assumption."""
    token = ""
    while True:
        status, body = get(access, f"/api/v1/pods?limit={_PAGE}{f'&continue={token}' if token else ''}")
        pods: Mapping[str, Any] = msgspec.json.decode(body) if status == http.client.OK else {}
        for pod in pods.get("items") or ():
            if conditions.is_true(pod, "Ready") and (text := assumption_of(pod)):
                yield f"{meta.namespace(pod)}/{meta.name(pod)}: {text}"
        token = (pods.get("metadata") or {}).get("continue") or ""
        if not token:
            return


def count_nodes(kubeconfig: Path) -> int | None:
    """Return the number of nodes; None if the server does not respond. One node is read, and how many others there are."""
    try:
        status, body = get(read(kubeconfig), "/api/v1/nodes?limit=1")
    except (OSError, http.client.HTTPException, KubeconfigError):
        return None
    if status != http.client.OK:
        return None
    tree: Mapping[str, Any] = msgspec.json.decode(body)
    return len(tree.get("items") or ()) + int(tree["metadata"].get("remainingItemCount", 0))


def read_config_map(kubeconfig: Path, namespace: str, name: str) -> Mapping[str, Any] | None:
    """Return a ConfigMap; None if it does not exist, or if the server does not respond."""
    try:
        status, body = get(read(kubeconfig), f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    except (OSError, http.client.HTTPException, KubeconfigError):
        return None
    tree: Mapping[str, Any] = msgspec.json.decode(body) if status == http.client.OK else {}
    return tree or None


def read_not_simulated(kubeconfig: Path) -> Sequence[str]:
    """Return the pods with something that is not simulated; none if the server does not respond."""
    try:
        return _events(read(kubeconfig), _NOT_SIMULATED)
    except (OSError, http.client.HTTPException, KubeconfigError):
        return ()


def _events(access: Access, reason: str) -> tuple[str, ...]:
    """Return the objects with an event of a reason, each with its message."""
    status, body = get(access, f"/api/v1/events?fieldSelector=reason%3D{reason}")
    events = msgspec.json.decode(body).get("items") or [] if status == http.client.OK else []
    messages = (
        f"{event['involvedObject'].get('namespace')}/{event['involvedObject'].get('name')}: {event.get('message')}"
        for event in events
    )
    return tuple(dict.fromkeys(messages))


def _connection(access: Access) -> http.client.HTTPConnection:
    url = urlsplit(access.server)
    if url.scheme == "http":
        return http.client.HTTPConnection(url.hostname or "", url.port, timeout=SECONDS)
    context = ssl.create_default_context(cadata=access.authority.decode())
    if access.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(url.hostname or "", url.port, context=context, timeout=SECONDS)


def get(access: Access, path: str, *, accept: str = "*/*") -> tuple[int, bytes]:
    """Send a request; return the status code and the body of its response."""
    connection = _connection(access)
    headers = {"Authorization": f"Bearer {access.token}"} if access.token else {}
    try:
        connection.request("GET", path, headers={**headers, "Accept": accept})
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()
