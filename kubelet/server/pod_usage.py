"""The page with what the containers of all nodes use whose programs are known; a real metrics-server reads usage node by node."""

import orjson
from aiohttp import web

from mockube.apimachinery.quota.amounts import to_tree
from mockube.client.cache.store import Lister
from mockube.client.podview import PodView
from mockube.component_base.loop import yield_to_loop
from mockube.container_runtime.runtime import ContainerRuntime

from .node_usage import SLICE, measured_usage


async def pod_usage_page(
    pods: Lister[PodView], runtime: ContainerRuntime, *, namespace: str, name: str
) -> web.Response:
    """Return the usage by the uid of the pod and the container's name: of all pods, those of a namespace, or one."""
    found = pods.get(namespace, name) if name else None
    usage = {}
    for number, pod in enumerate(pods.all() if not name else () if found is None else (found,)):
        if number % SLICE == SLICE - 1:
            await yield_to_loop()
        if pod.node and (not namespace or pod.key.namespace == namespace):
            usage[pod.uid] = {
                container: to_tree(amounts)
                for container, amounts in measured_usage(pod.object, runtime).items()
            }
    body = orjson.dumps({uid: containers for uid, containers in usage.items() if containers})
    return web.Response(body=body, content_type="application/json")
