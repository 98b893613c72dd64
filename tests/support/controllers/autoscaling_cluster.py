"""A cluster with the HorizontalPodAutoscaler controller only, on a clock that the test steps, and pods with usage."""

from contextlib import asynccontextmanager

from mockube.apimachinery.schema.minors import NEWEST
from mockube.apimachinery.timestamps import format_time
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.config.features import Features
from mockube.controller_manager.config.settings import Config
from mockube.controller_manager.controllers.horizontalpodautoscaler.controller import (
    HORIZONTAL_POD_AUTOSCALER,
)
from tests.support.controllers.running_manager import running_cluster
from tests.support.server.definitions import define

CORE = "/api/v1/namespaces/default"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
AUTOSCALERS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
METRICS = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods"
PERIOD = 15


class AutoscalingCluster:
    def __init__(self, server, manager, clock):
        self.server, self.manager, self.clock = server, manager, clock

    async def period(self, times=1):
        for _ in range(times):
            await self.manager.step(PERIOD)

    async def post(self, path, body):
        answer = await self.server.post(path, body)
        assert answer.status == 201, answer.body
        return answer.body

    async def deploy(self, replicas=2, name="d"):
        """A Deployment without a controller that creates its pods."""
        labels = {"app": name}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
        await self.post(DEPLOYMENTS, {"metadata": {"name": name}, "spec": spec})

    async def autoscale(self, name="h", target=None, **spec):
        reference = target or {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
        body = {"scaleTargetRef": reference, "minReplicas": 1, "maxReplicas": 5, **spec}
        await self.post(AUTOSCALERS, {"metadata": {"name": name}, "spec": body})

    async def run_pod(self, name, cpu, app="d"):
        """A pod that has run for an hour, and its usage."""
        labels = {"app": app}
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        await self.post(
            f"{CORE}/pods",
            {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}},
        )
        now = format_time(self.clock.now())
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2020-01-01T01:00:00Z"}
        status = {"phase": "Running", "startTime": "2020-01-01T00:00:00Z", "conditions": [ready]}
        answer = await self.server.patch(f"{CORE}/pods/{name}/status", {"status": status})
        assert answer.status == 200, answer.body
        usage = {"name": "c", "usage": {"cpu": cpu, "memory": "1Gi"}}
        await self.post(
            METRICS,
            {
                "apiVersion": "metrics.k8s.io/v1beta1",
                "kind": "PodMetrics",
                "metadata": {"name": name, "labels": labels},
                "timestamp": now,
                "window": "30s",
                "containers": [usage],
            },
        )

    async def scale(self, name="d"):
        return (await self.server.get(f"{DEPLOYMENTS}/{name}")).body["spec"]["replicas"]

    async def status(self, name="h"):
        return (await self.server.get(f"{AUTOSCALERS}/{name}")).body["status"]

    async def conditions(self, name="h"):
        listed = (await self.status(name)).get("conditions") or ()
        return {one["type"]: (one["status"], one["reason"]) for one in listed}

    async def events(self):
        items = (await self.server.get(f"{CORE}/events")).body["items"]
        assert {one["source"]["component"] for one in items} <= {"horizontal-pod-autoscaler"}
        return [(one["type"], one["reason"], one["message"]) for one in items]


async def serve_metrics(server):
    """A custom kind in place of pod metrics."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    await define(
        server,
        {
            "metadata": {
                "name": "pods.metrics.k8s.io",
                "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
            },
            "spec": {
                "group": "metrics.k8s.io",
                "scope": "Namespaced",
                "names": {"plural": "pods", "kind": "PodMetrics"},
                "versions": [
                    {
                        "name": "v1beta1",
                        "served": True,
                        "storage": True,
                        "schema": {"openAPIV3Schema": schema},
                    }
                ],
            },
        },
    )


@asynccontextmanager
async def autoscaling_cluster(minor=NEWEST):
    clock, config = SteppedClock(), Config(features=Features(kubernetes_version=minor))
    used = {"clock": clock, "config": config, "runnables": [HORIZONTAL_POD_AUTOSCALER]}
    async with running_cluster(flags=(f"--kubernetes-version={minor}",), **used) as (server, manager):
        await server.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield AutoscalingCluster(server, manager, clock)
