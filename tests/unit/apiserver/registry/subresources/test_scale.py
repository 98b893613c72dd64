"""The Scale of an object: what a write of it changes in the object."""

import pytest

from tests.support.server.memory_api import running_api

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
ONE = f"{DEPLOYMENTS}/d"


@pytest.fixture
async def created(api):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return (await api.create(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})).body


async def test_scale_shows_replicas_and_selector(api, created):
    answer = await api.get(f"{ONE}/scale")
    assert (answer.body["kind"], answer.body["spec"]) == ("Scale", {"replicas": 1})
    assert answer.body["status"] == {"replicas": 0, "selector": "a=b"}


@pytest.mark.parametrize("verb", ["update", "patch"])
async def test_write_of_scale_changes_replicas_and_generation_only(api, created, verb):
    tree = {"metadata": {"name": "d"}, "spec": {"replicas": 3}}
    answer = await getattr(api, verb)(f"{ONE}/scale", tree)
    stored = await api.stored(ONE)
    assert (answer.code, answer.body["kind"], answer.body["spec"]) == (200, "Scale", {"replicas": 3})
    assert (stored["spec"], stored["metadata"]["generation"]) == (created["spec"] | {"replicas": 3}, 2)
    owners = {(each["manager"], each.get("subresource")) for each in stored["metadata"]["managedFields"]}
    assert owners == {("tests", None), ("tests", "scale")}


async def test_negative_replicas_are_invalid(api, created):
    answer = await api.patch(f"{ONE}/scale", {"spec": {"replicas": -1}})
    assert answer.refusal == (
        422,
        'Scale.autoscaling "d" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    )
    assert (await api.stored(ONE))["spec"]["replicas"] == 1


async def test_scale_with_older_version_is_conflict(api, created):
    await api.patch(ONE, {"metadata": {"labels": {"x": "y"}}})
    metadata = {"name": "d", "resourceVersion": created["metadata"]["resourceVersion"]}
    answer = await api.update(f"{ONE}/scale", {"metadata": metadata, "spec": {"replicas": 3}})
    assert answer.code == 409
    assert (await api.stored(ONE))["spec"]["replicas"] == 1


async def test_scale_of_missing_object_is_not_found():
    async with running_api() as api:
        answer = await api.patch(f"{ONE}/scale", {"spec": {"replicas": 3}})
        assert answer.refusal == (404, 'deployments.apps "d" not found')
