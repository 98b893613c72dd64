"""A claim that asks for more gets it: of the default class, with a pod that runs."""

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
  containers: [{name: c, image: busybox, volumeMounts: [{name: v, mountPath: /data}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]
"""


def test_a_claim_that_asks_for_more_gets_it(cluster):
    cluster.apply(CLAIM.format(size="1Gi"))
    cluster.apply(POD)
    cluster.wait("Pod", "reader", lambda tree: tree["status"]["phase"] == "Running")
    cluster.apply(CLAIM.format(size="3Gi"))
    claim = cluster.wait(
        "PersistentVolumeClaim",
        "data",
        lambda tree: tree["status"]["capacity"] == {"storage": "3Gi"} and "conditions" not in tree["status"],
    )
    assert "allocatedResourceStatuses" not in claim["status"]
    volume = cluster.get("PersistentVolume", claim["spec"]["volumeName"])
    assert volume["spec"]["capacity"] == {"storage": "3Gi"}
    events = [one["reason"] for one in cluster.list("Event") if one["involvedObject"]["name"] == "data"]
    assert {"ExternalExpanding", "Resizing", "FileSystemResizeRequired"} <= {*events}
