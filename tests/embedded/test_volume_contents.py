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


CLONE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: copies}
provisioner: hostpath.csi.k8s.io
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: original}
spec: {storageClassName: copies, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: copy}
spec:
  storageClassName: copies
  accessModes: [ReadWriteOnce]
  resources: {requests: {storage: 1Mi}}
  dataSource: {kind: PersistentVolumeClaim, name: original}
"""


def test_clone_has_the_contents_of_its_origin_at_first(cluster):
    cluster.apply(CLONE)
    volume = POD.replace("claimName: contents", "claimName: {claim}")

    def log_of(name, claim, command):
        cluster.apply(volume.format(name=name, claim=claim, command=command))
        cluster.wait("Pod", name, lambda tree: tree["status"]["phase"] == "Succeeded")
        return cluster.logs(name)

    log_of("first", "original", "echo 1 > /data/x")
    assert log_of("second", "copy", "cat /data/x; echo 2 > /data/x") == "1\n"
    assert log_of("third", "original", "cat /data/x") == "1\n"
    assert log_of("fourth", "copy", "cat /data/x") == "2\n"


SHARED = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}}}
spec:
  restartPolicy: Never
  containers:
  - {{name: c, image: busybox, command: [sh, -c, {command!r}], resources: {{limits: {{memory: 48Mi}}}}}}
  - {{name: other, image: busybox, command: [sleep, "3600"]}}
"""


def test_shared_memory_has_a_size_and_counts_as_memory(cluster):
    fill = "df -k /dev/shm | tail -1; dd if=/dev/zero of=/dev/shm/x bs=1M count={}"
    cluster.apply(SHARED.format(name="shared", command="sleep 3600"))
    cluster.wait("Pod", "shared", lambda tree: tree["status"]["phase"] == "Running")
    filled = cluster.exec("shared", ["sh", "-c", fill.format(80)], container="other")
    assert filled.stdout.split()[:4] == ["shm", "65536", "0", "65536"]
    assert "No space left on device" in filled.stderr
    assert "x\n" in cluster.exec("shared", ["ls", "/dev/shm"], container="c").stdout
    cluster.apply(SHARED.format(name="killed", command=fill.format(60)))
    pod = cluster.wait(
        "Pod", "killed", lambda tree: "terminated" in tree["status"]["containerStatuses"][0]["state"]
    )
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["reason"] == "OOMKilled"
