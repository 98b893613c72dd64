"""The barriers for which containers with launch priorities wait."""

import pytest

from mockube.apimachinery import conditions, meta
from mockube.client.cache.store import Change
from mockube.client.kinds import CONFIG_MAPS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.packs.kruise.controllers.containerlaunchpriority.controller import (
    ANNOTATION_COMPLETED,
    CONTAINER_LAUNCH_PRIORITY,
)
from mockube.packs.kruise.launch_priority import barrier_variable
from tests.support.controllers.fake_api_server import FakeApiServer

WEB = Key("default", "web")


def pod(**priorities):
    containers = [
        {"name": name, "image": "x"}
        | ({} if priority is None else {"env": [barrier_variable("web", priority)]})
        for name, priority in priorities.items()
    ]
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {"containers": containers}}


class Launch(FakeApiServer):
    def __init__(self, tree):
        super().__init__(CONTAINER_LAUNCH_PRIORITY, SteppedClock())
        self.add(PODS, tree)

    def round(self):
        writes, _ = self.reconcile(WEB)
        return [(verb, resource.kind) for verb, resource, _ in writes]

    def make_ready(self, *names):
        statuses = [
            {"name": container["name"], "ready": container["name"] in names}
            for container in self.get(PODS, "web")["spec"]["containers"]
        ]
        self.change(PODS, "web", ("status", "containerStatuses"), statuses)

    @property
    def barrier(self):
        return self.get(CONFIG_MAPS, "web-barrier")

    @property
    def keys(self):
        return sorted(self.barrier["data"])

    @property
    def is_completed(self):
        return meta.annotations(self.get(PODS, "web")).get(ANNOTATION_COMPLETED) == "true"


def test_highest_priority_starts_first():
    launch = Launch(pod(a=0, b=10))
    assert launch.round() == [("create", "ConfigMap")]
    assert launch.barrier["data"] == {"p_10": "true"}
    (owner,) = meta.owner_references(launch.barrier)
    assert owner == {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "web",
        "uid": meta.uid(launch.get(PODS, "web")),
    }
    assert launch.round() == [], "the container is not ready"


def test_next_priority_follows_when_containers_are_ready():
    launch = Launch(pod(a=0, b=10, c=-1))
    launch.round()
    launch.make_ready("b")
    assert launch.round() == [("patch", "ConfigMap")]
    assert (launch.keys, launch.is_completed) == (["p_0", "p_10"], False)
    launch.make_ready("a", "b")
    assert launch.round() == [("patch", "ConfigMap"), ("patch", "Pod")]
    assert (launch.keys, launch.is_completed) == (["p_-1", "p_0", "p_10"], True)


def test_containers_of_equal_priority_start_together():
    launch = Launch(pod(a=0, b=10, c=10))
    launch.round()
    launch.make_ready("b")
    assert launch.round() == [], "c is not ready"
    launch.make_ready("b", "c")
    launch.round()
    assert launch.is_completed


def test_restarted_container_does_not_wait_again():
    launch = Launch(pod(a=0, b=10))
    launch.round()
    launch.make_ready("b")
    launch.round()
    launch.make_ready()
    assert launch.round() == []


def test_present_lowest_key_completes_pod():
    launch = Launch(pod(a=0, b=10))
    launch.add(
        CONFIG_MAPS, {"metadata": {"name": "web-barrier", "namespace": "default"}, "data": {"p_0": "true"}}
    )
    assert launch.round() == [("patch", "Pod")]
    assert launch.is_completed


def test_barrier_of_earlier_pod_is_left_to_garbage_collector():
    launch = Launch(pod(a=0, b=10))
    launch.round()
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "earlier"}
    launch.change(CONFIG_MAPS, "web-barrier", ("metadata", "ownerReferences"), [owner])
    launch.make_ready("b")
    assert launch.round() == []
    launch.remove(CONFIG_MAPS, "web-barrier")
    assert launch.round() == [("create", "ConfigMap"), ("patch", "Pod")]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}, id="without priorities"),
        pytest.param({"status": {"phase": "Failed"}}, id="ended"),
        pytest.param(
            {"metadata": {**pod()["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}}, id="deleted"
        ),
        pytest.param(
            {"metadata": {**pod()["metadata"], "annotations": {ANNOTATION_COMPLETED: "true"}}}, id="completed"
        ),
    ],
)
def test_other_pods_are_not_changed(change):
    launch = Launch({**pod(a=0, b=10), **change})
    launch.add(CONFIG_MAPS, {"metadata": {"name": "web-barrier", "namespace": "default"}})
    assert launch.round() == []


def test_absent_pod_has_no_plan():
    launch = Launch(pod(a=0, b=10))
    launch.remove(PODS, "web")
    assert launch.round() == []


# --- watches


def keys_of(resource, tree):
    (watch,) = [watch for watch in CONTAINER_LAUNCH_PRIORITY.watches if watch.resource is resource]
    return [*watch.keys(None, Change(old=None, new=tree))]


def test_pods_with_priorities_are_reconciled_until_they_are_ready():
    waiting = pod(a=0, b=10)
    ready = {
        **waiting,
        "status": {
            "conditions": conditions.set_condition(
                [], {"type": "ContainersReady", "status": "True"}, SteppedClock().now()
            )
        },
    }
    assert keys_of(PODS, PodView.of(waiting)) == [WEB]
    assert keys_of(PODS, PodView.of(ready)) == []
    assert keys_of(PODS, PodView.of(pod(a=None, b=None))) == []
    assert keys_of(PODS, PodView.of(pod(a=0))) == []


def test_barriers_map_to_their_pods():
    assert keys_of(CONFIG_MAPS, {"metadata": {"name": "web-barrier", "namespace": "default"}}) == [WEB]
    assert keys_of(CONFIG_MAPS, {"metadata": {"name": "settings", "namespace": "default"}}) == []
