"""Which limits of the disk a pod exceeds, with the messages of a kubelet's eviction manager."""

import pytest

from mockube.container_runtime.disk_usage import DiskUsage, exceeded_limit, has_disk_limits

MIB = 1 << 20


def pod(*limits, size_limit=None, medium=""):
    containers = [
        {"name": f"c{index}", "resources": {"limits": {"ephemeral-storage": limit} if limit else {}}}
        for index, limit in enumerate(limits)
    ]
    source = {"medium": medium, **({"sizeLimit": size_limit} if size_limit else {})}
    return {"spec": {"containers": containers, "volumes": [{"name": "v", "emptyDir": source}]}}


@pytest.mark.parametrize(
    ("tree", "containers", "volume", "message"),
    [
        (pod(None, size_limit="1Mi"), {}, MIB, ""),
        (pod(None, size_limit="1Mi"), {}, MIB + 1, 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". '),
        (pod(None, size_limit="1Mi", medium="Memory"), {}, 2 * MIB, ""),
        (pod(None), {"c0": 1 << 40}, 1 << 40, ""),
        (
            pod("10Mi"),
            {"c0": 6 * MIB},
            5 * MIB,
            "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ",
        ),
        (
            pod("10Mi", "30Mi"),
            {"c0": 11 * MIB},
            0,
            'Container c0 exceeded its local ephemeral storage limit "10Mi". ',
        ),
        (
            pod("10Mi", "30Mi"),
            {"c0": 9 * MIB, "c1": 28 * MIB},
            4 * MIB,
            "Pod ephemeral local storage usage exceeds the total limit of containers 40Mi. ",
        ),
        (pod("10Mi", "30Mi"), {"c0": 9 * MIB, "c1": 28 * MIB}, 0, ""),
    ],
)
def test_message_about_the_limit(tree, containers, volume, message):
    assert exceeded_limit(tree, DiskUsage(containers, {"v": volume})) == message


def test_pod_without_limits_is_not_checked():
    assert not has_disk_limits(pod(None))
    assert has_disk_limits(pod("1Mi"))
    assert has_disk_limits(pod(None, size_limit="1Mi"))
