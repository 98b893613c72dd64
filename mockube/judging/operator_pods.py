"""The pods that the instances of an operator stand for: those of its workload, or ones that the server would create from its template."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kubeconfig
from mockube.client.kinds import PODS
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.cluster import Cluster
from mockube.command_client import AGENT, open_client
from mockube.component_base.clock import Clock
from mockube.operators.operator_pod import INSTANCES, OperatorPod, pods_of, read_operator_pod

from .inputs import Workload

_RUNNING_SECONDS: Final = 10.0


def read_pod(
    cluster: Cluster, workload: Workload, token: str, number: int, folder: Path, clock: Clock
) -> OperatorPod:
    """Return the pod of an instance by its number."""
    tree = cluster.get(workload.kind, workload.name, namespace=workload.namespace)

    async def read() -> OperatorPod:
        async with open_client(kubeconfig.read(cluster.kubeconfig), clock) as client:
            pods: Sequence[ReadOnlyTree] = ()
            if workload.knows_its_pod:
                pods = await pods_of(client, tree, INSTANCES, clock, _RUNNING_SECONDS)
            name = f"{workload.name}-{number}"
            pod = pods[number % len(pods)] if pods else await _possible_pod(client, tree, name)
            return await read_operator_pod(client, pod, token, folder, clock.now())

    return asyncio.run(read())


async def _possible_pod(client: Client, workload: ReadOnlyTree, name: str) -> ReadOnlyTree:
    """Return a pod as the server would create it from the template, with what admission adds to it."""
    template, key = workload["spec"]["template"], Key(meta.namespace(workload), name)
    metadata = {**(template.get("metadata") or {}), "name": name}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
    return await client.patch(PODS, key, pod, kind="apply", dry_run=True, field_manager=AGENT)
