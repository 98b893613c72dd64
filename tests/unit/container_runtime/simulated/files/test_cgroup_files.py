"""A container's files in /sys/fs/cgroup match its resource limits."""

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.files.cgroup_files import cgroup_files
from mockube.container_runtime.simulated.files.mounts import files_of
from tests.support.images import IMAGES


def contents(resources, status=None):
    container = {"name": "c", "resources": resources}
    statuses = [{"name": "c", "resources": status}] if status else []
    found = dict(cgroup_files({"status": {"containerStatuses": statuses}}, container))
    return tuple(found[name].decode() for name in ("cpu.max", "cpu.weight", "memory.max"))


@pytest.mark.parametrize(
    ("requests", "limits", "expected"),
    [
        ({}, {}, ("max 100000\n", "1\n", "max\n")),
        ({"cpu": "1"}, {}, ("max 100000\n", "100\n", "max\n")),
        ({"cpu": "100m"}, {"cpu": "200m", "memory": "500Mi"}, ("20000 100000\n", "17\n", "524288000\n")),
        ({}, {"cpu": "2"}, ("200000 100000\n", "174\n", "max\n")),
        ({"cpu": "290m"}, {"cpu": "290m"}, ("29000 100000\n", "39\n", "max\n")),
        ({"cpu": "1m"}, {"cpu": "1m"}, ("1000 100000\n", "1\n", "max\n")),
        ({"cpu": "1000"}, {}, ("max 100000\n", "10000\n", "max\n")),
    ],
)
def test_values_follow_from_resources(requests, limits, expected):
    assert contents({"requests": requests, "limits": limits}) == expected


def test_resized_container_has_cgroup_values_of_status():
    assert contents({"limits": {"cpu": "1"}}, {"limits": {"cpu": "500m"}})[0] == "50000 100000\n"


def test_container_has_cgroup_files_and_sysctls_of_pod():
    spec = {"securityContext": {"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "1"}]}}
    pod = {"metadata": {"name": "p", "namespace": "d"}, "spec": {**spec, "containers": []}}
    files = files_of(IMAGES, pod, {"name": "c"}, References())
    assert files["/sys/fs/cgroup/memory.max"].data == b"max\n"
    assert files["/sys/fs/cgroup/pids.max"].data == b"max\n"
    assert files["/dev/termination-log"].data == b""
    assert files["/proc/sys/kernel/shm_rmid_forced"].data == b"1\n"
