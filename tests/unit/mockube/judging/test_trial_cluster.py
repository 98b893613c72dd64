"""The cluster of one trial: what is installed, when it is quiet, and whose changes are those of the operator."""

from collections import deque
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from mockube.apimachinery.schema import minors
from mockube.apimachinery.status import Invalid, NotFound
from mockube.apiserver.control.recorder import RecordedCall
from mockube.cluster import Cluster
from mockube.component_base.clock import RealClock
from mockube.judging.inputs import Release, Sample
from mockube.judging.trial_cluster import Setup, TrialCluster, resource_of
from mockube.lint.objects import LintObject
from mockube.lint.renderers import ChartOptions
from tests.support.scripted_operator import scripted_trial

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
GROUP = "example.com"


def _call(number: int = 0, **fields: Any) -> RecordedCall:
    values: Any = {
        "at": BEGIN + timedelta(seconds=number),
        "user": "operator",
        "agent": "",
        "verb": "create",
        "group": "",
        "version": "v1",
        "resource": "configmaps",
        "subresource": "",
        "namespace": "default",
        "name": "a",
        "uri": "/",
        "code": 201,
        "seconds": 0.0,
        **fields,
    }
    return RecordedCall(**values)


def _definition(name: str) -> Any:
    spec = {"group": GROUP, "names": {"plural": "websites", "kind": "Website"}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": name},
        "spec": spec,
    }


def _release(account: str) -> Release:
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "manager", "namespace": "system"},
        "spec": {"template": {"spec": {"serviceAccountName": account}}},
    }
    trees = [_definition("good"), _definition("refused"), deployment]
    objects = [LintObject(file="deploy.yaml", tree=tree) for tree in trees]
    chart = ChartOptions(release="mine", namespace="default", flags=[])
    return Release(names=["deploy.yaml"], objects={minors.NEWEST: objects}, command=["true"], chart=chart)


class RecordingCluster:
    """A cluster that refuses one definition, and records some requests."""

    def __init__(self) -> None:
        self.waited: list[str] = []
        self.recorded: deque[RecordedCall] = deque(maxlen=3)
        self.by_user: dict[str, list[Any]] = {}
        self.namespaces: dict[str, str] = {}
        """That in which each object was created, by its name."""

    def get(self, kind: str, name: str) -> Any:
        raise NotFound(f"{kind} {name}")

    def apply(self, tree: Any, namespace: str) -> None:
        if tree["metadata"]["name"] == "refused":
            raise Invalid("the schema is invalid")
        self.namespaces[tree["metadata"]["name"]] = namespace

    def delete(self, _kind: str, name: str) -> None:
        if name not in self.namespaces:
            raise NotFound(name)
        del self.namespaces[name]

    def create(self, tree: Any, namespace: str = "") -> Any:
        self.namespaces[tree["metadata"]["name"]] = namespace
        return [tree]

    def wait(self, _kind: str, name: str, _condition: str) -> None:
        self.waited.append(name)

    def calls(self, **_: Any) -> Sequence[RecordedCall]:
        return [*self.recorded]

    def changes(self, user: str) -> Sequence[Any]:
        return self.by_user.get(user, [])


class BusyCluster(TrialCluster):
    """A trial whose operator writes at each of some looks."""

    writes_left = 0
    pauses = 0

    def pause(self, seconds: float | None = None) -> None:  # noqa: ARG002 - it never waits
        self.pauses += 1
        if self.writes_left:
            self.writes_left -= 1
            cast("Any", self.cluster).recorded.append(_call(self.pauses))


@pytest.fixture(name="trial")
def fixture_trial(tmp_path: Path) -> BusyCluster:
    sample = Sample(
        resource={"apiVersion": f"{GROUP}/v1", "kind": "Website", "metadata": {"name": "blog"}},
        others=[],
        definition=_definition("good"),
        names=["sample.yaml"],
    )
    setup = Setup(release=_release("new"), sample=sample, namespace="default", clock=RealClock())
    return BusyCluster(setup, cast("Cluster", RecordingCluster()), _release("old"), minors.NEWEST, tmp_path)


def test_refused_definition_is_noted_and_not_waited_for(trial: BusyCluster) -> None:
    trial.install()
    assert [(tree["metadata"]["name"], text) for tree, text in trial.refused] == [
        ("refused", "the schema is invalid")
    ]
    assert cast("Any", trial.cluster).waited == ["good"]


def test_install_deletes_webhooks_without_a_service_at_once(trial: BusyCluster) -> None:
    (objects,) = trial.release.objects.values()
    for name in ("checks", "refused"):
        tree = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": name},
        }
        objects.append(LintObject(file="deploy.yaml", tree=tree))
    trial.install()
    assert "checks" not in cast("Any", trial.cluster).namespaces
    assert [tree["kind"] for tree, _ in trial.refused] == [
        "CustomResourceDefinition",
        "ValidatingWebhookConfiguration",
    ]


def test_objects_are_in_the_namespaces_that_they_name(trial: BusyCluster) -> None:
    resource = {**trial.setup.sample.resource, "metadata": {"name": "blog", "namespace": "blogs"}}
    others = [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"}}]
    trial.setup = replace(
        trial.setup, namespace="team", sample=replace(trial.setup.sample, resource=resource, others=others)
    )
    trial.install()
    trial.create_others()
    trial.create_resource()
    created = cast("Any", trial.cluster).namespaces
    assert {"blogs", "team", "system"} <= {*created}
    assert (created["key"], created["blog"], created["manager"]) == ("team", "blogs", "system")


def test_cluster_is_not_quiet_while_new_requests_replace_old_ones(trial: BusyCluster) -> None:
    trial.writes_left = 50
    assert trial.settle()
    assert trial.pauses > 50


def test_changes_are_those_of_both_releases_and_requests_those_of_the_new_one(trial: BusyCluster) -> None:
    old = trial.user
    trial.use(_release("new"))
    assert (old, trial.user) == ("system:serviceaccount:system:old", "system:serviceaccount:system:new")
    cast("Any", trial.cluster).by_user = {
        trial.user: [{"spec": {"revision": 5}}],
        old: [{"spec": {"revision": revision}} for revision in (4, 10)],
    }
    assert [each["revision"] for each in trial.changes()] == [4, 5, 10]


def test_resource_has_the_name_that_a_fault_takes() -> None:
    status = _call(resource="websites", group=GROUP, subresource="status")
    assert [resource_of(each) for each in (_call(), status)] == ["configmaps", f"websites.{GROUP}/status"]


def test_instance_that_ends_again_and_again_is_started_after_delays_that_double(tmp_path: Path) -> None:
    trial = scripted_trial(tmp_path)
    instance = trial.start()
    begin, starts = trial.setup.clock.monotonic(), list[float]()
    while len(starts) < 7:
        instance.code = 2
        restarts = instance.restarts
        while instance.restarts == restarts:
            trial.pause(0.25)
        starts.append(trial.setup.clock.monotonic() - begin)
    assert [later - before for before, later in pairwise(starts)] == [1.25, 2.25, 4.25, 4.25, 4.25, 4.25]
    assert len(trial.exits) == 7
    trial.pause(60)
    instance.code = 2
    trial.pause()
    assert not trial.is_running()
    trial.pause(0.5)
    assert trial.is_running()
