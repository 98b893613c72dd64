"""Pods meet nodes of pools: those with GPUs, in zones, with taints and reserved resources."""

from mockube import Cluster

GPU_POD = """
apiVersion: v1
kind: Pod
metadata: {name: train-%d}
spec:
  containers: [{name: main, image: trainer, resources: {limits: {nvidia.com/gpu: %d}}}]
"""


def is_bound(pod):
    return pod["spec"].get("nodeName")


def is_refused(pod):
    conditions = pod["status"].get("conditions", [])
    return next((one["message"] for one in conditions if one.get("reason") == "Unschedulable"), "")


def test_pod_with_gpus_runs_on_gpu_pool_and_one_with_too_many_is_pending():
    with Cluster(nodes="cpu=4,memory=16Gi:2, name=gpu,gpu=8:1") as cluster:
        cluster.apply(GPU_POD % (8, 8))
        assert cluster.wait("Pod", "train-8", "Ready")["spec"]["nodeName"] == "gpu-1"
        cluster.apply(GPU_POD % (9, 9))
        pod = cluster.wait("Pod", "train-9", is_refused)
        assert pod["status"]["phase"] == "Pending"
        assert is_refused(pod).startswith("0/3 nodes are available: 3 Insufficient nvidia.com/gpu.")
        (gpu_node,) = cluster.list("Node", labels="nvidia.com/gpu.present=true")
        assert gpu_node["metadata"]["name"] == "gpu-1"


def test_list_of_pools_has_taints_zones_and_reserved_resources():
    pools = [
        {"name": "app", "count": 4, "zones": ["a", "b"], "capacity": {"cpu": 2}, "reserved": {"cpu": "500m"}},
        {
            "name": "infra",
            "count": 1,
            "roles": ["infra"],
            "taints": [{"key": "infra", "effect": "NoSchedule"}],
            "unschedulable": True,
        },
    ]
    with Cluster(nodes=pools) as cluster:
        nodes = {node["metadata"]["name"]: node for node in cluster.list("Node")}
        assert [
            nodes[f"app-{n}"]["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in (1, 2, 3, 4)
        ] == [
            "a",
            "b",
            "a",
            "b",
        ]
        assert nodes["app-1"]["status"]["allocatable"]["cpu"] == "1500m"
        keys = {taint["key"] for taint in nodes["infra-1"]["spec"]["taints"]}
        assert keys == {"infra", "node.kubernetes.io/unschedulable"}
        cluster.create(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: app}\nspec: {containers: [{name: c, image: app}]}"
        )
        assert cluster.wait("Pod", "app", is_bound)["spec"]["nodeName"].startswith("app-")


def test_deprecated_flags_are_a_pool_and_reported(capsys):
    with Cluster(nodes=1, manager_flags=["--simulate-node-zones=a"]) as cluster:
        node = cluster.get("node", "node-1")
    assert node["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
    assert (
        "Flag --simulate-node-zones has been deprecated, use --simulate-nodes=zone=a:1"
        in capsys.readouterr().err
    )


DONGLE_POD = """
apiVersion: v1
kind: Pod
metadata: {name: %s}
spec:
  containers:
  - {name: main, image: nginx, resources: {requests: {example.com/dongle: %d}, limits: {example.com/dongle: %d}}}
"""


def test_pods_get_resources_that_a_client_advertises_for_a_node():
    """As the pages "Advertise Extended Resources for a Node" and "Assign Extended Resources to a Container"."""
    with Cluster(nodes=1) as cluster:
        cluster.patch(
            "Node", "node-1", {"status": {"capacity": {"example.com/dongle": "4"}}}, subresource="status"
        )
        cluster.apply(DONGLE_POD % ("first", 3, 3))
        cluster.wait("Pod", "first", "Ready")
        cluster.apply(DONGLE_POD % ("second", 2, 2))
        pod = cluster.wait("Pod", "second", is_refused)
        assert is_refused(pod).startswith("0/1 nodes are available: 1 Insufficient example.com/dongle.")
        cluster.patch(
            "Node", "node-1", {"status": {"capacity": {"example.com/dongle": "5"}}}, subresource="status"
        )
        cluster.wait("Pod", "second", "Ready")
