"""Finished Jobs are deleted after their TTL."""

from datetime import timedelta

import pytest

from mockube.apimachinery.timestamps import format_time
from mockube.client.kinds import JOBS
from mockube.client.resources import Key
from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.ttlafterfinished.controller import TTL_AFTER_FINISHED
from tests.support.controllers.fake_api_server import FakeApiServer
from tests.support.controllers.jobs import job

KEY = Key("default", "j")


def cluster_with_finished_job(ttl, kind="Complete"):
    server = FakeApiServer(TTL_AFTER_FINISHED, SteppedClock())
    condition = {"type": kind, "status": "True", "lastTransitionTime": format_time(server.clock.now())}
    server.add(JOBS, {**job(ttlSecondsAfterFinished=ttl), "status": {"conditions": [condition]}})
    return server


@pytest.mark.parametrize("kind", ["Complete", "Failed"])
def test_finished_job_is_deleted_after_its_ttl(kind):
    jobs = cluster_with_finished_job(30, kind)
    assert jobs.plan(KEY).actions == ()
    assert timedelta(seconds=29) < jobs.plan(KEY).requeue_after <= timedelta(seconds=30)
    jobs.clock.advance(30)
    jobs.reconcile(KEY)
    assert jobs.all(JOBS) == []


@pytest.mark.parametrize(("ttl", "kind"), [(None, "Complete"), (0, "SuccessCriteriaMet")])
def test_other_jobs_are_kept(ttl, kind):
    jobs = cluster_with_finished_job(ttl, kind)
    jobs.reconcile(KEY)
    assert len(jobs.all(JOBS)) == 1


def test_job_with_changed_ttl_is_kept():
    jobs = cluster_with_finished_job(0)
    jobs.pending_writes = {
        JOBS: {("default", "j"): {**jobs.get(JOBS, "j"), "spec": {"ttlSecondsAfterFinished": 60}}}
    }
    _, error = jobs.reconcile(KEY)
    assert error is not None
    assert len(jobs.all(JOBS)) == 1
