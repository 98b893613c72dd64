"""What a simulated kubelet answers by the path, the node, the user and the state of the pod, before any stream begins."""

from datetime import UTC, datetime
from types import SimpleNamespace

import orjson
import pytest
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict, MultiDict

from mockube.apimachinery.status import NotFound
from mockube.client.podview import PodView
from mockube.client.wire import NoResponse
from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.log_stream import LogOptions
from mockube.container_runtime.objects import ObjectsUnavailable
from mockube.container_runtime.runtime import CommandFailed, NotPermitted, RuntimeProblem
from mockube.kubelet.server.authentication import KubeletUser, user_of
from mockube.kubelet.server.authorization import (
    ALLOWED_SECONDS,
    DENIED_SECONDS,
    KubeletAuthorizer,
    RequestAttributes,
    request_attributes,
)
from mockube.kubelet.server.container_logs import BadLogOptions, log_options
from mockube.kubelet.server.endpoints import ClientAccess, KubeletEndpoints
from mockube.kubelet.server.http_errors import HttpError
from mockube.kubelet.server.remote_command import stream_options
from mockube.kubelet.server.statuses import exit_status, failure_status, plain_status

SIMULATED = {"kwok.x-k8s.io/node": "fake"}
RUNNING = {
    "name": "c",
    "image": "x",
    "imageID": "id",
    "state": {"running": {"startedAt": "2030-01-01T00:00:00Z"}},
}
STARTED = {
    "phase": "Running",
    "podIP": "10.0.0.1",
    "startTime": "2030-01-01T00:00:00Z",
    "containerStatuses": [RUNNING],
}


def node(name, **annotations):
    return {"metadata": {"name": name, "annotations": {**SIMULATED, **annotations}}, "status": {}}


def pod(name="web", on="a", *, status=STARTED, namespace="default", **metadata):
    head = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **metadata}
    spec = {"nodeName": on, "containers": [{"name": "c", "image": "x"}]}
    return PodView.of({"metadata": head, "spec": spec, "status": status})


NODES = {
    "a": node("a"),
    "off": node("off", **{"mockube.dev/stop-heartbeats": "true"}),
    "stopped": node("stopped", **{"mockube.dev/stopped-units": "kubelet=stopped"}),
    "real": {"metadata": {"name": "real"}},
}
PODS = [
    pod(),
    pod("waits", status={"phase": "Pending"}, creationTimestamp="2029-01-01T00:00:00Z"),
    pod("ended", status={**STARTED, "phase": "Succeeded", "podIP": "10.0.0.2"}),
    pod("other", "b", namespace="x"),
    pod("static", annotations={"kubernetes.io/config.source": "file"}),
]


class Pods:
    def get(self, namespace, name):
        return next((each for each in PODS if (each.key.namespace, each.key.name) == (namespace, name)), None)

    def by_index(self, _, value):
        return [each for each in PODS if each.node == value]

    def all(self):
        return PODS


class Runtime:
    """A runtime whose commands have a result that a test gives."""

    result = 0

    async def exec(self, _pod, _container, request):
        self.request = request

        async def execute(output):
            if isinstance(self.result, Exception):
                raise self.result
            await output.write(1, " ".join(request.command).encode())
            return self.result

        return execute

    def container_stats(self, tree, _):
        return SimpleNamespace(cores=0.5, memory=1024) if tree["metadata"]["name"] != "static" else None

    def listener(self, _tree, _number, *, simulated):
        self.simulated = simulated


class Access:
    """The user is `ada` with the token `right`, and may do everything but what a test forbids."""

    def __init__(self):
        self.asked, self.problem, self.is_permitted = [], None, True

    async def user_of(self, authorization):
        return KubeletUser("ada", ()) if authorization == "right" else None

    async def is_allowed(self, user, attributes):
        if self.problem is not None:
            raise self.problem
        self.asked.append((user.name, *attributes))
        return self.is_permitted


class Transport:
    """A connection without a certificate of the client."""

    is_aborted = False

    def get_extra_info(self, name, default=None):
        return None if name == "peercert" else default

    def abort(self):
        self.is_aborted = True


class Kubelet:
    def __init__(self):
        self.runtime, self.access, self.drops = Runtime(), Access(), False

        async def drops_api_server(*_):
            return self.drops

        containers = SimpleNamespace(
            pods=None,
            runtime=self.runtime,
            machines=None,
            services=None,
            probe_records=None,
            drops_api_server=drops_api_server,
        )
        nodes = SimpleNamespace(get=lambda _, name: NODES.get(name))
        self.endpoints = KubeletEndpoints(
            Pods(),
            nodes,
            containers=containers,
            access=ClientAccess(self.access, self.access),
            clock=SteppedClock(),
            pages=SimpleNamespace(counters=None),
        )

    async def answer(self, path, *, method="GET", on="", token="right"):
        headers = CIMultiDict({"Authorization": token} | ({"Mockube-Node": on} if on else {}))
        transport = Transport()
        fields = dict.fromkeys(("ssl_context", "peername", "sockname"))
        protocol = SimpleNamespace(node="", transport=transport, **fields)
        request = make_mocked_request(method, path, headers, transport=transport, protocol=protocol)
        response = await self.endpoints.handle(request)
        self.is_aborted = transport.is_aborted
        return response.status, response.body.decode()


@pytest.fixture
def kubelet():
    return Kubelet()


RUN = "/run/default/web/c?cmd=ls+-l"
ANSWERS = {
    "no path": ("GET", "/x", "a", 404, "404 page not found\n"),
    "another method": ("DELETE", "/pods", "a", 404, "404 page not found\n"),
    "no node": ("GET", "/pods", "", 404, "node '' is not simulated here"),
    "an unknown node": ("GET", "/pods", "x", 404, "node 'x' is not simulated here"),
    "a real node": ("GET", "/pods", "real", 404, "node 'real' is not simulated here"),
    "a node that is cut off": ("GET", "/pods", "off", 503, "the node is disconnected"),
    "the shell of a node that is cut off": ("POST", "/mockube/shell", "off", 503, "the node is disconnected"),
    "the ports of a node that is cut off": (
        "GET",
        "/connect/10.0.0.1/80",
        "off",
        503,
        "the node is disconnected",
    ),
    "a node whose kubelet is stopped": ("GET", "/pods", "stopped", 503, "the node is disconnected"),
    "the shell of a node whose kubelet is stopped": (
        "POST",
        "/mockube/shell?output=1",
        "stopped",
        400,
        "you must specify a command",
    ),
    "a page below the name of a pod": (
        "GET",
        "/metrics/default/web",
        "",
        404,
        "node '' is not simulated here",
    ),
    "a path without a pod": ("GET", "/exec/default", "", 404, "node '' is not simulated here"),
    "health": ("GET", "/healthz", "a", 200, "ok"),
    "a command": ("POST", RUN, "", 200, "ls -l"),
    "a command by way of its node": ("POST", RUN, "a", 200, "ls -l"),
    "a command by another method": ("GET", RUN, "a", 404, "404 page not found\n"),
    "a command of a pod with its uid": ("POST", "/run/default/web/uid/c?cmd=ls", "", 200, "ls"),
    "a command of a pod that does not exist": (
        "POST",
        "/run/default/no/c",
        "a",
        404,
        'pod "no" does not exist',
    ),
    "a command of a pod of another node": ("POST", "/run/x/other/c", "a", 404, 'pod "other" does not exist'),
    "a command of a container that does not run": ("POST", "/run/default/waits/c", "", 500, None),
    "a checkpoint": (
        "POST",
        "/checkpoint/default/web/c",
        "",
        500,
        "checkpointing of default/web/c failed (rpc error: code = Unimplemented desc = checkpoints of simulated containers are not simulated)",
    ),
    "a checkpoint of no container": (
        "POST",
        "/checkpoint/default/web/d",
        "",
        404,
        "container d does not exist",
    ),
    "the log of no container": (
        "GET",
        "/containerLogs/default/web/d",
        "",
        404,
        'container "d" not found in pod "web"',
    ),
    "a log with a wrong number": (
        "GET",
        "/containerLogs/default/web/c?tailLines=x",
        "",
        400,
        '{"message": "Unable to decode query."}',
    ),
    "the log of a container before its first run": (
        "GET",
        "/containerLogs/default/web/c?previous=true",
        "",
        400,
        None,
    ),
    "exec without a command": ("POST", "/exec/default/web/c?output=1", "", 400, "you must specify a command"),
    "exec without a stream": (
        "GET",
        "/exec/default/web/c?command=ls",
        "",
        400,
        "you must specify at least 1 of stdin, stdout, stderr",
    ),
    "exec without an upgrade": (
        "GET",
        "/exec/default/web/uid/c?command=ls&output=1",
        "",
        400,
        "unable to upgrade: missing upgrade headers in request",
    ),
    "attach to a container that does not run": ("GET", "/attach/default/waits/c?output=1", "", 500, None),
    "forwarding without an upgrade": (
        "POST",
        "/portForward/default/web",
        "",
        400,
        "unable to upgrade: missing upgrade headers in request",
    ),
    "the shell of a node by GET": (
        "GET",
        "/mockube/shell",
        "a",
        405,
        "the shell of a node needs a POST request\n",
    ),
    "the shell of a node without a command": (
        "POST",
        "/mockube/shell?output=1",
        "a",
        400,
        "you must specify a command",
    ),
    "a port of no pod": ("GET", "/connect/10.0.0.9/80", "a", 502, "connection refused"),
    "a port of a pod that has ended": ("GET", "/connect/10.0.0.2/80", "a", 502, "connection refused"),
    "a port that nothing listens on": ("GET", "/connect/10.0.0.1/80", "a", 502, "connection refused"),
}


@pytest.mark.parametrize(("method", "path", "on", "code", "body"), ANSWERS.values(), ids=ANSWERS)
async def test_answer(kubelet, method, path, on, code, body):
    found, text = await kubelet.answer(path, method=method, on=on)
    assert found == code
    assert body is None or text == body
    assert kubelet.is_aborted is (code == 503)


@pytest.mark.parametrize(
    ("result", "code", "body"),
    [
        (0, 200, "ls -l"),
        (3, 500, "command exited with 3: ls -l"),
        (CommandFailed("no shell"), 500, "no shell"),
        (NotPermitted("no"), 403, "no"),
        (RuntimeProblem("gone"), 500, "gone"),
        (
            ObjectsUnavailable("x"),
            500,
            "could not authenticate or authorize the request at the API server: x",
        ),
    ],
)
async def test_result_of_a_command(kubelet, result, code, body):
    kubelet.runtime.result = result
    assert await kubelet.answer(RUN, method="POST") == (code, body)
    assert kubelet.runtime.request.command == ["ls", "-l"]


async def test_command_without_output_that_fails(kubelet):
    kubelet.runtime.result = 3
    assert await kubelet.answer("/run/default/web/c", method="POST") == (500, "command exited with 3")


@pytest.mark.parametrize("problem", [NotFound("y"), NoResponse("y")], ids=["error", "no response"])
async def test_request_fails_while_the_server_cannot_review_its_user(kubelet, problem):
    kubelet.access.problem = problem
    code, text = await kubelet.answer("/healthz", on="a")
    assert code == 500
    assert text.startswith("could not authenticate or authorize the request at the API server: ")


async def test_user_without_a_token_is_not_known(kubelet):
    assert await kubelet.answer("/healthz", on="a", token="wrong") == (401, "Unauthorized")
    assert kubelet.access.asked == []


async def test_user_without_the_right_is_refused_before_the_node_is_looked_at(kubelet):
    kubelet.access.is_permitted = False
    text = "Forbidden (user=ada, verb=get, resource=nodes, subresource(s)=[pods proxy])\n"
    assert await kubelet.answer("/pods", on="x") == (403, text)
    assert kubelet.access.asked == [("ada", "get", ("pods", "proxy"), "x")]


async def test_right_is_that_of_the_node_of_the_pod(kubelet):
    await kubelet.answer(RUN, method="POST")
    assert kubelet.access.asked == [("ada", "create", ("proxy",), "a")]


async def test_port_whose_packets_a_policy_drops(kubelet):
    kubelet.drops = True
    dropped = (504, "a NetworkPolicy drops the packets of the API server")
    assert await kubelet.answer("/connect/10.0.0.1/80", on="a") == dropped
    assert await kubelet.answer("/connect/10.0.0.9/80", on="a") == (502, "connection refused")


@pytest.mark.parametrize(("query", "simulated"), [("", True), ("?only=processes", False), ("?only=x", True)])
async def test_simulated_ports_are_left_out_on_request(kubelet, query, simulated):
    await kubelet.answer(f"/connect/10.0.0.1/80{query}", on="a")
    assert kubelet.runtime.simulated is simulated


def source_of(item):
    annotations = item["metadata"]["annotations"]
    return annotations["kubernetes.io/config.seen"], annotations["kubernetes.io/config.source"]


async def test_pods_of_a_node(kubelet):
    started, created = "2030-01-01T00:00:00Z", "2029-01-01T00:00:00Z"
    pods = orjson.loads((await kubelet.answer("/pods", on="a"))[1])
    assert [(each["metadata"]["name"], *source_of(each)) for each in pods["items"]] == [
        ("web", started, "api"),
        ("waits", created, "api"),
        ("ended", started, "api"),
        ("static", started, "file"),
    ]
    assert pods["items"][0]["status"] == STARTED
    allocated = orjson.loads((await kubelet.answer("/allocatedPods", on="a"))[1])
    assert [each["status"] for each in allocated["items"]] == [{}] * 4
    running = orjson.loads((await kubelet.answer("/runningpods", on="a"))[1])
    assert [each["metadata"]["name"] for each in running["items"]] == ["web", "ended", "static"]
    assert running["items"][0]["spec"] == {"containers": [{"name": "c", "image": "id", "resources": {}}]}


USED = {"c": {"cpu": "500m", "memory": "1Ki"}}


@pytest.mark.parametrize(
    ("query", "uids"),
    [
        ("", ["uid-other", "uid-web"]),
        ("?namespace=default", ["uid-web"]),
        ("?namespace=default&name=web", ["uid-web"]),
        ("?namespace=x&name=web", []),
        ("?namespace=default&name=static", []),
    ],
)
async def test_usage_of_pods_whose_programs_are_known(kubelet, query, uids):
    code, body = await kubelet.answer(f"/mockube/usage{query}")
    usage = orjson.loads(body)
    assert (code, sorted(usage)) == (200, uids)
    assert all(each == USED for each in usage.values())


async def test_usage_is_only_read(kubelet):
    assert (await kubelet.answer("/mockube/usage", method="POST", on="a"))[0] == 404


# --- rights


@pytest.mark.parametrize(
    ("method", "path", "verb", "subresources"),
    [
        ("GET", "/pods", "get", ("pods", "proxy")),
        ("HEAD", "/allocatedPods", "get", ("pods", "proxy")),
        ("GET", "/runningpods/", "get", ("pods", "proxy")),
        ("GET", "/healthz", "get", ("healthz", "proxy")),
        ("GET", "/configz", "get", ("configz", "proxy")),
        ("GET", "/flagz", "get", ("configz",)),
        ("GET", "/statusz", "get", ("statusz",)),
        ("POST", "/checkpoint/a/b/c", "create", ("checkpoint",)),
        ("GET", "/metrics/cadvisor", "get", ("metrics",)),
        ("GET", "/stats/summary", "get", ("stats",)),
        ("GET", "/logs/", "get", ("log",)),
        ("PUT", "/podsx", "update", ("proxy",)),
        ("PATCH", "/", "patch", ("proxy",)),
        ("DELETE", "/exec/a/b/c", "delete", ("proxy",)),
        ("TRACE", "/exec/a/b/c", "", ("proxy",)),
    ],
)
def test_right_that_a_request_needs(method, path, verb, subresources):
    """As in the authorization of a real kubelet."""
    assert request_attributes(method, path, "n") == RequestAttributes(verb, subresources, "n")


class Reviews:
    """A server that allows what the subresources of a test are."""

    def __init__(self, *allowed):
        self.allowed, self.asked, self.problem = allowed, [], None

    async def raw(self, method, path, *, body):
        assert (method, path) == ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews")
        if self.problem:
            raise self.problem
        spec = orjson.loads(body)["spec"]
        self.asked.append(spec["resourceAttributes"]["subresource"])
        assert spec == {
            "user": "ada",
            "groups": ["dev"],
            "resourceAttributes": {
                "verb": "get",
                "version": "v1",
                "resource": "nodes",
                "subresource": self.asked[-1],
                "name": "n",
            },
        }
        return {"status": {"allowed": self.asked[-1] in self.allowed}}


ADA = KubeletUser("ada", ("dev",))
READ_PODS = RequestAttributes("get", ("pods", "proxy"), "n")


@pytest.mark.parametrize(
    ("allowed", "asked", "seconds"),
    [
        (("pods",), ["pods"], ALLOWED_SECONDS),
        (("proxy",), ["pods", "proxy"], DENIED_SECONDS),
        ((), ["pods", "proxy"], DENIED_SECONDS),
    ],
)
async def test_decision_is_asked_for_again_after_some_time(clock, allowed, asked, seconds):
    reviews = Reviews(*allowed)
    authorizer = KubeletAuthorizer(reviews, clock)
    assert await authorizer.is_allowed(ADA, READ_PODS) is bool(allowed)
    clock.advance(seconds - 1)
    assert await authorizer.is_allowed(ADA, READ_PODS) is bool(allowed)
    assert reviews.asked == asked
    clock.advance(1)
    await authorizer.is_allowed(ADA, READ_PODS)
    assert len(reviews.asked) > len(asked)


@pytest.mark.parametrize("problem", [NotFound("y"), NoResponse("y")], ids=["error", "no response"])
async def test_user_is_refused_while_the_server_cannot_decide(clock, problem):
    reviews = Reviews("pods")
    reviews.problem = problem
    assert not await KubeletAuthorizer(reviews, clock).is_allowed(ADA, READ_PODS)


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        (None, None),
        ([[("organizationName", "dev")]], None),
        (
            [[("commonName", "ada")], [("organizationName", "dev"), ("organizationName", "ops"), ("x", "y")]],
            KubeletUser("ada", ("dev", "ops", "system:authenticated")),
        ),
    ],
)
def test_user_of_a_client_certificate(subject, user):
    assert user_of(None if subject is None else {"subject": subject}) == user


# --- queries

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
BOTH = frozenset({1, 2})


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        ({}, {}),
        (
            {"follow": "true", "previous": "1", "timestamps": "yes"},
            {"follow": True, "previous": True, "timestamps": True},
        ),
        ({"follow": "false", "previous": "0", "timestamps": ""}, {}),
        ({"follow": "FALSE"}, {}),
        ({"tailLines": "0"}, {"tail": 0}),
        ({"tailLines": "3", "tail": "all"}, {"tail": 3}),
        ({"tailLines": "3", "tail": "5"}, {"tail": 5}),
        ({"limitBytes": "1"}, {"limit": 1}),
        ({"sinceTime": "2030-01-01T11:00:00Z"}, {"since": datetime(2030, 1, 1, 11, tzinfo=UTC)}),
        ({"sinceSeconds": "60"}, {"since": datetime(2030, 1, 1, 11, 59, tzinfo=UTC)}),
        (
            {"sinceSeconds": "60", "sinceTime": "2030-01-01T11:00:00Z"},
            {"since": datetime(2030, 1, 1, 11, 59, tzinfo=UTC)},
        ),
        ({"stream": "Stdout"}, {"streams": frozenset({1})}),
        ({"stream": "Stderr"}, {"streams": frozenset({2})}),
        ({"stream": ""}, {"streams": BOTH}),
    ],
)
def test_options_of_a_log(query, fields):
    assert log_options(query, NOW) == LogOptions(**fields)


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ({"sinceTime": "x"}, "Unable to decode query."),
        ({"sinceSeconds": "x"}, "Unable to decode query."),
        ({"tailLines": ""}, "Unable to decode query."),
        ({"tailLines": "-1"}, "Invalid request."),
        ({"limitBytes": "0"}, "Invalid request."),
        ({"limitBytes": "x"}, "Unable to decode query."),
        ({"stream": "x"}, "Invalid request."),
    ],
)
def test_options_of_a_log_that_are_refused(query, problem):
    with pytest.raises(BadLogOptions, match=problem):
        log_options(query, NOW)


@pytest.mark.parametrize(
    ("query", "streams", "tty"),
    [
        ({"input": "1"}, {0}, False),
        ({"output": "true", "error": "1"}, {1, 2}, False),
        ({"input": "0", "output": "1", "error": "x"}, {1}, False),
        ({"output": "1", "error": "1", "tty": "1"}, {1, 4}, True),
        ({"output": "1", "tty": "true"}, {1, 4}, True),
        ({"output": "1", "tty": "0"}, {1}, False),
    ],
)
def test_streams_of_a_command(query, streams, tty):
    options = stream_options(MultiDict(query))
    assert (options.streams, options.tty) == (streams, tty)


@pytest.mark.parametrize("query", [{}, {"error": "1", "tty": "1"}, {"input": "x"}])
def test_command_without_a_stream_is_refused(query):
    with pytest.raises(HttpError, match="at least 1 of"):
        stream_options(query)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (exit_status(0), "Success", b""),
        (exit_status(3), "Failure", b"command terminated with non-zero exit code: exit status 3"),
        (failure_status("m"), "Failure", b"Internal error occurred: m"),
    ],
)
def test_status_at_the_end_of_a_command(status, kind, text):
    assert (orjson.loads(status)["status"], plain_status(status)) == (kind, text)
