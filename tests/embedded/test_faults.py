"""`Cluster.inject`: injected errors, delays and cut connections reach clients and controllers."""

import asyncio
import http.client
import ssl
from urllib.parse import urlsplit

import orjson
import pytest

from mockube import Cluster
from mockube.apimachinery import status
from mockube.apiserver.control.matching import CONTROLLERS
from mockube.client.wire import NoResponse, OutcomeUnknown
from tests.support.event_loop import until
from tests.support.processes.process import token

CONFIG_MAP = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s}}"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: a, image: a}]}}"
DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: websites.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Website, plural: websites, singular: website}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
"""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


class RequestSender:
    """A client that returns each response and never retries."""

    def __init__(self, cluster):
        authority = cluster.kubeconfig.parent / "ca.crt"
        self._context = ssl.create_default_context(cafile=authority)
        self._host = urlsplit(cluster.url).netloc
        self._headers = {"Authorization": f"Bearer {token(cluster.kubeconfig)}"}

    def __call__(self, method, path, body=None):
        connection = http.client.HTTPSConnection(self._host, context=self._context, timeout=60)
        try:
            connection.request(method, path, body, {**self._headers, "Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.headers, orjson.loads(answer.read())
        finally:
            connection.close()


@pytest.fixture
def send_request(cluster):
    return RequestSender(cluster)


@pytest.mark.parametrize(
    ("method", "code", "reason", "message"),
    [
        pytest.param("GET", 403, "Forbidden", 'configmaps "a" is forbidden: a fault was injected', id="403"),
        pytest.param("GET", 404, "NotFound", 'configmaps "a" not found', id="404"),
        pytest.param(
            "PUT",
            409,
            "Conflict",
            'Operation cannot be fulfilled on configmaps "a": the object has been modified; '
            "please apply your changes to the latest version and try again",
            id="409",
        ),
        pytest.param(
            "GET", 410, "Expired", "The resourceVersion for the provided watch is too old.", id="410"
        ),
        pytest.param("GET", 429, "TooManyRequests", "Too many requests, please try again later.", id="429"),
        pytest.param("GET", 500, "InternalError", "Internal error occurred: a fault was injected", id="500"),
        pytest.param(
            "GET",
            503,
            "ServiceUnavailable",
            "the server is currently unable to handle the request (get configmaps a)",
            id="503",
        ),
        pytest.param(
            "GET",
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
            id="504",
        ),
    ],
)
def test_injected_error_has_servers_status_format(cluster, send_request, method, code, reason, message):
    with cluster.inject(resource="configmaps", status=code):
        status_code, headers, body = send_request(method, f"{CONFIG_MAPS}/a", b"{}")
    assert status_code == body["code"] == code
    assert (body["kind"], body["status"], body["reason"]) == ("Status", "Failure", reason)
    assert body["message"] == message
    assert headers.get("Retry-After") == ("1" if code == 429 else None)
    (call,) = cluster.calls(resource="configmaps")
    assert call.code == code


def test_injected_error_can_set_reason_message_and_retry_after(cluster, send_request):
    status_fields = {"reason": "Busy", "message": "not now", "retry_after": 7}
    with cluster.inject(resource="configmaps", status=429, **status_fields):
        status_code, headers, body = send_request("GET", CONFIG_MAPS)
    assert (status_code, headers["Retry-After"]) == (429, "7")
    assert (body["reason"], body["message"]) == ("Busy", "not now")


def test_injected_conflict_on_create_is_already_exists(cluster, send_request):
    with cluster.inject(verb="create", status=409):
        assert send_request("POST", CONFIG_MAPS, b"{}")[2]["reason"] == "AlreadyExists"


def test_fault_is_injected_a_number_of_times_for_matching_requests(cluster):
    fault = cluster.inject(verb="patch", resource="configmaps", name="b", status=409, times=2, after=1)
    cluster.apply(CONFIG_MAP % "a")
    cluster.apply(CONFIG_MAP % "b")
    for hits in (1, 2):
        with pytest.raises(status.Conflict):
            cluster.apply(CONFIG_MAP % "b")
        assert fault.hits == hits
    cluster.apply(CONFIG_MAP % "b")
    assert fault.hits == 2
    fault.stop()
    fault.stop()


def test_fault_ends_with_its_block(cluster):
    with cluster.inject(verb="patch", status=500), pytest.raises(status.InternalError):
        cluster.apply(CONFIG_MAP % "a")
    cluster.apply(CONFIG_MAP % "a")


def test_controllers_get_injected_errors_only_if_named(cluster):
    with cluster.inject(verb="create", resource="pods/binding", status=500) as spared:
        cluster.apply(POD % "spared")
        cluster.wait("Pod", "spared", "Ready")
    assert spared.hits == 0
    with cluster.inject(
        user=CONTROLLERS, verb="create", resource="pods/binding", status=500, times=2
    ) as fault:
        cluster.apply(POD % "struck")
        cluster.wait("Pod", "struck", "Ready")
    assert fault.hits == 2


async def test_delayed_request_continues_when_fault_ends():
    async with Cluster(nodes=1) as cluster:
        with cluster.inject(resource="nodes", delay=600.0) as fault:
            getting = asyncio.create_task(cluster.get("Node", "node-1"))
            await until(lambda: fault.hits)
            assert not getting.done()
        assert (await getting)["kind"] == "Node"


async def test_cluster_stop_does_not_wait_for_delayed_requests():
    async with Cluster(nodes=1) as cluster:
        fault = cluster.inject(delay=600.0)
        getting = asyncio.create_task(cluster.get("Node", "node-1"))
        await until(lambda: fault.hits)
    await asyncio.wait({getting})
    fault.stop()


def test_delay_without_status_returns_normal_response(cluster):
    with cluster.inject(resource="nodes", delay=0.001, times=1) as fault:
        assert len(cluster.list("Node")) == 2
    assert fault.hits == 1


def test_connection_is_cut_by_fault(cluster, send_request):
    with cluster.inject(resource="configmaps", cut="before"), pytest.raises(ConnectionError):
        send_request("POST", CONFIG_MAPS, b'{"metadata": {"name": "never"}}')
    with cluster.inject(resource="configmaps", cut="after"), pytest.raises(ConnectionError):
        send_request("POST", CONFIG_MAPS, b'{"metadata": {"name": "done"}}')
    assert [send_request("GET", f"{CONFIG_MAPS}/{name}")[0] for name in ("never", "done")] == [404, 200]
    with cluster.inject(resource="configmaps", cut="before"):
        with pytest.raises(OutcomeUnknown):
            cluster.apply(CONFIG_MAP % "never")
        with pytest.raises(NoResponse):
            cluster.get("ConfigMap", "never")


async def test_running_watch_is_cut_by_fault():
    """`Cluster.wait` starts a new watch, as every client of a watch must."""
    watches = {"verb": "watch", "resource": "configmaps"}
    async with Cluster(nodes=1) as cluster:
        waiting = asyncio.create_task(cluster.wait("ConfigMap", "late", bool))
        await until(lambda: cluster.calls(**watches))
        fault = cluster.inject(**watches, cut="before", times=1)
        await until(lambda: len(cluster.calls(**watches)) == 2)
        await cluster.apply(CONFIG_MAP % "late")
        assert (await waiting)["metadata"]["name"] == "late"
        assert fault.hits == 1


def test_watch_with_injected_410_starts_with_error_event(cluster, send_request):
    with cluster.inject(verb="watch", resource="configmaps", status=410):
        status_code, _, event = send_request("GET", f"{CONFIG_MAPS}?watch=true&resourceVersion=1")
    assert (status_code, event["type"], event["object"]["reason"]) == (200, "ERROR", "Expired")


@pytest.mark.parametrize("harm", [{"status": 410}, {"status": 500}, {"cut": "before"}], ids=str)
async def test_controllers_recover_from_faults_of_their_watches(harm):
    async with Cluster(nodes=1) as cluster:
        pods = {"user": CONTROLLERS, "verb": "watch", "resource": "pods"}
        fault = cluster.inject(**pods, times=1, **harm)
        cut = cluster.inject(**pods, cut="before", times=1)
        await until(lambda: fault.hits + cut.hits == 2)
        await cluster.apply(POD % "a")
        await cluster.wait("Pod", "a", "Ready")


def test_fault_of_resource_that_is_installed_later_is_injected():
    with Cluster(nodes=0) as cluster:
        fault = cluster.inject(resource="websites.example.com", verb="create", status=503)
        cluster.apply(DEFINITION)
        cluster.wait("CustomResourceDefinition", "websites.example.com", "Established")
        with pytest.raises(status.ServiceUnavailable):
            cluster.create("{apiVersion: example.com/v1, kind: Website, metadata: {name: a}}")
        assert fault.hits == 1
        assert len(cluster.calls(resource="websites", verb="create", code=503)) == 1
        with pytest.raises(ValueError, match=r'"website" is not a resource: did you mean "websites"\?'):
            cluster.calls(resource="website")


@pytest.mark.parametrize(
    ("harm", "problem"),
    [
        pytest.param({}, "a fault needs status, delay or cut", id="no effect"),
        pytest.param({"status": 200}, "status must be from 400 to 599, not 200", id="status of success"),
        pytest.param({"cut": "now"}, '"before" or "after"', id="invalid cut"),
        pytest.param({"delay": -1}, "delay is 0 or more seconds, not -1", id="negative delay"),
        pytest.param({"delay": "2"}, "delay is a number of seconds, not str", id="text as delay"),
        pytest.param({"status": "409"}, "status must be an int, not str", id="text as status"),
        pytest.param({"status": 500, "times": 0}, "times must be 1 or more, not 0", id="zero times"),
        pytest.param({"status": 500, "times": -1}, "times must be 1 or more, not -1", id="negative times"),
        pytest.param(
            {"status": 500, "resource": "pods/log", "verb": "create"},
            '"pods/log" has no verb "create": it has get',
            id="verb that the resource does not have",
        ),
        pytest.param(
            {"status": 500, "resource": "selfsubjectaccessreviews.authorization.k8s.io", "verb": "delete"},
            'has no verb "delete": it has create',
            id="verb of a review",
        ),
        pytest.param(
            {"status": 500, "resource": "nodes", "namespace": "default"},
            '"nodes" is not namespaced',
            id="namespace of a cluster-scoped resource",
        ),
        pytest.param({"status": 500, "resource": ""}, "resource must not be empty", id="empty resource"),
        pytest.param({"status": 500, "verb": []}, "verb must not be empty", id="no verbs"),
        pytest.param({"status": 500, "verb": "put"}, '"put" is not a verb', id="unknown verb"),
        pytest.param(
            {"status": 500, "resource": "pod"},
            r'"pod" is not a resource: did you mean "pods"\?',
            id="singular name",
        ),
    ],
)
def test_fault_without_effect_is_an_error(cluster, harm, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        cluster.inject(**harm)
