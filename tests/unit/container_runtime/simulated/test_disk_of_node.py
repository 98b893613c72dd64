"""What containers write on the disk of their node: it is shared, it fills up, and that is reported."""

import pytest

from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runtime import ExecRequest
from mockube.container_runtime.simulated import predictions
from tests.support.container_runtimes import ClientStreams, running_machine
from tests.support.images import IMAGES

GIBIBYTE = 1 << 30


async def execute(machine, pod, script):
    command = await machine.runtime.exec(pod, "c", ExecRequest(command=["sh", "-c", script]))
    streams = ClientStreams()
    code = await command(streams)
    return code, (streams.received[1] + streams.received[2]).decode()


async def test_pods_of_a_node_share_its_disk():
    async with running_machine("simulated") as machine:
        reports = []
        machine.events.on_scarce_disk(reports.append)
        first = await machine.start(machine.pod("read line", uid="1"))
        second = await machine.start(machine.pod("read line", uid="2"))
        assert await execute(machine, first, "fallocate -l 60G /tmp/x") == (0, "")
        assert reports == []
        code, output = await execute(machine, second, "fallocate -l 60G /tmp/x")
        assert (code, output) == (1, "fallocate: fallocate '/tmp/x': No space left on device\n")
        assert (await execute(machine, second, "fallocate -l 30G /tmp/y; df -h / | tail -n 1"))[0] == 0
        assert (reports, machine.runtime.node_disk_use("") // GIBIBYTE) == ([""], 90)
        machine.runtime.remove_containers("1")
        assert machine.runtime.node_disk_use("") // GIBIBYTE == 30


@pytest.mark.parametrize(
    ("script", "is_certain"),
    [
        ("dd if=/dev/zero of=/tmp/x bs=1M count=2; sleep 9", True),
        ("dd if=/dev/zero of=/tmp/x bs=1M count=20; sleep 9", False),
        ("dd if=/dev/zero of=/tmp/x bs=1M count=20; rm /tmp/x; sleep 9", False),
    ],
)
def test_command_that_writes_much_runs_in_real_time(script, is_certain):
    container = {"name": "c", "image": "busybox:1.36", "command": ["sh", "-c", script]}
    pod = {"metadata": {"name": "p", "uid": "1"}, "spec": {"containers": [container]}}
    assert predictions.program_of_run(IMAGES, pod, container, script_of({}))().is_certain is is_certain


async def test_volumes_of_objects_are_shown_as_a_kubelet_mounts_them():
    async with running_machine("simulated") as machine:
        mounts = [{"name": "info", "mountPath": "/info"}, {"name": "labels", "mountPath": "/labels"}]
        pod = machine.pod("read line", volumeMounts=mounts)
        items = [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]
        pod["spec"]["volumes"] = [
            {"name": "info", "downwardAPI": {"items": items}},
            {"name": "labels", "configMap": {"name": "absent", "optional": True}},
        ]
        pod = await machine.start(pod)
        _, output = await execute(
            machine, pod, "mount | grep -e info -e labels; df /info /labels | tail -n 2"
        )
        lines = [line.split() for line in output.splitlines()]
        assert lines[:2] == [
            ["tmpfs", "on", "/info", "type", "tmpfs", "(ro,relatime)"],
            ["/dev/vda1", "on", "/labels", "type", "ext4", "(ro,relatime)"],
        ]
        assert [(line[0], line[5]) for line in lines[2:]] == [("tmpfs", "/info"), ("/dev/vda1", "/labels")]
        assert lines[2][2] == "4"  # a page


@pytest.mark.thorough
async def test_container_that_fills_the_disk_alone_gets_all_of_it():
    async with running_machine("simulated") as machine:
        reports = []
        machine.events.on_scarce_disk(reports.append)
        pod = await machine.start(machine.pod("read line"))
        assert await execute(machine, pod, "cat /dev/zero > /tmp/x") == (
            1,
            "cat: write error: No space left on device\n",
        )
        assert machine.runtime.node_disk_use("") // GIBIBYTE == 99
        assert reports == [""]
        assert (await execute(machine, pod, "df -m / | tail -n 1"))[1].split()[2:5] == ["102400", "0", "100%"]
