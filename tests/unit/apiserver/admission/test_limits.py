"""LimitRanger: the total requests of a pod, and the refusal of pods beyond a limit."""

from time import thread_time

import orjson
import pytest

from mockube.apimachinery.status import Forbidden, RequestEntityTooLarge
from mockube.apiserver.admission.limit_ranger import LimitRanger
from mockube.apiserver.admission.pod_resources import pod_total
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.kinds.core.pod.pod_level import aggregate
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User
from mockube.client.component_helpers.pod_requests import pod_requests
from tests.support.server.rows import catalog


def container(cpu, **rest):
    return {"resources": {"requests": {"cpu": cpu}}, **rest}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": None}, {}, id="no containers"),
        pytest.param({"containers": [container("1"), container("2")]}, {"cpu": "3"}, id="sum of containers"),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2"), container("5")]},
            {"cpu": "5"},
            id="largest init container",
        ),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            {"cpu": "5"},
            id="init container and sidecar",
        ),
        pytest.param(
            {
                "containers": [container("4")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            {"cpu": "6"},
            id="containers and sidecar",
        ),
        pytest.param(
            {"containers": [container("9")], "resources": {"requests": {"cpu": "1"}}},
            {"cpu": "1"},
            id="pod-level requests",
        ),
    ],
)
def test_pod_total_of_requests(spec, expected):
    assert {name: str(amount) for name, amount in pod_total(spec, "requests").items()} == expected


class Backend:
    """A backend that returns LimitRange objects."""

    def __init__(self, *limits):
        self._worker = Worker()
        tree = {"kind": "LimitRange", "apiVersion": "v1", "metadata": {"name": "l", "uid": "u"}}
        self._stored = StoredObject(b"l", orjson.dumps(tree | {"spec": {"limits": limits}}), 1)

    def run(self, context, work, *arguments):
        return self._worker.run(context.work.size, work, *arguments)

    def list_cached(self, _resource, _namespace):
        return [self._stored]


def creation(count):
    row = catalog()["", "v1", "pods"]
    context = RequestContext(verb="create", resource=row, namespace="default", user=User(name="somebody"))
    spec = {"containers": [{"name": f"c{at}", "image": "i"} for at in range(count)]}
    tree = {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "x"}, "spec": spec}
    return AdmissionAttributes(operation=Operation.CREATE, context=context, name="x", object=tree)


def many_resources(count):
    return {f"example.com/r{at}": "1" for at in range(count)}


@pytest.mark.timed
async def test_object_made_too_large_by_limit_defaults_is_refused():
    backend = Backend(
        {"type": "Container", "default": many_resources(20_000), "defaultRequest": many_resources(20_000)}
    )
    begun = thread_time()
    with pytest.raises(RequestEntityTooLarge):
        await LimitRanger().mutate(backend, creation(20_000))
    assert thread_time() - begun < 3


@pytest.mark.timed
@pytest.mark.parametrize("bound", ["min", "max", "maxLimitRequestRatio"])
async def test_number_of_limit_problems_in_message_is_bounded(bound):
    backend = Backend({"type": "Container", bound: many_resources(20_000)})
    begun = thread_time()
    with pytest.raises(Forbidden) as refusal:
        await LimitRanger().validate(backend, creation(20_000))
    assert thread_time() - begun < 3
    assert len(str(refusal.value)) < 1_000_000


@pytest.mark.parametrize("field", ["requests", "limits"])
def test_sidecar_resources_count_with_later_containers_only(field):
    def container_with(amount, name="a", **fields):
        return {"resources": {field: {name: amount}}, **fields}

    spec = {
        "containers": [container_with("1", "b")],
        "initContainers": [
            container_with("4"),
            container_with("2", restartPolicy="Always"),
            container_with("3", "b"),
            container_with("1", restartPolicy="Always"),
            container_with("2", "b", restartPolicy="Always"),
            container_with("5", "b"),
        ],
    }
    expected = {"a": "4", "b": "7"}
    assert {name: str(amount) for name, amount in pod_total(spec, field).items()} == expected
    assert aggregate(spec, field) == expected
    if field == "requests":
        assert pod_requests(spec) == {"a": 4, "b": 7}
