"""The warning to helm that pods of a release are ready by assumption."""

import pytest

from mockube.apiserver.admission.assumed_releases import RELEASE, RELEASE_NAME
from tests.support.server.memory_api import CORE

MESSAGE = "the image example/app is not simulated: the container runs without it until it is stopped"
PODS, SECRETS = f"{CORE}/pods", f"{CORE}/secrets"


def record(status="deployed", **fields):
    labels = {"name": "shop", "owner": "helm", "status": status, "version": "1"}
    metadata = {"name": "sh.helm.release.v1.shop.v1", "labels": labels}
    return {"metadata": metadata, "type": RELEASE, "data": {"release": "eA=="}, **fields}


async def add_pod(api, name, *conditions, release="shop"):
    metadata = {"name": name, "annotations": {RELEASE_NAME: release}}
    spec = {"containers": [{"name": "c", "image": "example/app"}]}
    assert (await api.create(PODS, {"metadata": metadata, "spec": spec})).code == 201
    status = [
        {"type": kind, "status": "True", "reason": "R", "message": message} for kind, message in conditions
    ]
    assert (await api.patch(f"{PODS}/{name}/status", {"status": {"conditions": status}})).code == 200


READY, NOT_SIMULATED = ("Ready", ""), ("mockube.dev/NotSimulated", MESSAGE)


@pytest.mark.kills("admission without WarnOfAssumedPods")
async def test_release_with_assumed_pods_has_one_warning_when_it_is_deployed(api):
    await add_pod(api, "known", READY)
    await add_pod(api, "unknown", READY, NOT_SIMULATED)
    await add_pod(api, "other", READY, NOT_SIMULATED, release="other")
    assert not (await api.create(SECRETS, record("pending-install"))).warnings
    labels = {"metadata": {"labels": {"status": "deployed"}}}
    path = f"{SECRETS}/sh.helm.release.v1.shop.v1"
    assert (await api.patch(path, labels)).warnings == [
        (
            f"1 of 2 pods of the release shop are ready by assumption, such as unknown: {MESSAGE}; what would make it known: "
            "mockube why pod/unknown -n default"
        )
    ]


async def test_release_whose_pods_are_known_has_no_warning(api):
    await add_pod(api, "known", READY)
    await add_pod(api, "waiting", NOT_SIMULATED)
    assert not (await api.create(SECRETS, record())).warnings
    assert not (
        await api.create(SECRETS, {"metadata": {"name": "a", "labels": {"status": "deployed"}}})
    ).warnings
