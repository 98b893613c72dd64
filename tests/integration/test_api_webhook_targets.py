"""Admission webhooks: their addresses, dry runs, audit annotations and metrics."""

import asyncio

import orjson
import pytest

from mockube.apiserver.admission.webhooks.services import endpoint
from tests.support.server import apiserver
from tests.support.server.webhook_server import (
    FAILED,
    MAP,
    MUTATING,
    PATH,
    VALIDATING,
    labels,
    register,
    warnings,
    webhook_server,
)


@pytest.fixture
async def hooks(tmp_path):
    async with webhook_server(tmp_path, "hooks.default.svc") as server:
        yield server


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


async def test_unreachable_webhook_is_connection_refused(client, hooks):
    await register(client, VALIDATING, hooks.hook("x", clientConfig={"url": "https://127.0.0.1:1/x"}))
    assert (await client.post(PATH, MAP)).body["message"] == (
        f'{FAILED}failed to call webhook: Post "https://127.0.0.1:1/x?timeout=1s": '
        "dial tcp 127.0.0.1:1: connect: connection refused"
    )


def _alert(number):
    return bytes([21, 3, 3, 0, 2, 2, number])


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        pytest.param(
            b"HTTP/1.1 400 Bad Request\r\n\r\n", "http: server gave HTTP response to HTTPS client", id="HTTP"
        ),
        pytest.param(_alert(40), "remote error: tls: handshake failure", id="no common cipher"),
        pytest.param(_alert(42), "remote error: tls: bad certificate", id="bad certificate"),
        pytest.param(_alert(48), "remote error: tls: unknown certificate authority", id="unknown CA"),
        pytest.param(_alert(70), "remote error: tls: protocol version not supported", id="old version"),
        pytest.param(_alert(112), "remote error: tls: unrecognized name", id="unrecognized name"),
        pytest.param(_alert(116), "remote error: tls: certificate required", id="no client certificate"),
    ],
)
async def test_refused_handshake_has_message_of_go(client, hooks, reply, problem):
    async def refuse(reader, writer):
        await reader.read(100)
        writer.write(reply)
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/x"
        await register(client, VALIDATING, hooks.hook("x", clientConfig={"url": url}))
        answer = await client.post(PATH, MAP)
    assert answer.body["message"] == f'{FAILED}failed to call webhook: Post "{url}?timeout=1s": {problem}'


async def test_webhook_with_untrusted_certificate_is_refused(client, hooks):
    url = f"https://127.0.0.1:{hooks.port}/ok"
    await register(client, VALIDATING, hooks.hook("x", clientConfig={"url": url}))
    message = (await client.post(PATH, MAP)).body["message"]
    assert message.endswith(
        "tls: failed to verify certificate: x509: certificate signed by unknown authority"
    )
    assert hooks.requests == []


@pytest.mark.parametrize(
    "host",
    [
        "169.254.169.254",
        "[fe80::1]",
        "[::ffff:169.254.1.1]",
        "[0:0:0:0:0:ffff:a9fe:a9fe]",
        "2852039166",
        "0xa9.0376.43518",
    ],
)
async def test_link_local_webhook_addresses_are_refused(client, hooks, host):
    await register(client, VALIDATING, hooks.hook("x", clientConfig={"url": f"https://{host}/latest"}))
    assert "is a link-local address, which is never called" in (await client.post(PATH, MAP)).body["message"]


def service(**spec):
    return {"service": {"namespace": "default", "name": "hooks", "path": "/label", **spec}}


async def test_webhook_service_flag_redirects_service(hooks):
    async with apiserver.running(f"--webhook-service=default/hooks=127.0.0.1:{hooks.port}") as client:
        config = service() | {"caBundle": hooks.bundle}
        await register(client, MUTATING, hooks.hook("x", clientConfig=config))
        assert labels(await client.post(PATH, MAP)) == {"hooked": "yes"}


DEPLOYMENT = {
    "metadata": {"name": "web"},
    "spec": {
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "web", "image": "nginx"}]},
        },
    },
}


async def refusal(client):
    return (await client.post(PATH, MAP)).body["message"].rpartition('timeout=1s": ')[2]


async def test_webhook_service_without_endpoints_is_refused(client, hooks):
    await register(client, MUTATING, hooks.hook("x", clientConfig=service()))
    assert await refusal(client) == 'service "hooks" not found'
    spec = {"selector": {"a": "b"}, "ports": [{"port": 443}]}
    await client.post("/api/v1/namespaces/default/services", {"metadata": {"name": "hooks"}, "spec": spec})
    assert await refusal(client) == 'no endpoints available for service "hooks"'


async def test_refusal_of_a_simulated_webhook_says_what_can_be_done(hooks):
    async with apiserver.running("--simulated-webhooks=refuse") as client:
        await register(client, MUTATING, hooks.hook("x", clientConfig=service()))
        await create_simulated_service(client)
        assert await refusal(client) == (
            'service "hooks" leads to simulated pods only: start the API server with '
            "--webhook-service=default/hooks=HOST:PORT, or with --simulated-webhooks=allow, which lets writes pass "
            "without the webhook"
        )


async def test_charts_can_be_installed_after_one_whose_webhooks_are_simulated(client, hooks):
    """Those of kueue match each Deployment of the cluster."""
    await create_simulated_service(client)
    rules = [
        {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}
    ]
    config = hooks.hook("x", "mdeployment.kb.io", clientConfig=service(), rules=rules, failurePolicy="Fail")
    await register(client, MUTATING, config)
    answer = await client.post("/apis/apps/v1/namespaces/default/deployments", DEPLOYMENT)
    assert answer.status == 201, answer.body
    assert [each for each in warnings(answer) if '"mdeployment.kb.io" of c was not called' in each]


async def create_simulated_service(client):
    spec = {"selector": {"a": "b"}, "ports": [{"port": 443}]}
    await client.post("/api/v1/namespaces/default/services", {"metadata": {"name": "hooks"}, "spec": spec})
    pod = {"addresses": ["10.1.2.3"], "targetRef": {"kind": "Pod", "name": "p"}}
    slice_ = {
        "metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "hooks"}},
        "addressType": "IPv4", "endpoints": [pod], "ports": [{"name": "", "port": 8443}],
    }  # fmt: skip
    await client.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slice_)


NOT_CALLED = (
    'mockube: webhook "h.example.com" of c was not called: service default/hooks leads to simulated pods only'
)


@pytest.mark.parametrize(
    ("flag", "annotation", "code"),
    [(True, None, 201), (False, "allow", 201), (True, "refuse", 500), (False, None, 500)],
)
@pytest.mark.parametrize("kind", [MUTATING, VALIDATING])
async def test_simulated_webhook_is_passed_with_warning_if_flag_or_annotation_allows(
    hooks, kind, flag, annotation, code
):
    async with apiserver.running(f"--simulated-webhooks={'allow' if flag else 'refuse'}") as client:
        await create_simulated_service(client)
        annotations = {"mockube.dev/simulated-webhooks": annotation} if annotation else None
        await register(client, kind, hooks.hook("x", clientConfig=service()), annotations=annotations)
        answer = await client.post(PATH, MAP)
    assert answer.status == code
    assert warnings(answer) == ([NOT_CALLED] if code == 201 else [])


async def test_unknown_choice_for_simulated_webhooks_is_warning(hooks):
    async with apiserver.running() as client:
        await create_simulated_service(client)
        annotations = {"mockube.dev/simulated-webhooks": "yes"}
        await register(client, MUTATING, hooks.hook("x", clientConfig=service()), annotations=annotations)
        answer = await client.post(PATH, MAP)
    assert answer.status == 201
    assert "c: mockube.dev/simulated-webhooks: 'yes': must be refuse or allow; the flag applies" in warnings(
        answer
    )


# --- responses, and objects that are not stored


def every_write(hooks, path):
    return hooks.hook(
        path,
        rules=[{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*/*"]}],
    )


TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"


async def test_webhook_receives_complete_token_request_once(client, hooks):
    await register(client, VALIDATING, every_write(hooks, "ok"))
    created = await client.post(TOKEN, {"spec": {}})
    ((_, asked),) = hooks.requests
    assert created.status == 201
    shown = asked["object"]
    for name in ("name", "namespace", "uid", "creationTimestamp"):
        assert shown["metadata"][name] == created.body["metadata"][name]
    assert shown["status"] == {"token": "", "expirationTimestamp": None}
    assert shown["spec"]["audiences"] == created.body["spec"]["audiences"] != []


async def test_missing_account_is_reported_before_validating_webhooks(client, hooks):
    await register(client, VALIDATING, every_write(hooks, "ok"))
    answer = await client.post(TOKEN.replace("default/token", "none/token"), {"spec": {}})
    assert (answer.status, answer.body["message"]) == (404, 'serviceaccounts "none" not found')
    assert hooks.requests == []


QUESTIONS = {
    "authentication.k8s.io/v1/tokenreviews": 400,
    "authorization.k8s.io/v1/subjectaccessreviews": 422,
    "authorization.k8s.io/v1/selfsubjectaccessreviews": 422,
    "authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews": 422,
    "authorization.k8s.io/v1/selfsubjectrulesreviews": 400,
}


@pytest.mark.parametrize(("path", "code"), QUESTIONS.items(), ids=QUESTIONS)
async def test_invalid_review_is_refused_before_validating_webhooks(client, hooks, path, code):
    await register(client, VALIDATING, every_write(hooks, "ok"))
    assert (await client.post(f"/apis/{path}", {"spec": {}})).status == code
    assert hooks.requests == []


@pytest.mark.parametrize(("minor", "user"), [("1.36", "bob"), ("1.37", "admin")])
async def test_mutating_webhook_changes_review_response_until_1_36(hooks, minor, user):
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    attributes = {"verb": "get", "resource": "pods"}
    async with apiserver.running(f"--kubernetes-version={minor}") as client:
        await register(client, MUTATING, every_write(hooks, "ask-for-bob"))
        answer = await client.post(path, {"spec": {"user": "admin", "resourceAttributes": attributes}})
    assert answer.body["spec"]["user"] == user


@pytest.mark.parametrize("subresource", ["binding", "eviction"])
async def test_webhooks_receive_subresource_bodies_with_other_names(client, hooks, subresource):
    await register(client, MUTATING, every_write(hooks, "ok"))
    body = (
        {"metadata": {"name": "b"}, "target": {"name": "n"}}
        if subresource == "binding"
        else {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": "b"},
        }
    )
    answer = await client.post(f"/api/v1/namespaces/default/pods/a/{subresource}", body)
    kind = subresource.capitalize()
    assert answer.body["message"] == f"name in URL does not match name in {kind} object"
    ((_, asked),) = hooks.requests
    assert (asked["name"], asked["subResource"]) == ("a", subresource)


# --- dry runs, audit, metrics


async def test_dry_run_calls_webhooks_without_side_effects_only(client, hooks):
    await register(client, VALIDATING, hooks.hook("ok", sideEffects="NoneOnDryRun"))
    assert (await client.post(f"{PATH}?dryRun=All", MAP)).status == 201
    ((_, asked),) = hooks.requests
    assert asked["dryRun"] is True


async def test_webhook_calls_are_audited_and_counted(hooks, tmp_path):
    log = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={log}") as client:
        await register(
            client, MUTATING, hooks.hook("label"), hooks.hook("500", "o.example.com", failurePolicy="Ignore")
        )
        await register(client, VALIDATING, hooks.hook("warn"))
        await client.post(PATH, MAP)
        metrics = (await client.get("/metrics")).data.decode()
    event = next(
        event
        for event in map(orjson.loads, log.read_bytes().splitlines())
        if event["requestURI"] == PATH and event["stage"] == "ResponseComplete"
    )
    annotations = event["annotations"]
    assert orjson.loads(annotations["mutation.webhook.admission.k8s.io/round_0_index_0"]) == {
        "configuration": "c", "webhook": "h.example.com", "mutated": True,
    }  # fmt: skip
    assert annotations["failed-open.mutation.webhook.admission.k8s.io/round_0_index_1"] == "o.example.com"
    assert annotations["h.example.com/k"] == "v"
    assert 'apiserver_admission_webhook_fail_open_count{name="o.example.com",type="admit"} 1' in metrics
    assert (
        'apiserver_admission_webhook_request_total{code="200",name="h.example.com",operation="CREATE",'
        'rejected="false",type="validating"} 1'
    ) in metrics


@pytest.mark.parametrize(("level", "has_patch"), [("Metadata", False), ("Request", True)])
async def test_patches_of_webhooks_are_audited_from_level_request_on(hooks, tmp_path, level, has_patch):
    """A patch contains parts of the object, which the level Metadata omits."""
    log, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_text(f"{{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{{level: {level}}}]}}")
    async with apiserver.running(f"--audit-log-path={log}", f"--audit-policy-file={policy}") as client:
        await register(client, MUTATING, hooks.hook("label"))
        await client.post(PATH, MAP)
    event = next(
        event
        for event in map(orjson.loads, log.read_bytes().splitlines())
        if event["requestURI"] == PATH and event["stage"] == "ResponseComplete"
    )
    assert "mutation.webhook.admission.k8s.io/round_0_index_0" in event["annotations"]
    assert ("patch.webhook.admission.k8s.io/round_0_index_0" in event["annotations"]) is has_patch


@pytest.mark.parametrize(
    ("path", "expected"), [("//a//b/", "/a/b"), ("/a/../b", "/b"), ("", "/"), ("/a/./b", "/a/b")]
)
async def test_webhook_url_path_is_escaped_as_in_go(path, expected):
    """envtest writes two slashes."""
    at = endpoint(None, {"url": f"https://127.0.0.1:9{path}"}, {}, seconds=1)
    assert at.url == f"https://127.0.0.1:9{expected}"


async def test_deletion_of_collection_is_audited_with_first_value_of_annotation(hooks, tmp_path):
    log = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={log}") as client:
        for name in ("a", "b"):
            await client.post(PATH, {"metadata": {"name": name}})
        await register(client, VALIDATING, hooks.hook("warn"))
        deleted = await client.delete(PATH)
    event = next(
        event
        for event in map(orjson.loads, log.read_bytes().splitlines())
        if event["verb"] == "deletecollection" and event["stage"] == "ResponseComplete"
    )
    assert (deleted.status, len(hooks.requests), event["annotations"]["h.example.com/k"]) == (200, 2, "v")
    assert warnings(deleted)
