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
    ("limits", "cpu", "used", "reason", "message"),
    [
        pytest.param(
            True, "8", "0", "Infeasible",
            "Node didn't have enough capacity: cpu, requested: 8000, capacity: 4000",
            id="more than the node has until 1.35",
        ),
        pytest.param(
            False, "8", "0", "Deferred",
            "Node didn't have enough resource: cpu, requested: 8000, used: 0, capacity: 4000",
            id="more than the node has since 1.36",
        ),
        pytest.param(
            True, "2", "2500m", "Deferred",
            "Node didn't have enough resource: cpu, requested: 2000, used: 2500, capacity: 4000",
            id="more than the node has free",
        ),
    ],
)  # fmt: skip
def test_infeasible_resize_is_not_applied(limits, cpu, used, reason, message):
    context = node_context(used={"cpu": used}, limits_resizes=limits)
    simulated = SimulatedPod(pod(container_with_cpu("1")), context=context)
    simulated.change(containers=[container_with_cpu(cpu)])
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


def sidecar_with_cpu(cpu, **fields):
    return container_with_cpu(cpu, name="sidecar", image="redis", restartPolicy="Always", **fields)


def test_running_sidecar_is_resized():
    simulated = SimulatedPod(pod(container_with_cpu("1"), init=[sidecar_with_cpu("1")]))
    simulated.change(initContainers=[sidecar_with_cpu("2")])
    (status,) = simulated.status["initContainerStatuses"]
    assert (status["resources"]["requests"], status["allocatedResources"]) == ({"cpu": "2"}, {"cpu": "2"})
    assert (status["restartCount"], resources_and_restarts(simulated)) == (0, ("1", "1", 0))


def test_running_init_container_is_resized():
    fields = {"name": "setup", "command": ["sleep", "60"]}
    init = container_with_cpu("1", **fields)
    simulated = SimulatedPod(pod(container_with_cpu("1"), init=[init]))
    simulated.change(initContainers=[container_with_cpu("2", **fields)])
    (status,) = simulated.status["initContainerStatuses"]
    assert "running" in status["state"]
    assert status["allocatedResources"] == {"cpu": "2"}


def test_resize_policy_may_restart_sidecar():
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    simulated = SimulatedPod(pod(container(), init=[sidecar_with_cpu("1", resizePolicy=policy)]))
    simulated.change(initContainers=[sidecar_with_cpu("2", resizePolicy=policy)])
    (status,) = simulated.status["initContainerStatuses"]
    assert (status["allocatedResources"], status["restartCount"]) == ({"cpu": "2"}, 1)


def test_requests_of_sidecars_and_pod_overhead_count_for_capacity():
    fields = {"init": [sidecar_with_cpu("2")], "overhead": {"cpu": "500m"}}
    simulated = SimulatedPod(pod(container_with_cpu("1"), **fields)).change(
        containers=[container_with_cpu("2")]
    )
    assert simulated.condition("PodResizePending")["message"] == (
        "Node didn't have enough resource: cpu, requested: 4500, used: 0, capacity: 4000"
    )


def test_reverted_resize_leaves_no_trace():
    simulated = (
        SimulatedPod(pod(container_with_cpu("1")))
        .change(containers=[container_with_cpu("8")])
        .change(containers=[container_with_cpu("1")])
    )
    assert "PodResizePending" not in simulated.conditions()


def hog(limit, command="stress --vm 1 --vm-bytes 100M --vm-hang 1", **fields):
    resources = {"requests": {"memory": "10Mi"}, "limits": {"memory": limit}}
    return container("c", "sh", "-c", command, image="polinux/stress", resources=resources, **fields)


def running(described):
    context = node_context(details=True, allocatable={"cpu": "4", "memory": "4Gi"})
    return SimulatedPod(pod(described), context=context).pass_time(60)


def memory_limit_and_restarts(simulated):
    status = simulated.status["containerStatuses"][0]
    return status["resources"]["limits"]["memory"], status["restartCount"]


def test_decrease_below_the_memory_in_use_is_not_applied():
    simulated = running(hog("200Mi"))
    simulated.change(containers=[hog("50Mi")])
    assert memory_limit_and_restarts(simulated) == ("200Mi", 0)
    condition = simulated.condition("PodResizeInProgress")
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "True",
        "Error",
        'cannot decrease memory limits: attempting to set container "c" memory limit (52428800) below current usage (104857600)',
    )
    simulated.pass_time(600)
    assert memory_limit_and_restarts(simulated) == ("200Mi", 0)
    simulated.change(containers=[hog("150Mi")])
    assert memory_limit_and_restarts(simulated) == ("150Mi", 0)
    assert "PodResizeInProgress" not in simulated.conditions()


def test_decrease_that_restarts_the_container_kills_it_by_its_new_limit():
    policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
    simulated = running(hog("200Mi", resizePolicy=policy))
    simulated.change(containers=[hog("50Mi", resizePolicy=policy)]).pass_time(30)
    status = simulated.status["containerStatuses"][0]
    assert status["restartCount"] >= 1
    assert status["lastState"]["terminated"]["reason"] == "OOMKilled"
