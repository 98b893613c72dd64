"""Containers as CRI describes them."""

from mockube.kubelet.node_machine import cri_objects

POD = {
    "metadata": {"name": "kube-proxy", "namespace": "kube-system", "uid": "u1"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "volumeMounts": [
                    {"name": "lock", "mountPath": "/run/xtables.lock"},
                    {"name": "config", "mountPath": "/config", "readOnly": True},
                ],
            }
        ],
        "volumes": [
            {"name": "lock", "hostPath": {"path": "/run/xtables.lock"}},
            {"name": "config", "configMap": {"name": "kube-proxy"}},
        ],
    },
    "status": {
        "containerStatuses": [
            {"name": "c", "containerID": "x://1", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}
        ]
    },
}


def test_mounts_of_a_container_are_where_the_kubelet_has_the_volumes():
    (item,) = cri_objects.containers([POD])
    mounts = cri_objects.status_of_container(item, POD, "/log", {})["status"]["mounts"]
    assert [(each["hostPath"], each["readonly"]) for each in mounts] == [
        ("/run/xtables.lock", False),
        ("/var/lib/kubelet/pods/u1/volumes/kubernetes.io~configmap/config", True),
    ]
