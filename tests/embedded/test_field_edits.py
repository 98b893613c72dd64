"""The fields of objects that somebody edits: those that were set, and no defaults of the server."""

import asyncio

import pytest

import mockube
from mockube.client import kubeconfig
from mockube.client.resources import Key
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.objects.resource_names import ResourceNames
from mockube.operators.field_edits import edit_field

TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "nginx"}]}}
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "nginx"}]}}}
IMAGE = "template.spec.containers.0.image"


@pytest.fixture(scope="module")
def cluster():
    with mockube.Cluster(nodes=0) as running:
        yield running


@pytest.mark.parametrize(
    ("api_version", "kind", "spec", "field"),
    [
        pytest.param(
            "apps/v1", "Deployment", {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
            f"spec.{IMAGE}", id="Deployment",
        ),
        pytest.param(
            "apps/v1", "DaemonSet", {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE},
            f"spec.{IMAGE}", id="DaemonSet",
        ),
        pytest.param(
            "batch/v1", "CronJob", {"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB}},
            f"spec.jobTemplate.spec.{IMAGE}", id="CronJob",
        ),
        pytest.param(
            "policy/v1", "PodDisruptionBudget", {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
            "spec.minAvailable", id="PodDisruptionBudget",
        ),
    ],
)  # fmt: skip
def test_edited_field_is_one_that_was_set(cluster, api_version, kind, spec, field):
    cluster.apply({"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": spec})

    async def edit():
        async with open_client(kubeconfig.read(cluster.kubeconfig), RealClock()) as client:
            found = await ResourceNames(client).find_kind(api_version, kind)
            return await edit_field(client, found.resource, Key("default", "a"))

    assert asyncio.run(edit()).field == field
