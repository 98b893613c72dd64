"""Features that can be switched off: admission plugins, privileged containers, watches with initial events."""

import pytest

from tests.support.server import apiserver

CORE = "/api/v1/namespaces/default"
PODS = f"{CORE}/pods"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


def pod(**spec):
    containers = [{"name": "c", "image": "nginx"}]
    return {"metadata": {"name": "p"}, "spec": {"containers": containers} | spec}


async def test_disabled_plugin_has_no_effect():
    async with apiserver.running("--disable-admission-plugins=ServiceAccount") as client:
        spec = (await client.post(PODS, pod())).body["spec"]
        assert spec["priority"] == 0
        assert "volumes" not in spec


async def test_disabled_watch_list_is_forbidden():
    async with apiserver.running("--feature-gates=WatchList=false") as client:
        answer = await client.get(f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    forbidden = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"
    assert (answer.status, answer.body["message"]) == (
        422,
        f'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: {forbidden}',
    )


PRIVILEGED = {"securityContext": {"privileged": True}}
OF_HOST = {"windowsOptions": {"hostProcess": True}}
FORBIDDEN = "Forbidden: disallowed by cluster policy"


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        pytest.param(
            PODS,
            pod(containers=[{"name": "c", "image": "i"} | PRIVILEGED]),
            f"spec.containers[0].securityContext.privileged: {FORBIDDEN}",
            id="pod",
        ),
        pytest.param(
            f"{CORE}/podtemplates",
            {"metadata": {"name": "t"}, "template": pod(initContainers=[{"name": "i", "image": "i"} | PRIVILEGED])},
            f"template.spec.initContainers[0].securityContext.privileged: {FORBIDDEN}",
            id="template",
        ),
        pytest.param(
            "/apis/batch/v1/namespaces/default/cronjobs",
            {
                "metadata": {"name": "j"},
                "spec": {
                    "schedule": "@daily",
                    "jobTemplate": {
                        "spec": {
                            "template": pod(containers=[{"name": "c", "image": "i"} | PRIVILEGED], restartPolicy="Never")
                        }
                    },
                },
            },
            f"spec.jobTemplate.spec.template.spec.containers[0].securityContext.privileged: {FORBIDDEN}",
            id="cron job",
        ),
        pytest.param(
            PODS,
            pod(securityContext=OF_HOST, hostNetwork=True, os={"name": "windows"}),
            "spec: Forbidden: hostProcess containers are disallowed by cluster policy",
            id="process of the host",
        ),
    ],
)  # fmt: skip
async def test_privileged_containers_follow_flag(client, path, body, says):
    assert (await client.post(path, body)).status == 201
    async with apiserver.running("--allow-privileged=false") as strict:
        await strict.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        answer = await strict.post(path, body)
    assert (answer.status, answer.body["message"].partition(" is invalid: ")[2]) == (422, says)


async def test_container_cannot_become_privileged_later():
    async with apiserver.running("--allow-privileged=false") as client:
        await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "default"}})
        await client.post(PODS, pod())
        debugger = {"name": "d", "image": "i"} | PRIVILEGED
        path = f"{PODS}/p/ephemeralcontainers"
        answer = await client.patch(path, {"spec": {"ephemeralContainers": [debugger]}})
        assert answer.status == 422
        assert (
            f"spec.ephemeralContainers[0].securityContext.privileged: {FORBIDDEN}" in answer.body["message"]
        )
