"""The ServiceAccount admission plugin, over HTTP: a pod's account, its token volume and its secrets."""

import asyncio
import contextlib

import pytest

from mockube.apimachinery.status import TooManyRequests
from mockube.apiserver.admission.service_account import (
    LOOKUPS,
    MAX_WAITING_REQUESTS,
    MIN_LOOKUP_INTERVAL,
    SERVICE_ACCOUNTS,
    ServiceAccount,
)
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation, RequestContext
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until, yield_to_loop
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


# --- the default account of a new namespace, which a controller creates a little later

NEW = "/api/v1/namespaces/new"
DEFAULT_ACCOUNT = {"metadata": {"name": "default"}}
NO_DEFAULT_ACCOUNT = 'error looking up service account new/default: serviceaccount "default" not found'


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
async def empty_namespace(clock):
    async with apiserver.running(clock=clock) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "new"}})
        yield client


@contextlib.asynccontextmanager
async def waiting_request(client, method="POST", path=f"{NEW}/pods", body=None, **headers):
    """Yield the task of a request that waits for an account."""
    task = asyncio.create_task(client.send(method, path, pod() if body is None else body, **headers))
    accounts = client.server.registry.resource_cache(SERVICE_ACCOUNTS)
    try:
        await until(lambda: task.done() or accounts.watchers)
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await until(lambda: not accounts.watchers)


async def test_pod_waits_for_default_account_of_new_namespace(empty_namespace):
    async with waiting_request(empty_namespace) as task:
        assert not task.done()
        account = DEFAULT_ACCOUNT | {"imagePullSecrets": [{"name": "s"}]}
        await empty_namespace.post(f"{NEW}/serviceaccounts", account)
        answer = await task
    assert (answer.status, answer.body["spec"]["imagePullSecrets"]) == (201, [{"name": "s"}])


async def test_pod_without_default_account_is_refused_after_upstreams_lookups(empty_namespace, clock):
    async with waiting_request(empty_namespace) as task:
        clock.advance((LOOKUPS - 1) * MIN_LOOKUP_INTERVAL - 0.01)
        await yield_to_loop(5)
        assert empty_namespace.server.registry.resource_cache(SERVICE_ACCOUNTS).watchers
        clock.advance(0.92)  # nine intervals are 1.8 s at most
        answer = await task
    assert (answer.status, answer.body["message"]) == (403, f'pods "p" is forbidden: {NO_DEFAULT_ACCOUNT}')


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (f"{NEW}/pods", pod(serviceAccountName="robot")),
        ("/api/v1/namespaces/none/pods", pod()),
        (
            f"{NEW}/pods",
            pod() | {"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}},
        ),
    ],
    ids=["other account", "missing namespace", "mirror pod"],
)
async def test_request_that_needs_no_default_account_does_not_wait(empty_namespace, path, body):
    async with waiting_request(empty_namespace, path=path, body=body) as task:
        assert task.done()


async def test_ephemeral_container_waits_for_default_account(empty_namespace, clock):
    await empty_namespace.post(f"{NEW}/serviceaccounts", DEFAULT_ACCOUNT)
    await empty_namespace.post(f"{NEW}/pods", pod())
    await empty_namespace.delete(f"{NEW}/serviceaccounts/default")
    debugged = {"spec": {"ephemeralContainers": [{"name": "d", "image": "x"}]}}
    options = {"path": f"{NEW}/pods/p/ephemeralcontainers", "body": debugged}
    kind = "application/strategic-merge-patch+json"
    async with waiting_request(empty_namespace, "PATCH", **options, Content_Type=kind) as task:
        assert not task.done()
        await empty_namespace.post(f"{NEW}/serviceaccounts", DEFAULT_ACCOUNT)
        assert (await task).status == 200


async def test_waiting_pod_ends_at_deadline_of_request(empty_namespace, clock):
    async with waiting_request(empty_namespace, path=f"{NEW}/pods?timeout=500ms") as task:
        clock.advance(0.6)
        answer = await task
    assert (answer.status, answer.body["reason"]) == (504, "Timeout")


async def test_requests_beyond_maximum_do_not_wait(empty_namespace):
    registry, plugin = empty_namespace.server.registry, ServiceAccount()
    context = RequestContext(
        verb="create",
        resource=empty_namespace.server.catalog.rows["", "v1", "pods"],
        namespace="new",
        name="p",
        user=apiserver.ADMIN,
    )

    def admit():
        attributes = AdmissionAttributes(operation=Operation.CREATE, context=context, name="p", object=pod())
        return plugin.mutate(registry, attributes)

    waiting = [asyncio.create_task(admit()) for _ in range(MAX_WAITING_REQUESTS)]
    await yield_to_loop(3)
    with pytest.raises(TooManyRequests, match="too many pods are waiting"):
        await admit()
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    one_more = asyncio.create_task(admit())
    await yield_to_loop(3)
    assert not one_more.done()
    one_more.cancel()
