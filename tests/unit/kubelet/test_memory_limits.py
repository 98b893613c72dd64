"""A container that needs more memory than it may use is killed, as by the kernel of a node."""

import pytest
from msgspec.structs import replace

from mockube.container_runtime.state import ContainerKill
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod

STRESS = ("stress", "--vm", "1", "--vm-bytes")
OOM_KILLED = {"exitCode": 137, "reason": "OOMKilled"}


def limited(*argv, limit="100Mi", policy="Always", image="example.org/tools", **fields):
    resources = {"limits": {"memory": limit}} if limit else {}
    described = container("c", *argv, image=image, resources=resources, **fields)
    return SimulatedPod(pod(described, policy=policy), context=node_context(details=True))


def end(subject):
    """Return the end of the last run; None if there was none."""
    (status,) = subject.status["containerStatuses"]
    ended = status["state"].get("terminated") or status["lastState"].get("terminated")
    return ended and {field: ended[field] for field in ("exitCode", "reason")}


@pytest.mark.parametrize(
    "argv",
    [
        (*STRESS, "250M", "--vm-hang", "1"),
        ("tail", "/dev/zero"),
        ("sh", "-c", "tail /dev/zero; echo the child alone died; sleep 100"),
        ("sh", "-c", 'x=a; while true; do x="$x$x"; done'),
        ("bash", "-c", "x=a; while true; do x+=$x; done"),
        ("stress", "-mem-total", "950Mi", "-mem-alloc-size", "100Mi", "-mem-alloc-sleep", "1ms"),
    ],
)
def test_container_over_its_limit_is_killed(argv):
    subject = limited(*argv, policy="Never").pass_time(10)
    assert (subject.phase, end(subject)) == ("Failed", OOM_KILLED)


@pytest.mark.parametrize(
    "argv",
    [
        (*STRESS, "90M", "--vm-hang", "1"),
        ("sh", "-c", "while true; do x=$x$(date); x=; sleep 1; done"),
        ("sh", "-c", "head -c 50M /dev/zero | tail >/dev/null; sleep 1000"),
        ("sh", "-c", "seq 100000 | tail -1; sleep 1000"),
    ],
)
def test_container_below_its_limit_runs(argv):
    assert limited(*argv).pass_time(60).containers() == {"c": "running"}


def test_killed_container_is_restarted_with_back_off():
    subject = limited(*STRESS, "250M").pass_time(5)
    (status,) = subject.status["containerStatuses"]
    assert (status["restartCount"], status["state"]["waiting"]["reason"]) == (1, "CrashLoopBackOff")
    assert end(subject) == OOM_KILLED
    assert not subject.ready
    assert "BackOff" in {event.reason for event in subject.events}


def test_container_that_is_killed_at_once_is_never_ready():
    subject = limited("tail", "/dev/zero", policy="Never")
    assert subject.writes == 1
    assert subject.phase == "Failed"


def test_memory_that_is_filled_slowly_kills_later():
    subject = limited(
        "stress", "-mem-total", "200Mi", "-mem-alloc-size", "20Mi", "-mem-alloc-sleep", "2s", policy="Never"
    )
    assert subject.pass_time(9).containers() == {"c": "running"}
    assert subject.pass_time(9).containers() == {"c": 137}


@pytest.mark.parametrize(("node", "state"), [("1Gi", 137), ("4Gi", "running")])
def test_node_bounds_a_container_without_a_limit(node, state):
    described = container("c", *STRESS, "2G", "--vm-keep", image="polinux/stress")
    context = node_context(details=True, allocatable={"memory": node})
    subject = SimulatedPod(pod(described, policy="Never"), context=context)
    assert subject.pass_time(10).containers() == {"c": state}


def test_limit_of_the_pod_applies_to_its_containers():
    described = container("c", "tail", "/dev/zero", image="busybox")
    subject = SimulatedPod(
        pod(described, policy="Never", resources={"limits": {"memory": "50Mi"}}), context=node_context()
    )
    assert end(subject.pass_time(10)) == OOM_KILLED


def test_command_of_a_client_kills_the_run_in_which_it_was():
    subject = limited("sleep", "1000")
    kill = ContainerKill(restarts=0, at=subject.now, code=137, reason="OOMKilled")
    subject.context = replace(subject.context, kills={"c": kill})
    subject.pass_time(1)
    (status,) = subject.status["containerStatuses"]
    assert (status["restartCount"], end(subject)) == (1, OOM_KILLED)
    assert subject.containers() == {"c": "running"}


@pytest.mark.parametrize(
    ("limit", "sizes", "killed"),
    [
        ("200Mi", ("150M", "40M"), []),
        ("200Mi", ("150M", "100M"), ["a"]),
        ("200Mi", ("90M", "150M"), ["b"]),
        ("200Mi", ("90M", "90M"), []),
        ("100Mi", ("20M", "150M"), ["b"]),
    ],
)
def test_containers_together_may_not_exceed_the_limit_of_their_pod(limit, sizes, killed):
    described = [
        container(name, *STRESS, size, "--vm-hang", "1", image="example.org/tools")
        for name, size in zip("ab", sizes, strict=True)
    ]
    tree = pod(*described)
    tree["spec"]["resources"] = {"limits": {"memory": limit}}
    subject = SimulatedPod(tree, context=node_context(details=True)).pass_time(30)
    ends = {
        status["name"]: (status["lastState"].get("terminated") or {}).get("reason")
        for status in subject.status["containerStatuses"]
    }
    assert ends == {name: "OOMKilled" if name in killed else None for name in "ab"}
