"""Metrics of Jobs and CronJobs, under upstream's names, with controllers and a real server."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.cronjob.controller import CRON_JOB
from mockube.controller_manager.controllers.job.controller import JOB
from mockube.controller_manager.controllers.ttlafterfinished.controller import TTL_AFTER_FINISHED
from tests.support.controllers.running_manager import running_cluster
from tests.support.metric_samples import sample_value

PODS = "/api/v1/namespaces/default/pods"
BATCH = "/apis/batch/v1/namespaces/default"
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}


class JobCluster:
    def __init__(self, server, manager):
        self.server, self.manager = server, manager

    async def run_job(self, **spec):
        body = {"metadata": {"name": "j"}, "spec": {"template": TEMPLATE, **spec}}
        answer = await self.server.post(f"{BATCH}/jobs", body)
        assert answer.status == 201, answer.body
        await self.manager.step(2)

    async def end_pods(self, phase):
        for pod in (await self.server.get(PODS)).body["items"]:
            if pod["status"]["phase"] not in ("Succeeded", "Failed"):
                name = pod["metadata"]["name"]
                await self.server.patch(f"{PODS}/{name}/status", {"status": {"phase": phase}})
        await self.manager.step(30)

    def value(self, name, **labels):
        return sample_value(self.manager.metrics.registry, name, labels)

    def job(self, name, **labels):
        return self.value(f"job_controller_{name}", **labels)


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    controllers = [JOB, CRON_JOB, TTL_AFTER_FINISHED]
    async with running_cluster(clock=clock, controllers=controllers) as (server, manager):
        await server.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield JobCluster(server, manager)


async def test_succeeded_job_is_counted(cluster):
    await cluster.run_job(parallelism=2, completions=2)
    mode = {"completion_mode": "NonIndexed"}
    assert cluster.job("job_pods_creation_total", reason="new", status="succeeded") == 2
    assert cluster.job("job_syncs_total", **mode, result="success", action="pods_created") == 1
    assert (
        cluster.job("job_sync_duration_seconds_count", **mode, result="success", action="pods_created") == 1
    )
    await cluster.end_pods("Succeeded")
    assert cluster.job("job_pods_finished_total", **mode, result="succeeded") == 2
    reason = {"result": "succeeded", "reason": "CompletionsReached"}
    assert cluster.job("jobs_finished_total", **mode, **reason) == 1
    assert cluster.job("job_syncs_total", **mode, result="success", action="tracking") >= 1


async def test_failed_job_is_counted(cluster):
    await cluster.run_job(backoffLimit=0)
    await cluster.end_pods("Failed")
    mode = {"completion_mode": "NonIndexed"}
    assert cluster.job("job_pods_finished_total", **mode, result="failed") == 1
    reason = {"result": "failed", "reason": "BackoffLimitExceeded"}
    assert cluster.job("jobs_finished_total", **mode, **reason) == 1


async def test_indexed_job_is_counted(cluster):
    await cluster.run_job(completionMode="Indexed", parallelism=3, completions=3)
    await cluster.end_pods("Succeeded")
    assert cluster.job("job_finished_indexes_total", status="succeeded", backoffLimit="global") == 3
    assert cluster.job("job_pods_finished_total", completion_mode="Indexed", result="succeeded") == 3


async def test_recreated_pods_are_counted(cluster):
    await cluster.run_job(parallelism=2, completions=2, backoffLimit=5)
    await cluster.server.patch(f"{BATCH}/jobs/j", {"spec": {"suspend": True}})
    await cluster.manager.step(2)
    mode = {"completion_mode": "NonIndexed"}
    assert cluster.job("job_syncs_total", **mode, result="success", action="pods_deleted") == 1


async def test_ttl_deletion_delay_is_observed(cluster):
    await cluster.run_job(ttlSecondsAfterFinished=60)
    await cluster.end_pods("Succeeded")
    await cluster.manager.step(120)
    assert cluster.value("ttl_after_finished_controller_job_deletion_duration_seconds_count") == 1


async def test_cron_job_creation_skew_is_observed(cluster):
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}}
    answer = await cluster.server.post(f"{BATCH}/cronjobs", {"metadata": {"name": "c"}, "spec": spec})
    assert answer.status == 201, answer.body
    await cluster.manager.step(150)
    name = "cronjob_controller_job_creation_skew_duration_seconds"
    assert cluster.value(f"{name}_count") == 2
    assert cluster.value(f"{name}_sum") < 2
