"""The contents of volumes: those of claims and nodes outlive their pods, those of an emptyDir do not."""

CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: contents}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  containers:
  - name: c
    image: busybox
    command: [sh, -c, {command!r}]
    volumeMounts: [{{name: v, mountPath: /data}}, {{name: h, mountPath: /host}}, {{name: e, mountPath: /empty}}]
  volumes:
  - {{name: v, persistentVolumeClaim: {{claimName: contents}}}}
  - {{name: h, hostPath: {{path: /srv/contents, type: DirectoryOrCreate}}}}
  - {{name: e, emptyDir: {{}}}}
"""


def run(cluster, name, command):
    """Return the log of a pod that has ended, and its phase; the pod is deleted."""
    cluster.apply(POD.format(name=name, command=command))
    pod = cluster.wait("Pod", name, lambda tree: tree["status"]["phase"] in ("Succeeded", "Failed"))
    log = cluster.logs(name)
    cluster.delete("Pod", name)
    cluster.wait_gone("Pod", name)
    return log, pod["status"]["phase"]


def test_files_of_claims_and_nodes_outlive_pods(cluster):
    cluster.apply(CLAIM)
    write = "for d in data host empty; do echo $d > /$d/x; done; dd if=/dev/zero of=/data/full bs=1M count=2"
    log, phase = run(cluster, "writer", write)
    assert "dd: error writing '/data/full': No space left on device" in log
    assert phase == "Failed"
    log, phase = run(
        cluster, "reader", "cat /data/x /host/x; ls /empty; rm /data/full; df -k /data | tail -1"
    )
    assert (log.splitlines()[:2], phase) == (["data", "host"], "Succeeded")
    assert log.splitlines()[2].split()[1:4] == ["1024", "0", "1023"]


HUNGRY = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  containers:
  - {{name: c, image: busybox, command: [sh, -c, {command!r}], resources: {{limits: {limits}}}, volumeMounts: [{{name: e, mountPath: /cache}}]}}
  volumes: [{{name: e, emptyDir: {{sizeLimit: 1Mi}}}}]
"""


def evicted(cluster, name):
    pod = cluster.wait("Pod", name, lambda tree: tree["status"]["phase"] == "Failed")
    [status] = pod["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 137
    [event] = [
        one
        for one in cluster.list("Event")
        if (one["reason"], one["involvedObject"]["name"]) == ("Evicted", name)
    ]
    assert event["message"] == pod["status"]["message"]
    return pod["status"]["reason"], pod["status"]["message"]


def test_pod_that_exceeds_a_size_limit_is_evicted(cluster):
    command = "dd if=/dev/zero of=/cache/x bs=1M count=2; sleep 3600"
    cluster.apply(HUNGRY.format(name="hungry", command=command, limits="{}"))
    assert evicted(cluster, "hungry") == ("Evicted", 'Usage of EmptyDir volume "e" exceeds the limit "1Mi". ')


def test_pod_that_exceeds_its_ephemeral_storage_by_exec_is_evicted(cluster):
    limits = "{ephemeral-storage: 10Mi}"
    cluster.apply(HUNGRY.format(name="filling", command="sleep 3600", limits=limits))
    cluster.wait("Pod", "filling", lambda tree: tree["status"]["phase"] == "Running")
    cluster.exec("filling", ["fallocate", "-l", "20M", "/tmp/x"])
    message = "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. "
    assert evicted(cluster, "filling") == ("Evicted", message)
