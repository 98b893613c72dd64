"""Where the logs of a pod are on its node."""

import pytest

from mockube.container_runtime.pod_log_paths import log_path


@pytest.mark.parametrize(
    ("annotations", "uid"), [({}, "u"), ({"kubernetes.io/config.mirror": "hash"}, "hash")]
)
def test_log_of_a_mirror_pod_has_the_uid_of_the_static_pod(annotations, uid):
    pod = {"metadata": {"namespace": "kube-system", "name": "etcd-a", "uid": "u", "annotations": annotations}}
    assert log_path(pod, "etcd", 1) == f"/var/log/pods/kube-system_etcd-a_{uid}/etcd/1.log"
