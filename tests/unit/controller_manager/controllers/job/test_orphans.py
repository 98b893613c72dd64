"""Which pods lose the finalizer by which their Job counts them: those that no Job counts any more."""

from datetime import UTC, datetime

import pytest

from mockube.client.cache.store import Change
from mockube.client.kinds import JOBS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.controllers.job.orphans import JOB_ORPHAN_PODS, reconcile
from tests.support.controllers.fake_caches import FakeCaches

NOW = datetime(2030, 1, 1, tzinfo=UTC)
FINALIZER = "batch.kubernetes.io/job-tracking"
KEY = Key("default", "p")


def owner(kind="Job", api_version="batch/v1", name="j", uid="uid-j"):
    return {"kind": kind, "apiVersion": api_version, "name": name, "uid": uid, "controller": True}


def pod(*owners, finalizers=(FINALIZER,), deleting=False):
    metadata = {"name": "p", "namespace": "default", "uid": "uid-p", "resourceVersion": "1"}
    metadata |= {"finalizers": [*finalizers], "ownerReferences": [*owners]}
    if deleting:
        metadata["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    return {"metadata": metadata, "spec": {"containers": []}, "status": {}}


def job(*conditions, managed_by=None, uid="uid-j"):
    metadata = {"name": "j", "namespace": "default", "uid": uid}
    spec = {"managedBy": managed_by} if managed_by else {}
    return {
        "metadata": metadata,
        "spec": spec,
        "status": {"conditions": [{"type": name, "status": "True"} for name in conditions]},
    }


def caches(*pods, jobs=()):
    return FakeCaches({PODS: pods, JOBS: jobs}, JOB_ORPHAN_PODS.indexes)


OWN = owner()
ELSEWHERE = "example.com/queue"


@pytest.mark.parametrize(
    ("tree", "jobs", "is_orphan"),
    [
        (pod(), [], True),
        (pod(finalizers=["x"]), [], False),
        (pod(OWN), [], True),
        (pod(OWN), [job()], False),
        (pod(OWN), [job("Suspended")], False),
        (pod(OWN), [job("Complete")], True),
        (pod(OWN), [job("Failed")], True),
        (pod(OWN), [job("Complete", managed_by=ELSEWHERE)], False),
        (pod(OWN), [job("Complete", managed_by="kubernetes.io/job-controller")], True),
        (pod(OWN), [job(uid="other")], True),
        (pod(owner("ReplicaSet", "apps/v1")), [], False),
        (pod(owner(api_version="example.com/v1")), [], False),
    ],
    ids=[
        "no owner",
        "not counted",
        "no Job",
        "Job runs",
        "Job has another condition",
        "Job is complete",
        "Job has failed",
        "Job of another controller",
        "Job of the controller by name",
        "Job was created again",
        "other kind",
        "kind of the name in another group",
    ],
)
def test_pod_loses_its_finalizer_if_no_job_counts_it(tree, jobs, is_orphan):
    actions = reconcile(caches(tree, jobs=jobs), KEY, NOW).actions
    assert [(each.finalizer, each.objects[0].key) for each in actions] == (
        [(FINALIZER, KEY)] if is_orphan else []
    )


def test_pod_that_is_gone_needs_nothing():
    assert reconcile(caches(), KEY, NOW).actions == ()


OF_PODS, OF_JOBS = (watch.keys for watch in JOB_ORPHAN_PODS.watches)


@pytest.mark.parametrize(
    ("tree", "jobs", "is_added"),
    [
        (pod(), [], True),
        (pod(finalizers=[]), [], False),
        (pod(OWN), [], False),
        (pod(OWN, deleting=True), [], True),
        (pod(OWN, deleting=True), [job()], False),
        (pod(OWN, deleting=True), [job("Complete")], True),
        (None, [], False),
    ],
    ids=[
        "no owner",
        "not counted",
        "owner",
        "deleted",
        "deleted with a Job",
        "deleted after its Job",
        "gone",
    ],
)
def test_change_of_a_pod(tree, jobs, is_added):
    new = None if tree is None else PodView.of(tree)
    keys = OF_PODS(caches(jobs=jobs), Change(PodView.of(pod()), new))
    assert [*keys] == ([KEY] if is_added else [])


@pytest.mark.parametrize(
    ("old", "new", "is_added"),
    [
        (job(), None, True),
        (job("Complete"), None, True),
        (job(), job(), False),
        (job(), job("Complete"), True),
        (None, job("Complete"), False),
    ],
    ids=["deleted", "deleted at its end", "changed", "finished", "seen first"],
)
def test_change_of_a_job(old, new, is_added):
    pods = caches(pod(OWN))
    assert [*OF_JOBS(pods, Change(old, new))] == ([KEY] if is_added else [])
    assert [*OF_JOBS(caches(pod(OWN, finalizers=[])), Change(old, new))] == []
    assert [*OF_JOBS(caches(pod(owner(uid="other"))), Change(old, new))] == []
