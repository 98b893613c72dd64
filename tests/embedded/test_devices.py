"""Pods with device claims run only while a device is free for each of them."""

SLICE = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: node-1
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices: [{name: g0, attributes: {model: {string: a100}}}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: one}
spec:
  spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: one}}]
  containers: [{{name: c, image: nginx, resources: {{claims: [{{name: gpu}}]}}}}]
"""


def is_running(tree):
    return tree["status"]["phase"] == "Running"


def test_device_is_reallocated_after_pod_ends(cluster):
    cluster.apply(SLICE)
    cluster.apply(POD.format(name="first"))
    first = cluster.wait("Pod", "first", is_running)
    assert first["spec"]["nodeName"] == "node-1"
    name = first["status"]["resourceClaimStatuses"][0]["resourceClaimName"]
    claim = cluster.get("ResourceClaim", name)
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    assert (result["device"], claim["status"]["reservedFor"][0]["name"]) == ("g0", "first")
    cluster.apply(POD.format(name="second"))
    waiting = cluster.wait("Pod", "second", lambda tree: tree["status"].get("conditions"))
    (condition,) = waiting["status"]["conditions"]
    assert condition["message"].startswith("0/2 nodes are available: 2 cannot allocate all claims.")
    cluster.delete("Pod", "first")
    cluster.wait_gone("ResourceClaim", name)
    cluster.advance(15)
    cluster.wait("Pod", "second", is_running)
    cluster.delete("Pod", "second")
    cluster.wait_gone("Pod", "second")


def test_unused_claim_on_another_node_is_deallocated(cluster):
    cluster.apply(SLICE)
    cluster.apply(
        SLICE.split("---", maxsplit=1)[0]
        .replace("name: s", "name: t")
        .replace("node-1", "node-2")
        .replace("name: p", "name: q")
    )
    claim = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}
"""
    cluster.apply(claim)
    template = POD.replace("resourceClaimTemplateName: one", "resourceClaimName: gpu").replace(
        "spec:", "spec:\n  nodeSelector: {{kubernetes.io/hostname: {node}}}", 1
    )
    cluster.apply(template.format(name="third", node="node-1"))
    cluster.wait("Pod", "third", is_running)
    cluster.apply(template.format(name="fourth", node="node-2"))
    waiting = cluster.wait("Pod", "fourth", lambda tree: tree["status"].get("conditions"))
    (condition,) = waiting["status"]["conditions"]
    assert "1 resourceclaim not available on the node" in condition["message"]
    cluster.delete("Pod", "third")
    cluster.wait_gone("Pod", "third")
    cluster.advance(15)
    assert cluster.wait("Pod", "fourth", is_running)["spec"]["nodeName"] == "node-2"
    cluster.delete("Pod", "fourth")
    cluster.wait_gone("Pod", "fourth")
    for kind, name in (("ResourceClaim", "gpu"), ("ResourceSlice", "s"), ("ResourceSlice", "t")):
        cluster.delete(kind, name)
        cluster.wait_gone(kind, name)
