"""In-place pod resize: applied, deferred, infeasible, or applied by a container restart."""

import pytest

from tests.support.controllers.pods import SimulatedPod, container, node_context, pod


def container_with_cpu(cpu, **fields):
    return container(resources={"requests": {"cpu": cpu}, "limits": {"cpu": cpu}}, **fields)


def resources_and_restarts(simulated):
    status = simulated.status["containerStatuses"][0]
    return status["resources"]["requests"]["cpu"], status["allocatedResources"]["cpu"], status["restartCount"]


def test_container_status_has_allocated_resources():
    assert resources_and_restarts(SimulatedPod(pod(container_with_cpu("1")))) == ("1", "1", 0)


def test_resize_is_applied_at_once():
    simulated = SimulatedPod(pod(container_with_cpu("1"))).change(containers=[container_with_cpu("2")])
    assert resources_and_restarts(simulated) == ("2", "2", 0)
    assert simulated.writes == 2
    assert simulated.status["observedGeneration"] == 2


def test_resize_in_progress_has_condition():
    simulated = SimulatedPod(
        pod(container_with_cpu("1"), annotations={"mockube.dev/resize-after": "10s"})
    ).pass_time(60)
    simulated.change(containers=[container_with_cpu("2")])
    assert resources_and_restarts(simulated) == ("1", "1", 0)
    assert simulated.condition("PodResizeInProgress")["status"] == "True"
    assert resources_and_restarts(simulated.pass_time(10)) == ("2", "2", 0)
    assert "PodResizeInProgress" not in simulated.conditions()


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
    simulated = SimulatedPod(pod(container_with_cpu("1")), context=node_context(used={"cpu": used})).change(
        containers=[container_with_cpu(cpu)]
    )
    assert resources_and_restarts(simulated) == ("1", "1", 0)
    condition = simulated.condition("PodResizePending")
    assert (condition["status"], condition["reason"], condition["message"]) == ("True", reason, message)
    assert simulated.ready


def test_deferred_resize_is_applied_when_node_has_capacity():
    simulated = SimulatedPod(pod(container_with_cpu("1")), context=node_context(used={"cpu": "3"})).change(
        containers=[container_with_cpu("2")]
    )
    simulated.context = node_context(used={"cpu": "1"})
    assert resources_and_restarts(simulated.pass_time(30)) == ("2", "2", 0)
    assert "PodResizePending" not in simulated.conditions()


def test_resize_policy_may_restart_container():
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    simulated = SimulatedPod(pod(container_with_cpu("1", resizePolicy=policy))).change(
        containers=[container_with_cpu("2", resizePolicy=policy)]
    )
    assert resources_and_restarts(simulated) == ("2", "2", 1)


def test_reverted_resize_leaves_no_trace():
    simulated = (
        SimulatedPod(pod(container_with_cpu("1")))
        .change(containers=[container_with_cpu("8")])
        .change(containers=[container_with_cpu("1")])
    )
    assert "PodResizePending" not in simulated.conditions()
