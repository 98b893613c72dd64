"""A claim of the default storage class: its volume is attached for a pod, and expanded on request."""

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {{name: data}}
spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: {size}}}}}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: reader}
spec:
  containers: [{name: c, image: nginx, volumeMounts: [{name: v, mountPath: /data}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""


def test_claim_is_attached_and_expanded(cluster):
    cluster.apply(CLAIM.format(size="1Gi"))
    cluster.apply(POD)
    cluster.wait("Pod", "reader", lambda tree: tree["status"]["phase"] == "Running")
    cluster.apply(CLAIM.format(size="3Gi"))
    claim = cluster.wait(
        "PersistentVolumeClaim",
        "data",
        lambda tree: tree["status"]["capacity"] == {"storage": "3Gi"} and not is_resizing(tree),
    )
    assert "allocatedResourceStatuses" not in claim["status"]
    volume = cluster.get("PersistentVolume", claim["spec"]["volumeName"])
    assert volume["spec"]["capacity"] == {"storage": "3Gi"}
    events = [one["reason"] for one in cluster.list("Event") if one["involvedObject"]["name"] == "data"]
    assert {"ExternalExpanding", "Resizing", "FileSystemResizeRequired"} <= {*events}
    check_attached_until_the_pod_goes(cluster)


def is_resizing(claim):
    return any(condition["type"] != "Unused" for condition in claim["status"].get("conditions", ()))


def check_attached_until_the_pod_goes(cluster):
    pod = cluster.get("Pod", "reader")
    volume = cluster.get("PersistentVolumeClaim", "data")["spec"]["volumeName"]
    (found,) = cluster.list("VolumeAttachment")
    assert found["spec"]["nodeName"] == pod["spec"]["nodeName"]
    assert found["spec"]["source"] == {"persistentVolumeName": volume}
    cluster.wait("VolumeAttachment", found["metadata"]["name"], lambda tree: tree["status"]["attached"])
    cluster.wait("Node", pod["spec"]["nodeName"], lambda tree: "volumesAttached" in tree["status"])
    cluster.delete("Pod", "reader")
    cluster.wait_gone("VolumeAttachment", found["metadata"]["name"])
    cluster.wait("Node", pod["spec"]["nodeName"], lambda tree: "volumesAttached" not in tree["status"])


EXCLUSIVE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: disks}
provisioner: ebs.csi.aws.com
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {storageClassName: disks, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
USER = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  nodeName: {node}
  containers: [{{name: c, image: nginx, volumeMounts: [{{name: v, mountPath: /data}}]}}]
  volumes: [{{name: v, persistentVolumeClaim: {{claimName: disk}}}}]
"""


def test_pod_waits_for_volume_that_is_attached_to_another_node(cluster):
    here, there = (node["metadata"]["name"] for node in cluster.list("Node"))
    cluster.apply(EXCLUSIVE)
    cluster.wait("PersistentVolumeClaim", "disk", lambda tree: tree["status"]["phase"] == "Bound")
    cluster.apply(USER.format(name="first", node=here))
    cluster.wait("Pod", "first", lambda tree: tree["status"]["phase"] == "Running")
    cluster.apply(USER.format(name="second", node=there))
    (status,) = cluster.wait("Pod", "second", lambda tree: "startTime" in tree["status"])["status"][
        "containerStatuses"
    ]
    assert status["state"] == {"waiting": {"reason": "ContainerCreating"}}
    cluster.delete("Pod", "first")
    cluster.wait("Pod", "second", lambda tree: tree["status"]["phase"] == "Running")
    (attachment,) = (
        one for one in cluster.list("VolumeAttachment") if one["spec"]["attacher"] == "ebs.csi.aws.com"
    )
    cluster.delete("Pod", "second")
    cluster.delete("PersistentVolumeClaim", "disk")
    cluster.wait_gone("VolumeAttachment", attachment["metadata"]["name"])
