"""What a container writes into a volume in memory counts as its memory, until its run ends."""

import pytest

from tests.support.running_containers import Cluster, shell

WAIT = "while [ ! -e /mem/go ]; do sleep 1; done; rm /mem/go; "
WRITE = "head -c 10M /dev/zero > /mem/a; "
KEEP = "head -c 10M /dev/zero | tail > /dev/null; "
"""Needs the memory for a line of this length."""


async def ends_of_runs(*scripts):
    """Return why each run of a container with 16 MiB has ended, if it has."""
    ends = []
    container = shell(
        f"{WAIT} . /mem/script; sleep 1000",
        volumeMounts=[{"name": "v", "mountPath": "/mem"}],
        resources={"limits": {"memory": "16Mi"}},
    )
    cluster = Cluster(container, volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])
    for number, script in enumerate(scripts):
        cluster.runtime.start_container(cluster.pod, "c", number)
        await cluster.exec("sh", "-c", f"echo '{script}' > /mem/script; touch /mem/go")
        await cluster.advance(4)
        ends.append(cluster.end() and cluster.end().reason)
        cluster.runtime.stop_container(cluster.pod, "c", 0)
        await cluster.advance(2)
    return ends


@pytest.mark.parametrize(
    ("scripts", "ends"),
    [
        pytest.param([WRITE, KEEP], [None, None], id="by an earlier run"),
        pytest.param([WRITE + KEEP], ["OOMKilled"], id="by this run"),
        pytest.param([WRITE + "rm /mem/a; " + KEEP], [None], id="and removed"),
    ],
)
async def test_files_in_memory_count_for_the_run_that_wrote_them(scripts, ends):
    assert await ends_of_runs(*scripts) == ends
