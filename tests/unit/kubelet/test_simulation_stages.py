"""Simulated pods that follow the user's stages, with a real server."""

from pathlib import Path

import yaml

from mockube.apimachinery.timestamps import format_time
from tests.support.controllers.simulated import MERGE, PODS, simulated_cluster

EVENTS = "/api/v1/namespaces/default/events"

STAGES = [
    {
        "metadata": {"name": "create"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {"matchExpressions": [{"key": ".status.podIP", "operator": "DoesNotExist"}]},
            "delay": {"durationMilliseconds": 2000},
            "immediateNextStage": True,
            "next": {
                "event": {"type": "Normal", "reason": "Created", "message": "{{ .metadata.name }}"},
                "statusTemplate": "phase: Pending\n"
                "podIP: {{ PodIPWith .spec.nodeName false .metadata.uid .metadata.name .metadata.namespace | Quote }}\n"
                "hostIP: {{ NodeIPWith .spec.nodeName }}",
            },
        },
    },
    {
        "metadata": {"name": "run"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "selector": {
                "matchExpressions": [
                    {"key": ".status.podIP", "operator": "Exists"},
                    {"key": ".status.phase", "operator": "In", "values": ["Pending"]},
                ]
            },
            "next": {"statusTemplate": "phase: Running\nstartTime: {{ Now | Quote }}"},
        },
    },
    {
        "metadata": {"name": "delete"},
        "spec": {
            "resourceRef": {"apiGroup": "v1", "kind": "Pod"},
            "weight": 1,
            "selector": {"matchExpressions": [{"key": ".metadata.deletionTimestamp", "operator": "Exists"}]},
            "delay": {"durationMilliseconds": 1000},
            "next": {"finalizers": {"empty": True}, "delete": True},
        },
    },
]


async def test_pods_follow_stages_of_user(tmp_path: Path):
    file = tmp_path / "stages.yaml"
    header = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "Stage"}
    file.write_text(yaml.safe_dump_all([{**header, **stage} for stage in STAGES]))
    async with simulated_cluster(stages=(file,)) as cluster:
        assert (await cluster.run())["status"]["phase"] == "Pending"
        await cluster.manager.step(2)
        pod = await cluster.pod()
        assert (pod["status"]["phase"], pod["status"]["podIP"]) == ("Running", "10.244.1.1")
        assert pod["status"]["startTime"] == format_time(cluster.clock.now())
        events = (await cluster.get(f"{EVENTS}?fieldSelector=involvedObject.kind%3DPod"))["items"]
        assert [(event["message"], event["source"]["component"]) for event in events] == [
            ("p", "kwok_controller")
        ]
        await cluster.server.patch(f"{PODS}/p", {"metadata": {"finalizers": ["a.b/c"]}}, **MERGE)
        await cluster.server.delete(f"{PODS}/p")
        await cluster.manager.settle()
        assert await cluster.pod() is not None
        await cluster.manager.step(1)
        assert await cluster.pod() is None
