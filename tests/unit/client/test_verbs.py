"""API client: the request of each verb, and the conversion of responses and errors."""

import orjson
import pytest

from mockube.apimachinery import status
from mockube.client.flowcontrol import Rate
from mockube.client.kinds import CONFIG_MAPS, DEPLOYMENTS, NAMESPACES, PODS
from mockube.client.metrics.requests import ClientMetrics
from mockube.client.resources import Key, Resource, whole_tree
from mockube.client.sender import FixedToken, Sender
from mockube.client.service_accounts import SharedIdentity
from mockube.client.verbs import Client
from mockube.client.wire import OutcomeUnknown, Response, Unreachable
from mockube.component_base.clock import SteppedClock
from mockube.component_base.metrics import MetricsRegistry
from tests.support.stores.scripted_transport import ScriptedTransport, answer, problem

ROLES = Resource(
    group="rbac.authorization.k8s.io",
    version="v1",
    plural="clusterroles",
    kind="ClusterRole",
    namespaced=False,
    view=whole_tree,
)
LIST = answer(body={"metadata": {"resourceVersion": "7"}, "items": [{"metadata": {"name": "a"}}]})
A = Key("default", "a")


@pytest.fixture
def transport():
    return ScriptedTransport()


@pytest.fixture
def client(transport):
    sender = Sender(
        transport=transport,
        credential=FixedToken(),
        agent="manager",
        limit=None,
        clock=SteppedClock(),
        metrics=ClientMetrics(MetricsRegistry()),
    )
    return Client(sender, SharedIdentity(sender=sender, rate=Rate(qps=1.0, burst=1)))


def body(transport):
    (sent,) = transport.sent
    return orjson.loads(sent[0].body) if sent[0].body else None


@pytest.mark.parametrize(
    ("say", "expected"),
    [
        pytest.param(
            lambda c: c.get(PODS, A), "GET /api/v1/namespaces/default/pods/a", id="get"
        ),
        pytest.param(
            lambda c: c.get(DEPLOYMENTS, A, subresource="scale"),
            "GET /apis/apps/v1/namespaces/default/deployments/a/scale",
            id="get a subresource",
        ),
        pytest.param(
            lambda c: c.get(NAMESPACES, Key("", "x")), "GET /api/v1/namespaces/x", id="get a cluster-wide object"
        ),
        pytest.param(
            lambda c: c.get(ROLES, Key("", "system:a b?/c%")),
            "GET /apis/rbac.authorization.k8s.io/v1/clusterroles/system:a%20b%3F/c%25",
            id="get an object with a special name",
        ),
        pytest.param(
            lambda c: c.list(PODS, "x", label_selector="a=b,c in (d)", limit=5, continue_token="t", resource_version="0"),
            "GET /api/v1/namespaces/x/pods?labelSelector=a%3Db%2Cc+in+%28d%29&limit=5&continue=t&resourceVersion=0",
            id="list",
        ),
        pytest.param(lambda c: c.list(PODS), "GET /api/v1/pods", id="list everywhere"),
        pytest.param(
            lambda c: c.create(PODS, {"metadata": {"namespace": "x"}}), "POST /api/v1/namespaces/x/pods", id="create"
        ),
        pytest.param(
            lambda c: c.create(PODS, {}, key=A, subresource="eviction"),
            "POST /api/v1/namespaces/default/pods/a/eviction",
            id="create below a parent",
        ),
        pytest.param(
            lambda c: c.update(PODS, {"metadata": {"namespace": "x", "name": "a"}}, subresource="status"),
            "PUT /api/v1/namespaces/x/pods/a/status",
            id="update",
        ),
        pytest.param(
            lambda c: c.patch(PODS, A, {}, kind="apply", field_manager="me", force=True),
            "PATCH /api/v1/namespaces/default/pods/a?fieldManager=me&force=true",
            id="patch",
        ),
        pytest.param(
            lambda c: c.patch(PODS, A, {}, dry_run=True),
            "PATCH /api/v1/namespaces/default/pods/a?dryRun=All",
            id="dry run of a patch",
        ),
        pytest.param(lambda c: c.delete(PODS, A), "DELETE /api/v1/namespaces/default/pods/a", id="delete"),
        pytest.param(
            lambda c: c.delete_collection(PODS, "x", list_options={"label_selector": "a"}),
            "DELETE /api/v1/namespaces/x/pods?labelSelector=a",
            id="delete a collection",
        ),
        pytest.param(lambda c: c.raw("GET", "/apis?a=b"), "GET /apis?a=b", id="raw"),
    ],
)  # fmt: skip
async def test_each_verb_has_its_method_and_path(client, transport, say, expected):
    transport.will(LIST)
    await say(client)
    assert transport.targets == [expected]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("json", "application/json-patch+json"),
        ("apply", "application/apply-patch+yaml"),
    ],
)
async def test_each_patch_has_its_content_type(client, transport, kind, expected):
    transport.will(answer())
    await client.patch(PODS, A, {}, kind=kind)
    ((request, _),) = transport.sent
    assert request.headers["Content-Type"] == expected


@pytest.mark.parametrize(
    "write", [lambda c, tree: c.create(PODS, tree), lambda c, tree: c.update(PODS, tree)]
)
async def test_bodies_have_the_escapes_of_go(client, transport, write):
    transport.will(answer())
    await write(client, {"metadata": {"namespace": "x", "name": "a"}, "data": {"if": "a && b"}})
    ((request, _),) = transport.sent
    assert rb"a \u0026\u0026 b" in request.body


async def test_delete_sends_preconditions_and_options(client, transport):
    transport.will(answer())
    await client.delete(PODS, A, uid="u", resource_version="5", grace_period_seconds=0, propagation="Orphan")
    assert body(transport) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "u", "resourceVersion": "5"},
        "propagationPolicy": "Orphan",
    }


async def test_delete_without_options_has_no_body(client, transport):
    transport.will(answer())
    await client.delete(PODS, A)
    assert body(transport) is None


async def test_listed_items_get_kind_and_api_version(client, transport):
    transport.will(LIST)
    listed = await client.list(DEPLOYMENTS)
    assert listed == ([{"metadata": {"name": "a"}, "kind": "Deployment", "apiVersion": "apps/v1"}], "7", "")


async def test_null_items_are_an_empty_list(client, transport):
    transport.will(answer(body={"metadata": {"resourceVersion": "7"}, "items": None}))
    assert (await client.list(PODS)).items == []


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(problem(404, "NotFound", "gone"), status.NotFound, id="by its reason"),
        pytest.param(problem(409, "AlreadyExists"), status.AlreadyExists, id="not by its code"),
        pytest.param(Response(409, None, b"no JSON"), status.AlreadyExists, id="response is not JSON"),
        pytest.param(
            Response(503, None, b'{"a": 1}'), status.ServiceUnavailable, id="response is not a Status"
        ),
        pytest.param(Response(302, None, b""), status.Unknown, id="a redirection"),
        pytest.param(problem(500, "InternalError"), status.InternalError, id="internal"),
        pytest.param(problem(504, "Timeout"), OutcomeUnknown, id="a write that took too long"),
        pytest.param(Response(502, None, b"<html>"), OutcomeUnknown, id="a write behind a proxy"),
        pytest.param(Response(200, None, b"<html>"), OutcomeUnknown, id="success without a body"),
        pytest.param(Unreachable(), Unreachable, id="unreachable"),
        pytest.param(OutcomeUnknown(), OutcomeUnknown, id="cut"),
    ],
)
async def test_error_responses_raise_their_class(client, transport, outcome, expected):
    transport.will(outcome)
    with pytest.raises(expected) as caught:
        await client.create(CONFIG_MAPS, {})
    assert type(caught.value) is expected


async def test_failed_read_is_never_outcome_unknown(client, transport):
    transport.will(problem(504, "Timeout", "too slow"))
    with pytest.raises(status.Timeout, match="too slow"):
        await client.get(PODS, A)


async def test_error_keeps_message_and_details(client, transport):
    transport.will(problem(429, "TooManyRequests", "wait", name="a", retryAfterSeconds=3))
    with pytest.raises(status.TooManyRequests, match="wait") as caught:
        await client.delete(PODS, A)
    assert caught.value.details.retry_after_seconds == 3


async def test_each_controller_has_own_user_agent_and_rate_limit(client, transport):
    transport.will(answer(), answer())
    await client.for_service_account("a").get(PODS, A)
    await client.for_service_account("b").get(PODS, A)
    assert [headers["User-Agent"] for _, headers in transport.sent] == ["manager/a", "manager/b"]


async def test_deadline_of_request_can_be_set(client, transport):
    transport.will(answer())
    await client.with_timeout(2.5).for_service_account("a").get(PODS, A)
    assert [request.timeout for request, _ in transport.sent] == [2.5]
