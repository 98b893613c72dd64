"""Webhook authorization and webhook token authentication; `webhook_answers.json` records kube-apiserver's answers."""

import asyncio
import contextlib
from pathlib import Path

import orjson
import pytest
from aiohttp import web

from mockube.apiserver.authn.token_webhook import TokenWebhookSettings
from mockube.apiserver.kubeconfig import read_endpoint
from tests.support.server import apiserver
from tests.support.server.webhook_server import credentials

ANSWERS = {
    one["name"]: one for one in orjson.loads((Path(__file__).parent / "webhook_answers.json").read_bytes())
}
REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
ALICE = {"Authorization": "Bearer alice"}
NO = {"allowed": False}


class Hook:
    """Answers reviews as the test configures, and records them."""

    def __init__(self):
        self.code, self.status, self.reviews = 200, NO, []

    async def answer(self, request):
        review = orjson.loads(await request.read())
        self.reviews.append({"path": str(request.rel_url), "review": review})
        if self.code != 200:
            return web.Response(status=self.code, text="broken")
        return web.json_response(
            {"kind": review["kind"], "apiVersion": review["apiVersion"], "status": self.status}
        )


@contextlib.asynccontextmanager
async def hook_server(folder):
    """Yield a webhook; the kubeconfig `hook` in the folder leads to it."""
    context, authority = credentials(folder)
    (folder / "ca.pem").write_bytes(authority)
    hook, app = Hook(), web.Application()
    app.router.add_post("/authorize", hook.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    cluster = {
        "server": f"https://127.0.0.1:{runner.addresses[0][1]}/authorize",
        "certificate-authority": "ca.pem",
    }
    tree = {
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    (folder / "hook").write_bytes(orjson.dumps(tree))
    try:
        yield hook
    finally:
        await runner.cleanup()


def configuration(folder, policy="NoOpinion", conditions="request.user != 'skip'", ttl="1s"):
    return f"""
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- {{type: RBAC, name: rbac}}
- type: Webhook
  name: hook
  webhook:
    timeout: 3s
    authorizedTTL: {ttl}
    unauthorizedTTL: {ttl}
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: {policy}
    connectionInfo: {{type: KubeConfigFile, kubeConfigFile: {folder}/hook}}
    matchConditions: [{{expression: "{conditions}"}}]
"""


@pytest.fixture
async def hook(tmp_path):
    async with hook_server(tmp_path) as hook:
        yield hook


@contextlib.asynccontextmanager
async def server(folder, **options):
    file = folder / "authorization.yaml"
    file.write_text(configuration(folder, **options))
    webhook = TokenWebhookSettings(endpoint=read_endpoint(folder / "hook"), version="v1")
    flag = f"--authorization-config={file}"
    async with apiserver.running(flag, token_webhook=webhook) as client:
        assert await client.server.bootstrap_roles.reconcile()
        await client.server.registry.watch_cache.fresh()
        yield client


def message_of(answer):
    try:
        return answer.body.get("message") or ""
    except orjson.JSONDecodeError:
        return answer.data.decode().strip()


def is_as_recorded(name, answer, hook):
    recorded = ANSWERS[name]
    for one in hook.reviews:
        if one["review"]["spec"].get("user") == "alice":
            one["review"]["spec"].pop("groups")
    found = {"name": name, "code": answer.status, "said": message_of(answer), "asked": hook.reviews}
    assert found == recorded
    return True


SELECTORS = "fieldSelector=spec.nodeName%3Dn,status.phase!%3DX&labelSelector=a%3Db,c!%3Dd,e+in+(f,g),!h,i"
REQUESTS = {
    "list selectors": (f"/api/v1/namespaces/default/pods?{SELECTORS}", 200, NO),
    "path": ("/foo/bar", 200, NO),
    "get": ("/apis/apps/v1/namespaces/x/deployments/y/status", 200, NO),
    "allowed": ("/api/v1/namespaces/default/secrets", 200, {"allowed": True, "reason": "because"}),
    "denied": ("/api/v1/namespaces/default/configmaps", 200, {"denied": True, "reason": "never"}),
    "both": (
        "/api/v1/namespaces/default/endpoints",
        200,
        {"denied": True, "allowed": True, "reason": "both"},
    ),
    "403": ("/api/v1/namespaces/default/services", 403, NO),
}


async def test_authorization_webhook_is_called_for_undecided_requests(tmp_path, hook):
    async with server(tmp_path) as client:
        for name, (path, code, status) in REQUESTS.items():
            hook.reviews, hook.code, hook.status = [], code, status
            assert is_as_recorded(name, await client.get(path, **ALICE), hook)


async def test_match_conditions_exclude_users_from_webhook(tmp_path, hook):
    async with server(tmp_path) as client:
        answer = await client.get("/api/v1/pods", Impersonate_User="skip")
        assert is_as_recorded("impersonated skip", answer, hook)


async def test_access_review_calls_webhook_and_reports_its_failure(tmp_path, hook):
    async with server(tmp_path) as client:
        hook.code = 404
        spec = {"user": "bob", "groups": ["g"], "extra": {"k": ["v"]}, "uid": "1"}
        body = {"spec": {**spec, "resourceAttributes": {"verb": "get", "resource": "pods"}}}
        answer = await client.post(REVIEWS, body)
        assert is_as_recorded("sar404", answer, hook)
        assert answer.body["status"]["evaluationError"] == "the server could not find the requested resource"


async def test_failed_match_condition_follows_failure_policy(tmp_path, hook):
    options = {"policy": "Deny", "conditions": "request.resourceAttributes.namespace != 'skip'"}
    async with server(tmp_path, **options) as client:
        assert is_as_recorded("condition fails", await client.get("/foo/baz", **ALICE), hook)
        answer = await client.get("/api/v1/namespaces/skip/pods", **ALICE)
        assert is_as_recorded("condition excludes", answer, hook)


async def test_webhook_decisions_are_cached_and_counted(tmp_path, hook):
    async with server(tmp_path, ttl="1h") as client:
        hook.status = {"allowed": True}
        for _ in range(3):
            assert (await client.get("/api/v1/namespaces/default/secrets", **ALICE)).status == 200
        assert len(hook.reviews) == 1
        metrics = (await client.get("/metrics")).data.decode()
        assert 'apiserver_authorization_webhook_evaluations_total{name="hook",result="success"} 1' in metrics
        assert (
            'apiserver_authorization_match_condition_evaluation_seconds_count{name="hook",type="Webhook"} 3'
            in metrics
        )


async def test_synchronous_decisions_wait_for_webhook(tmp_path, hook):
    """Covers impersonation, blockOwnerDeletion, and a role with more rights than its author has."""
    async with server(tmp_path, ttl="1h") as client:
        hook.status = {"allowed": True}
        body = {"spec": {}}
        review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
        answer = await client.post(review, body, Impersonate_User="carl", **ALICE)
        assert (answer.status, answer.body["status"]["userInfo"]["username"]) == (201, "carl")
        rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
        roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"
        role = {"metadata": {"name": "all"}, "rules": rules}
        assert (await client.post(roles, role, **ALICE)).status == 201
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "blockOwnerDeletion": True}
        made = {"metadata": {"name": "m", "ownerReferences": [owner]}}
        assert (await client.post("/api/v1/namespaces/default/configmaps", made, **ALICE)).status == 201
        asked = {one["review"]["spec"]["resourceAttributes"]["verb"] for one in hook.reviews}
        assert {"impersonate:user-info", "escalate", "create"} <= asked


async def test_valid_changed_file_applies_and_invalid_one_is_ignored(tmp_path, hook, caplog):
    async with server(tmp_path) as client:
        file, authorizers = tmp_path / "authorization.yaml", client.server._authorizers.configured
        head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
        file.write_text(f"{head}- {{type: Webhook, name: hook}}\n")
        await authorizers.reload()
        assert "authorizers[0].webhook: Required value: required when type=Webhook" in caplog.text
        file.write_text(f"{head}- {{type: AlwaysAllow, name: alwaysallow}}\n")
        await authorizers.reload()
        assert "missing required types: [RBAC]" in caplog.text
        assert (await client.get("/foo/bar", **ALICE)).status == 403
        hook.status = {"allowed": True}
        assert (await client.get("/foo/baz", **ALICE)).status == 404
        file.write_text(f"{head}- {{type: RBAC, name: rbac}}\n")
        await authorizers.reload()
        assert (await client.get("/foo/baz", **ALICE)).status == 403


async def test_changed_file_cannot_enable_always_allow(tmp_path, hook, caplog):
    """The server's address and anonymous users are checked for that mode at the start only."""
    async with server(tmp_path) as client:
        head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"
        text = f"{head}- {{type: RBAC, name: rbac}}\n- {{type: AlwaysAllow, name: alwaysallow}}\n"
        (tmp_path / "authorization.yaml").write_text(text)
        await client.server._authorizers.configured.reload()
        problem = "authorizer type AlwaysAllow is not allowed if it was not enabled at initial server startup"
        assert problem in caplog.text
        assert (await client.get("/foo/bar", **ALICE)).status == 403


async def test_token_webhook_reviews_tokens(tmp_path, hook):
    async with server(tmp_path) as client:
        user = {"username": "tok", "groups": ["a"], "uid": "9", "extra": {"x": ["y"]}}
        responses = {
            "token": ("one", 200, {"authenticated": True, "user": user}),
            "token error": ("two", 200, {"authenticated": False, "error": "not good"}),
            "token 403": ("four", 403, {}),
        }
        for name, (token, code, status) in responses.items():
            hook.reviews, hook.code, hook.status = [], code, status
            answer = await client.post(TOKENS, {"spec": {"token": token}})
            assert is_as_recorded(name, answer, hook)
            expected = {
                "token": {
                    "authenticated": True,
                    "user": {**user, "groups": ["a", "system:authenticated"]},
                    "audiences": ["https://kubernetes.default.svc"],
                },
                "token error": {"user": {}, "error": "[invalid bearer token, not good]"},
                "token 403": {"user": {}, "error": "[invalid bearer token, broken]"},
            }
            assert answer.body["status"] == expected[name]


async def test_unreachable_webhook_grants_nothing(tmp_path, caplog):
    async with hook_server(tmp_path):
        pass
    async with server(tmp_path) as client:
        answer = await client.get("/foo/bar", **ALICE)
        assert answer.status == 500
        assert b"connection refused" in answer.data
        assert "Failed to make webhook authorizer request" in caplog.text
        answers = await asyncio.gather(*(client.get("/api/v1/pods") for _ in range(3)))
        assert {one.status for one in answers} == {200}
