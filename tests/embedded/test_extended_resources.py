"""Pods get devices for the extended resources that device classes provide."""

DEVICES = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: gpu.example.com
  nodeName: node-2
  pool: {name: p, generation: 1, resourceSliceCount: 1}
  devices: [{name: g0}, {name: g1}]
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec:
  extendedResourceName: example.com/gpu
  selectors: [{cel: {expression: 'device.driver == "gpu.example.com"'}}]
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  containers: [{{name: c, image: nginx, resources: {{limits: {{{resource}: {amount}}}}}}}]
"""


def is_running(tree):
    return tree["status"]["phase"] == "Running"


def message_of(cluster, name):
    waiting = cluster.wait("Pod", name, lambda tree: tree["status"].get("conditions"))
    (condition,) = waiting["status"]["conditions"]
    return condition["message"]


def test_pod_gets_devices_for_extended_resource(cluster):
    cluster.apply(POD.format(name="first", resource="example.com/gpu", amount=2))
    assert "2 Insufficient example.com/gpu" in message_of(cluster, "first")
    cluster.apply(DEVICES)
    cluster.advance(15)
    first = cluster.wait("Pod", "first", is_running)
    assert first["spec"]["nodeName"] == "node-2"
    status = first["status"]["extendedResourceClaimStatus"]
    mapping = {
        "containerName": "c",
        "resourceName": "example.com/gpu",
        "requestName": "container-0-request-0",
    }
    assert status["requestMappings"] == [mapping]
    claim = cluster.get("ResourceClaim", status["resourceClaimName"])
    assert claim["metadata"]["name"].startswith("first-extended-resources-")
    assert claim["spec"]["devices"]["requests"] == [
        {
            "name": "container-0-request-0",
            "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2},
        }
    ]
    results = claim["status"]["allocation"]["devices"]["results"]
    assert [one["device"] for one in results] == ["g0", "g1"]
    assert [one["uid"] for one in claim["status"]["reservedFor"]] == [first["metadata"]["uid"]]

    implicit = "deviceclass.resource.kubernetes.io/gpu"
    cluster.apply(POD.format(name="second", resource=implicit, amount=1))
    assert "2 cannot allocate all claims" in message_of(cluster, "second")
    cluster.delete("Pod", "first")
    cluster.wait_gone("ResourceClaim", status["resourceClaimName"])
    cluster.advance(15)
    second = cluster.wait("Pod", "second", is_running)
    assert second["status"]["extendedResourceClaimStatus"]["requestMappings"][0]["resourceName"] == implicit
    cluster.delete("Pod", "second")
    cluster.wait_gone("Pod", "second")
