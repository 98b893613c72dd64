"""The requests of a pod that a scheduler counts: during a resize, and with resources of the pod itself."""

import pytest

from mockube.apimachinery.feature_gates import FeatureGates
from mockube.client.component_helpers.effective_requests import effective_requests, size_fields

MEGABYTE = 1024 * 1024


def container(name="c", *, always=False, **requests):
    restart = {"restartPolicy": "Always"} if always else {}
    return {"name": name, "resources": {"requests": requests}} | restart


def status(name="c", *, allocated=None, actual=None):
    given = {} if allocated is None else {"allocatedResources": {"cpu": allocated}}
    used = {} if actual is None else {"resources": {"requests": {"cpu": actual}}}
    return {"name": name, **given, **used}


def pod(*containers, statuses=(), init_statuses=(), infeasible=False, init=(), own=None, **more):
    conditions = (
        [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}] if infeasible else []
    )
    lists = {"containerStatuses": list(statuses), "initContainerStatuses": list(init_statuses)}
    resources = {} if own is None else {"resources": {"requests": own}}
    return {
        "metadata": {"name": "p"},
        "spec": {"containers": list(containers), "initContainers": list(init), **resources},
        "status": {**lists, "conditions": conditions, **more},
    }


def cpu(tree, minor="1.37", settings=()):
    return effective_requests(tree, FeatureGates(minor, settings)).requested["cpu"]


@pytest.mark.parametrize("minor", ["1.36", "1.37"])
@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        pytest.param(pod(container(cpu="1")), 1000, id="without status"),
        pytest.param(
            pod(container(cpu="1"), statuses=[status(allocated="1", actual="1")]), 1000, id="no resize"
        ),
        pytest.param(
            pod(container(cpu="1"), statuses=[status(allocated="1", actual="2")]), 2000, id="to shrink"
        ),
        pytest.param(
            pod(container(cpu="3"), statuses=[status(allocated="1", actual="1")]), 3000, id="to grow"
        ),
        pytest.param(
            pod(container(cpu="1"), statuses=[status(allocated="2", actual="1")]), 2000, id="allocated"
        ),
        pytest.param(
            pod(container(cpu="9"), statuses=[status(allocated="1", actual="2")], infeasible=True),
            2000,
            id="infeasible",
        ),
        pytest.param(
            pod(
                container(cpu="1"),
                init=[container("i", cpu="1", always=True)],
                init_statuses=[status("i", allocated="4", actual="1")],
            ),
            5000,
            id="sidecar",
        ),
    ],
)
def test_largest_size_of_resized_pod_counts(minor, tree, expected):
    assert cpu(tree, minor) == expected


OPPOSITE = pod(
    container("a", cpu="1"),
    container("b", cpu="4"),
    statuses=[status("a", allocated="3", actual="3"), status("b", allocated="1", actual="1")],
)
ENDED = pod(
    container(cpu="1"),
    init=[container("i", cpu="1")],
    init_statuses=[status("i", allocated="4", actual="4")],
)
OF_POD = pod(
    container(cpu="1"),
    own={"cpu": "2"},
    resources={"requests": {"cpu": "5"}},
    allocatedResources={"cpu": "3"},
)


SHRUNK = pod(container(cpu="1"), own={"cpu": "2"}, infeasible=True, resources={"requests": {"memory": "1Mi"}})


@pytest.mark.parametrize(
    ("tree", "amounts"),
    [
        pytest.param(SHRUNK, {"1.37": 0, "1.36": 0, "1.35": 2000}, id="pod itself without the resource"),
        pytest.param(OPPOSITE, {"1.37": 5000, "1.36": 7000, "1.32": 5000}, id="opposite resizes"),
        pytest.param(ENDED, {"1.37": 4000, "1.36": 1000}, id="init container"),
        pytest.param(OF_POD, {"1.37": 5000, "1.36": 5000, "1.35": 2000}, id="pod itself"),
    ],
)
def test_resized_pod_counts_as_in_minor(tree, amounts):
    assert {minor: cpu(tree, minor) for minor in amounts} == amounts


def test_pod_without_gate_counts_by_its_spec():
    resized = pod(container(cpu="1"), statuses=[status(allocated="2", actual="2")])
    assert cpu(resized, "1.34", [("InPlacePodVerticalScaling", False)]) == 1000


def test_pod_itself_has_defaults_only_for_missing_resources():
    tree = pod(container("a", memory="1Mi"), container("b"), own={"cpu": "2"})
    requests = effective_requests(tree, FeatureGates())
    assert requests.requested == {"cpu": 2000, "memory": MEGABYTE}
    assert requests.nonzero == {"cpu": 2000, "memory": MEGABYTE}
    assert requests.scored == {"cpu": 200, "memory": 201 * MEGABYTE}
    without_memory = pod(container("a"), container("b"), own={"cpu": "2"})
    assert effective_requests(without_memory, FeatureGates()).nonzero["memory"] == 400 * MEGABYTE


def test_only_sizes_are_compared():
    first = pod(container(cpu="1"), statuses=[{**status(actual="1"), "ready": True}])
    assert size_fields(first) == size_fields(pod(container(cpu="1"), statuses=[status(actual="1")]))
    assert size_fields(first) != size_fields(pod(container(cpu="1"), statuses=[status(actual="2")]))
    resized = {"resources": {"requests": {"cpu": "2"}}}
    assert size_fields(first) != size_fields({**first, "status": {**first["status"], **resized}})


def test_sizes_of_the_spec_are_not_compared():
    started = pod(container(cpu="1"), statuses=[status(allocated="1", actual="1")])
    assert size_fields(started) == size_fields(pod(container(cpu="1"))) == ()
