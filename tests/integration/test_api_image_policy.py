"""ImagePolicyWebhook, request by request: responses of kube-apiserver 1.36.3 and the reviews that it sent.

The requests and answers are in `image_policy.jsonl`, the reviews that the webhook was sent in `image_reviews.jsonl`.
"""

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import orjson
import pytest
from aiohttp import web

from mockube.apiserver.admission.configurations import Configurations, ImagePolicySettings
from mockube.apiserver.admission.image_policy_webhook import ImagePolicyWebhook
from mockube.apiserver.config.command_line import Config
from mockube.apiserver.config.settings import AdmissionOptions
from mockube.apiserver.outgoing import KubeconfigEndpoint, OutgoingDependencies
from mockube.component_base.clock import SteppedClock
from tests.support.server import apiserver

HERE = Path(__file__).parent
REQUESTS = [*map(orjson.loads, (HERE / "image_policy.jsonl").read_bytes().splitlines())]
REVIEWS = [*map(orjson.loads, (HERE / "image_reviews.jsonl").read_bytes().splitlines())]
PODS = "/api/v1/namespaces/rt-i/pods"


def answer_of(review):
    images = "".join(one["image"] for one in review["spec"].get("containers", ()))
    status = {"allowed": "deny" not in images}
    if "deny" in images and "silent" not in images:
        status["reason"] = "not today"
    if "audit" in images:
        status["auditAnnotations"] = {"k": "v", "other": "w"}
    body = {"apiVersion": "imagepolicy.k8s.io/v1alpha1", "kind": "ImageReview", "status": status}
    if "otherkind" in images:
        body = {"kind": "Pod", "apiVersion": "v1"}
    if "nokind" in images:
        body = {"status": status}
    return body, 500 if "fail500" in images else 403 if "fail403" in images else 200


class Hook:
    def __init__(self):
        self.reviews = []
        self.url = ""

    async def handle(self, request):
        assert request.query_string == "timeout=30s"
        self.reviews.append(orjson.loads(await request.read()))
        body, code = answer_of(self.reviews[-1])
        return web.json_response(body, status=code)


@pytest.fixture
async def hook():
    hook, app = Hook(), web.Application()
    app.router.add_post("/images", hook.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hook.url = f"http://127.0.0.1:{runner.addresses[0][1]}/images"
    yield hook
    await runner.cleanup()


def settings(hook, *, default_allow=False):
    return ImagePolicySettings(
        endpoint=KubeconfigEndpoint(url=hook.url),
        allow_seconds=50,
        deny_seconds=50,
        retry_seconds=0.001,
        default_allow=default_allow,
    )


@contextlib.asynccontextmanager
async def server(hook, **options):
    configurations = Configurations(image_policy=settings(hook, **options))
    admission = AdmissionOptions(
        enable_admission_plugins=("ImagePolicyWebhook",), admission_control_config_file=configurations
    )
    async with apiserver.running(config=Config(admission=admission)) as client:
        await client.post("/api/v1/namespaces", {"metadata": {"name": "rt-i"}})
        await client.post("/api/v1/namespaces/rt-i/serviceaccounts", {"metadata": {"name": "default"}})
        yield client


async def send(client, method, path, body):
    if method == "PATCH":
        return await client.patch(path, body, kind="strategic-merge-patch+json")
    return await client.post(path, body)


async def answers(client, requests):
    """Return the differences from the recording."""
    for one in requests:
        answer = await send(client, *one["request"])
        message = answer.body.get("message") if answer.status >= 400 else None
        if message:
            message = re.sub(r"gen-\w{5}", "gen-X", message)
        wanted = one["message"] and re.sub(r"gen-\w{5}", "gen-X", one["message"])
        if (answer.status, message) != (one["code"], wanted):
            yield one["name"], answer.status, message


async def test_image_policy_webhook_decides_on_pods(hook):
    async with server(hook) as client:
        recorded = [one for one in REQUESTS if not one["default_allow"]]
        assert [one async for one in answers(client, recorded)] == []
        assert hook.reviews == REVIEWS


async def test_image_policy_failure_allows_with_default_allow(hook):
    async with server(hook, default_allow=True) as client:
        recorded = [one for one in REQUESTS if one["default_allow"]]
        assert recorded
        assert [one async for one in answers(client, recorded)] == []


async def test_image_policy_decisions_expire(hook):
    async def respond_allowed(request):
        hook.reviews.append(request)
        return SimpleNamespace(code=200, body=b'{"status":{"allowed":true}}')

    pod = {"metadata": {}, "spec": {"containers": [{"image": "ok"}]}}
    attributes = SimpleNamespace(object=pod, namespace="a", target=("", "pods", ""))
    clock = SteppedClock()
    plugin = ImagePolicyWebhook(settings(hook), OutgoingDependencies(respond_allowed, clock))
    for seconds in (0, 49, 2):
        clock.advance(seconds)
        await plugin.validate(None, attributes)
    assert len(hook.reviews) == 2
