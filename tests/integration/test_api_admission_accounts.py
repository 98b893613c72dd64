"""The ServiceAccount admission plugin, over HTTP: a pod's account, its token volume and its secrets."""

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


async def refusal(client, path, body):
    answer = await client.post(path, body)
    assert answer.status == 403, answer.body
    return answer.body["message"].partition(" is forbidden: ")[2]


async def test_pod_gets_default_service_account_and_token(client):
    spec = (await client.post(PODS, pod(initContainers=[{"name": "i", "image": "x"}]))).body["spec"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    (volume,) = spec["volumes"]
    assert volume["name"].startswith("kube-api-access-")
    for container in (*spec["containers"], *spec["initContainers"]):
        assert [(mount["name"], mount["mountPath"]) for mount in container["volumeMounts"]] == [
            (volume["name"], "/var/run/secrets/kubernetes.io/serviceaccount")
        ]


async def test_pod_with_missing_service_account_is_refused(client):
    assert await refusal(client, PODS, pod(serviceAccountName="none")) == (
        'error looking up service account default/none: serviceaccount "none" not found'
    )


async def test_refusal_of_pod_without_name_uses_generate_name(client):
    nameless = pod(serviceAccountName="none") | {"metadata": {"generateName": "web-"}}
    answer = await client.post(PODS, nameless)
    assert answer.body["message"].startswith('pods "web-" is forbidden')


@pytest.mark.parametrize(
    ("account", "spec", "expected"),
    [
        pytest.param({}, {"automountServiceAccountToken": False}, False, id="pod opts out"),
        pytest.param({"automountServiceAccountToken": False}, {}, False, id="account opts out"),
        pytest.param(
            {"automountServiceAccountToken": False},
            {"automountServiceAccountToken": True},
            True,
            id="pod overrides account",
        ),
    ],
)
async def test_token_automount_follows_account_and_pod(client, account, spec, expected):
    await client.post(f"{CORE}/serviceaccounts", {"metadata": {"name": "a"}} | account)
    created = await client.post(PODS, pod(serviceAccountName="a", **spec))
    assert ("volumes" in created.body["spec"]) == expected


async def test_existing_mount_path_gets_no_token(client):
    mount = {"name": "v", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}
    containers = [{"name": "c", "image": "x", "volumeMounts": [mount]}]
    created = (
        await client.post(PODS, pod(containers=containers, volumes=[{"name": "v", "emptyDir": {}}]))
    ).body
    assert [volume["name"] for volume in created["spec"]["volumes"]] == ["v"]


async def test_image_pull_secrets_of_account_are_added(client):
    account = {"metadata": {"name": "a"}, "imagePullSecrets": [{"name": "s"}]}
    await client.post(f"{CORE}/serviceaccounts", account)
    created = await client.post(PODS, pod(serviceAccountName="a"))
    assert created.body["spec"]["imagePullSecrets"] == [{"name": "s"}]


async def test_mirror_pod_gets_no_token_and_no_references(client):
    watch_cache = {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}
    assert await refusal(client, PODS, pod(serviceAccountName="default") | {"metadata": watch_cache}) == (
        "a mirror pod may not reference service accounts"
    )
    volumes = [{"name": "v", "secret": {"secretName": "s"}}]
    assert await refusal(client, PODS, pod(volumes=volumes) | {"metadata": watch_cache}) == (
        "a mirror pod may not reference secrets"
    )


async def test_account_enforces_mountable_secrets_of_volumes(client):
    enforced = {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    await client.post(f"{CORE}/serviceaccounts", {"metadata": enforced, "secrets": [{"name": "mine"}]})
    volumes = [{"name": "v", "secret": {"secretName": "other"}}]
    assert await refusal(client, PODS, pod(serviceAccountName="a", volumes=volumes)) == (
        'volume with secret.secretName="other" is not allowed '
        "because service account a does not reference that secret"
    )


async def test_account_enforces_mountable_secrets_of_environment_and_debuggers(client):
    enforced = {"name": "a", "annotations": {"kubernetes.io/enforce-mountable-secrets": "true"}}
    await client.post(f"{CORE}/serviceaccounts", {"metadata": enforced, "secrets": [{"name": "mine"}]})
    debugger = {"name": "d", "image": "x", "envFrom": [{"secretRef": {"name": "other"}}]}
    ending = (
        'with envFrom referencing secret.secretName="other" is not allowed because service account a does not '
        "reference that secret"
    )
    initial = pod(serviceAccountName="a", initContainers=[debugger])
    assert await refusal(client, PODS, initial) == f"init container d {ending}"
    await client.post(PODS, pod(serviceAccountName="a"))
    debugged = {"spec": {"ephemeralContainers": [debugger]}}
    answer = await client.patch(f"{PODS}/p/ephemeralcontainers", debugged, kind="strategic-merge-patch+json")
    assert answer.body["message"] == f'pods "p" is forbidden: ephemeral container d {ending}'
