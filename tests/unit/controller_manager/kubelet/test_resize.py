"""In-place pod resize: applied, deferred, infeasible, or applied by a container restart."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod


def container_with_cpu(cpu, **fields):
    return container(resources={"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **fields)


def resources_and_restarts(world):
    status = world.status["containerStatuses"][0]
    return status["resources"]["requests"]["cpu"], status["allocatedResources"]["cpu"], status["restartCount"]


def test_container_status_has_allocated_resources():
    assert resources_and_restarts(SimulatedPod(pod(container_with_cpu("1")))) == ("1", "1", 0)


def test_resize_is_applied_at_once():
    world = SimulatedPod(pod(container_with_cpu("1"))).change(containers=[container_with_cpu("2")])
    assert resources_and_restarts(world) == ("2", "2", 0)
    assert world.writes == 2
    assert world.status["observedGeneration"] == 2


def test_resize_in_progress_has_condition():
    world = SimulatedPod(
        pod(container_with_cpu("1"), annotations={"mockube.dev/resize-after": "10s"})
    ).pass_time(60)
    world.change(containers=[container_with_cpu("2")])
    assert resources_and_restarts(world) == ("1", "1", 0)
    assert world.condition("PodResizeInProgress")["status"] == "True"
    assert resources_and_restarts(world.pass_time(10)) == ("2", "2", 0)
    assert "PodResizeInProgress" not in world.conditions()


@pytest.mark.parametrize(
    ("cpu", "used", "reason", "message"),
    [
        pytest.param(
            "8", "0", "Infeasible",
            "Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000",
            id="more than the node has",
        ),
        pytest.param(
            "2", "2500m", "Deferred",
            "Node didn't have enough resource: cpu, requested: 2000, used: 2500, capacity: 4000",
            id="more than the node has free",
        ),
    ],
)  # fmt: skip
def test_infeasible_resize_is_not_applied(cpu, used, reason, message):
    world = SimulatedPod(pod(container_with_cpu("1")), context=node_context(used={"cpu": used})).change(
        containers=[container_with_cpu(cpu)]
    )
    assert resources_and_restarts(world) == ("1", "1", 0)
    condition = world.condition("PodResizePending")
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", reason, message)
    assert world.ready


def test_deferred_resize_is_applied_when_node_has_capacity():
    world = SimulatedPod(pod(container_with_cpu("1")), context=node_context(used={"cpu": "3"})).change(
        containers=[container_with_cpu("2")]
    )
    world.context = node_context(used={"cpu": "1"})
    assert resources_and_restarts(world.pass_time(30)) == ("2", "2", 0)
    assert "PodResizePending" not in world.conditions()


def test_resize_policy_may_restart_container():
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    world = SimulatedPod(pod(container_with_cpu("1", resizePolicy=policy))).change(
        containers=[container_with_cpu("2", resizePolicy=policy)]
    )
    assert resources_and_restarts(world) == ("2", "2", 1)


def test_reverted_resize_leaves_no_trace():
    world = (
        SimulatedPod(pod(container_with_cpu("1")))
        .change(containers=[container_with_cpu("8")])
        .change(containers=[container_with_cpu("1")])
    )
    assert "PodResizePending" not in world.conditions()
