"""The objects in a container's variables are noted when its run starts."""

import pytest

from mockube.apimachinery.status import NotFound
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.kubelet.started_values import StartedValues
from mockube.kubelet.step_effects import PatchObject, Step
from tests.support.controllers import pods as pod_objects

OLD = {"metadata": {"namespace": "ns", "name": "s", "resourceVersion": "1"}, "data": {"k": "b2xk"}}
NEW = {"metadata": {**OLD["metadata"], "resourceVersion": "2"}, "data": {"k": "bmV3"}}


class Server:
    """Has the new version of each Secret, and counts requests."""

    def __init__(self, secret=None):
        self.secret, self.requests = secret, 0

    async def get(self, resource, key):
        assert (resource.plural, key) == ("secrets", ("ns", "s"))
        self.requests += 1
        if self.secret is None:
            raise NotFound("gone")
        return self.secret


def pod(**fields):
    return pod_objects.pod(pod_objects.container("c", **fields))


def starts(restarts, state="running"):
    statuses = [{"name": "c", "restartCount": restarts, "state": {state: {}}}]
    return Step(effects=(PatchObject(body={"status": {"containerStatuses": statuses}}),))


def referenced(tree):
    """Return the cached objects; the cache of Secrets has no values."""
    return References(config_maps={"m": tree}, secrets={"s": {**tree, "data": {"k": None}}})


VARIABLE = {"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "k"}}}]}


@pytest.mark.parametrize(
    ("fields", "config_maps", "secrets"),
    [
        (VARIABLE, {"m": OLD}, {}),
        ({"envFrom": [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "gone"}}]}, {}, {"s": OLD}),
    ],
)
async def test_objects_of_variables_are_those_of_the_start(fields, config_maps, secrets):
    values = StartedValues(Records(), Server(OLD))
    await values.note_step(pod(**fields), referenced(OLD), starts(0))
    await values.note_step(pod(**fields), referenced(NEW), starts(0))
    noted = values.find("uid-1", "c", 0)
    assert (noted.config_maps, noted.secrets) == (config_maps, secrets)


async def test_objects_are_those_of_the_container_that_starts():
    subject = pod_objects.pod(pod_objects.container("other"), pod_objects.container("c", **VARIABLE))
    values = StartedValues(Records(), Server(OLD))
    await values.note_step(subject, referenced(OLD), starts(0))
    assert values.find("uid-1", "c", 0).config_maps == {"m": OLD}


async def test_change_of_the_pod_itself_starts_nothing():
    values = StartedValues(Records(), Server(OLD))
    (effect,) = starts(0).effects
    step = Step(effects=(PatchObject(body=effect.body, subresource=""),))
    await values.note_step(pod(**VARIABLE), referenced(OLD), step)
    assert values.find("uid-1", "c", 0) is None


async def test_next_run_has_the_objects_of_its_own_start():
    values = StartedValues(Records(), Server(OLD))
    await values.note_step(pod(**VARIABLE), referenced(OLD), starts(0))
    await values.note_step(pod(**VARIABLE), referenced(NEW), starts(1, "waiting"))
    assert values.find("uid-1", "c", 1) is None
    await values.note_step(pod(**VARIABLE), referenced(NEW), starts(1))
    assert values.find("uid-1", "c", 1).config_maps == {"m": NEW}
    assert values.find("uid-1", "c", 0) is None


async def test_run_of_a_rewound_pod_has_the_objects_of_its_own_start():
    values = StartedValues(Records(), Server())
    await values.note_step(pod(**VARIABLE), referenced(OLD), starts(3))
    await values.note_step(pod(**VARIABLE), referenced(NEW), starts(1))
    assert values.find("uid-1", "c", 1).config_maps == {"m": NEW}


async def test_nothing_is_noted_without_references_or_after_the_pod():
    records = Records()
    values = StartedValues(records, Server(OLD))
    await values.note_step(pod(), referenced(OLD), starts(0))
    assert values.find("uid-1", "c", 0) is None
    await values.note_step(pod(**VARIABLE), referenced(OLD), starts(0))
    records.remove("uid-1")
    assert values.find("uid-1", "c", 0) is None


async def test_version_of_a_secret_is_requested_once():
    server = Server(OLD)
    values = StartedValues(Records(), server)
    fields = {"envFrom": [{"secretRef": {"name": "s"}}]}
    for number in (2, 3, 4):
        subject = pod(**fields)
        subject["metadata"]["uid"] = f"uid-{number}"
        await values.note_step(subject, referenced(OLD), starts(0))
    assert (server.requests, values.find("uid-2", "c", 0).secrets) == (1, {"s": OLD})
    server.secret = NEW
    await values.note_step(pod(**fields), referenced(NEW), starts(0))
    assert (server.requests, values.find("uid-1", "c", 0).secrets) == (2, {"s": NEW})


async def test_secret_that_cannot_be_read_is_not_noted():
    values = StartedValues(Records(), Server())
    await values.note_step(pod(envFrom=[{"secretRef": {"name": "s"}}]), referenced(OLD), starts(0))
    assert values.find("uid-1", "c", 0).secrets == {}
