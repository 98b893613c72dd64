"""The commands of control: what they send for their flags, and how they print what the server returns."""

import asyncio
import io
from argparse import Namespace

import pytest

from mockube.apimachinery.status import Details, NotFound, not_found
from mockube.cli import clock, fault, fork, mark, requests
from mockube.cli.parsing import CommandParser
from mockube.cli.progress import Progress
from mockube.client.discovery import DiscoveredResource
from mockube.client.resources import row
from mockube.component_base.clock import SteppedClock
from mockube.control_objects import FORKS, MARKS, NoControl, object_of, post, rewind, selector, table_rows
from mockube.failure import Missing, TimedOut, UsageError
from mockube.objects.errors import KindNotServed
from mockube.objects.resource_names import find_resource
from tests.support.event_loop import until, yield_to_loop


def read(module, *arguments):
    parser = CommandParser(prog="mockube x")
    module.add_flags(parser)
    return parser.read(arguments, {})


@pytest.mark.parametrize(
    ("status", "code"),
    [
        pytest.param({}, "...", id="in progress"),
        pytest.param({"seconds": 0.1, "code": 409}, "409", id="ended"),
        pytest.param({"seconds": 0.1}, "---", id="client left"),
        pytest.param({"seconds": 0.1, "isCut": True}, "cut", id="connection cut"),
    ],
)
def test_line_of_a_request_shows_its_code_or_why_it_has_none(status, code):
    spec = {"time": "2026-01-01T00:00:00.000000Z", "verb": "get", "uri": "/x", "user": "bob", "agent": "a"}
    line = requests.line_of({"spec": spec, "status": status})
    assert line == f"00:00:00.000 {code} get /x (bob, a)"


@pytest.mark.parametrize(
    ("flags", "spec"),
    [
        (["--status=409", "--times=2"], {"match": {}, "times": 2, "refuse": {"status": 409}}),
        (
            ["--verbs=get,list", "--object=a", "--stale"],
            {"match": {"verbs": ["get", "list"], "name": "a"}, "stale": {}},
        ),
        (["--delay=2s", "--share=0.5"], {"match": {}, "share": 0.5, "delay": {"seconds": 2.0}}),
        (["--verbs=create", "--repeat"], {"match": {"verbs": ["create"]}, "repeat": {}}),
        (["--stale=2s"], {"match": {}, "stale": {"seconds": 2.0}}),
        (["--hold", "--drop=1m"], {"match": {}, "hold": {}, "drop": {"seconds": 60.0}}),
        (
            ["--cut=after", "--user=a", "--skip=1"],
            {"match": {"user": "a"}, "skip": 1, "cut": {"when": "after"}},
        ),
    ],
    ids=str,
)
def test_flags_describe_fault(flags, spec):
    assert fault.spec_of(read(fault, "add", *flags)) == spec


def test_object_without_name_gets_one_of_server():
    assert object_of("Fault", "", {})["metadata"] == {"generateName": "fault-"}
    assert object_of("Fault", "a", {})["metadata"] == {"name": "a"}


def test_selector_has_criteria_that_are_set():
    assert selector({"user": "a,b", "code": 409, "verb": "", "name": None}) == r"user=a\,b,code=409"


def test_table_has_columns_without_priority():
    columns = [{"name": "Name", "priority": 0}, {"name": "URI", "priority": 1}, {"name": "Paused"}]
    tree = {
        "columnDefinitions": columns,
        "rows": [{"cells": ["a", "/x", True]}, {"cells": ["b", None, None]}],
    }
    assert table_rows(tree) == [["NAME", "PAUSED"], ["a", "true"], ["b", ""]]


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({}, "12:00:00.123 ... watch /api/v1/pods?watch=1 (alice, kubectl)"),
        ({"seconds": 0}, "12:00:00.123 --- watch /api/v1/pods?watch=1 (alice, kubectl)"),
        ({"code": 503, "fault": "f"}, "12:00:00.123 503 watch /api/v1/pods?watch=1 (alice, kubectl) fault=f"),
    ],
)
def test_request_is_one_line(status, line):
    spec = {
        "time": "2030-01-01T12:00:00.123456Z",
        "verb": "watch",
        "uri": "/api/v1/pods?watch=1",
        "user": "alice",
        "agent": "kubectl",
    }
    assert requests.line_of({"spec": spec, "status": status}) == line


def test_revision_needs_name_of_mark():
    with pytest.raises(UsageError, match="need the name of a mark"):
        mark.run(read(mark, "--revision=7"))


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"seconds": 3600}, "mockube: advanced 5m0s of 1h0m0s, about 1m50s left\n"),
        ({"seconds": 3600, "until": {"idle": True}}, "mockube: advanced 5m0s of 1h0m0s at most\n"),
    ],
)
async def test_progress_of_an_advance_says_how_long_it_may_still_take(spec, line):
    class Shown:
        """Shows a time that is five minutes later each time."""

        minutes = 0

        async def get(self, *_):
            self.minutes += 5
            return {"status": {"time": f"2030-01-01T00:{self.minutes:02}:00Z"}}

    machine, out = SteppedClock(), io.StringIO()
    progress = Progress(out, live=False, clock=machine)
    reporting = asyncio.create_task(clock.report(Shown(), spec, progress, machine, 10.0))
    await yield_to_loop(5)
    assert out.getvalue() == ""
    machine.advance(10.0)
    await until(out.getvalue)
    reporting.cancel()
    assert out.getvalue() == line


def test_time_of_an_interrupted_advance_is_printed(monkeypatch, capsys):
    def answer(work):
        work.close()
        if work.__name__ == "_run":
            raise KeyboardInterrupt
        return "2030-01-01T00:05:00Z"

    monkeypatch.setattr(clock.asyncio, "run", answer)
    with pytest.raises(KeyboardInterrupt):
        clock.run(read(clock, "advance", "1h"))
    assert capsys.readouterr().err == "mockube: interrupted: the clock goes on from 2030-01-01T00:05:00Z\n"


def test_span_of_advance_is_read():
    assert read(clock, "advance", "1h30m").time == 5400.0


@pytest.mark.parametrize("rate", ["nan", "inf", "0", "-1"])
def test_rate_that_no_clock_can_have_is_refused(capsys, rate):
    """As JSON, nan and inf are null, which would remove the rate."""
    with pytest.raises(SystemExit):
        read(clock, "rate", rate)
    assert f'"{rate}" is not a number above 0' in capsys.readouterr().err


def test_line_of_request_without_verb_has_a_dash():
    """OPTIONS of a resource has no verb of Kubernetes."""
    spec = {"time": "2026-01-01T12:00:00.123456Z", "uri": "/api/v1/pods", "user": "alice"}
    line = requests.line_of({"spec": spec, "status": {"code": 405}})
    assert line == "12:00:00.123 405 - /api/v1/pods (alice, )"


@pytest.mark.parametrize(
    ("flags", "spec"),
    [
        (["--node=node-1", "--partition"], {"match": {"node": "node-1"}, "partition": {}}),
        (["--resource=leases", "--steal"], {"match": {"resource": "leases"}, "steal": {}}),
        (["--hold", "--until-write"], {"match": {}, "hold": {"untilWrite": True}}),
        (["--drop=5s", "--until-write"], {"match": {}, "drop": {"seconds": 5.0, "untilWrite": True}}),
    ],
)
def test_flags_describe_faults_of_leases_nodes_and_watches(flags, spec):
    assert fault.spec_of(read(fault, "add", *flags)) == spec


@pytest.mark.parametrize(
    ("arguments", "spec"),
    [
        (["advance", "90s"], {"seconds": 90.0}),
        (["until-idle"], {"seconds": 3600.0, "until": {"idle": True}}),
        (["until-idle", "--within=5m"], {"seconds": 300.0, "until": {"idle": True}}),
    ],
)
def test_arguments_describe_an_advance(arguments, spec):
    assert clock.advance_of(read(clock, *arguments)) == spec


def test_days_are_refused_with_the_largest_unit(capsys):
    with pytest.raises(SystemExit):
        read(clock, "advance", "30d")
    assert "the largest unit is h, so that 30 days are 720h" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["advance", "0s"], ["until-idle", "--within=0s"]])
def test_advance_of_no_time_is_refused(capsys, arguments):
    with pytest.raises(SystemExit):
        read(clock, *arguments)
    assert "0s is too short: use more than 0s" in capsys.readouterr().err


async def test_object_of_a_condition_needs_a_name():
    with pytest.raises(UsageError, match='"pods" names no object'):
        await clock._advance_until(Cluster(), read(clock, "until", "Ready", "pods"))


class RefusingClient:
    """A client whose server answers each creation with an error."""

    def __init__(self, error):
        self.error = error

    def with_timeout(self, _):
        return self

    async def create(self, *_):
        raise self.error


async def test_server_without_control_is_reported_by_what_is_posted():
    client = RefusingClient(NotFound("the server could not find the requested resource", Details()))
    with pytest.raises(NoControl, match="the server has no control"):
        await post(client, FORKS, {"name": "copy"})
    with pytest.raises(NoControl, match="the server has no control"):
        await rewind(client, "good")


async def test_mark_that_does_not_exist_is_reported_by_what_is_posted():
    client = RefusingClient(not_found(MARKS.group_resource, "good"))
    with pytest.raises(NotFound, match=r'"good" not found'):
        await rewind(client, "good")
    client = RefusingClient(
        NotFound("goood is no moment: a revision, or the name of a Mark is needed", Details())
    )
    with pytest.raises(NotFound, match="goood is no moment"):
        await rewind(client, "goood")


def test_path_of_a_fork_can_be_pasted(monkeypatch, capsys):
    async def create_fork(_):
        return {"revision": 7, "kubeconfig": "/my data/kubeconfig", "notForked": []}

    monkeypatch.setattr(fork, "_fork", create_fork)
    assert fork.run(Namespace(new="copy")) == 0
    assert "  export KUBECONFIG='/my data/kubeconfig'\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "condition"),
    [
        (["Ready", "node/x"], {"resource": "nodes", "name": "x", "type": "Ready"}),
        (["Ready", "no", "x", "-n", "a"], {"resource": "nodes", "name": "x", "type": "Ready"}),
        (
            ["Available=False", "deployment.apps/web", "-n", "a"],
            {
                "resource": "deployments.apps",
                "namespace": "a",
                "name": "web",
                "type": "Available",
                "status": "False",
            },
        ),
    ],
    ids=str,
)
async def test_kind_of_the_awaited_object_is_named_as_kubectl_takes_it(monkeypatch, arguments, condition):
    client = Cluster()
    monkeypatch.setattr(clock, "ResourceNames", Names)
    answer = await clock._advance_until(client, read(clock, "until", *arguments))
    assert answer == "12:00"
    assert client.advances == [{"seconds": 3600.0, "until": {"condition": condition}}]


@pytest.mark.parametrize(
    ("conditions", "says"),
    [
        (None, 'and nodes "x" not found'),
        ([], "and it has no condition Ready"),
        ([{"type": "Ready", "status": "False"}], "and Ready is False"),
    ],
)
async def test_advance_that_ends_without_the_condition_says_what_there_is(monkeypatch, conditions, says):
    monkeypatch.setattr(clock, "ResourceNames", Names)
    client = Cluster(is_reached=False, conditions=conditions)
    with pytest.raises(TimedOut, match=f"^not reached within 5 seconds of the cluster: it is 12:00, {says}$"):
        await clock._advance_until(client, read(clock, "until", "Ready", "node/x", "--within=5s"))


async def test_unknown_kind_of_the_awaited_object_is_missing(monkeypatch):
    monkeypatch.setattr(clock, "ResourceNames", Names)
    with pytest.raises(Missing, match='resource type "moon"'):
        await clock._advance_until(Cluster(), read(clock, "until", "Ready", "moon/x"))


class Names:
    """The resources of a server with nodes and Deployments."""

    def __init__(self, _client):
        pass

    async def find(self, name):
        if (found := find_resource(RESOURCES, name)) is None:
            raise KindNotServed(f'the server doesn\'t have a resource type "{name}"')
        return found


RESOURCES = [
    DiscoveredResource(
        resource=resource, verbs=frozenset(), subresources=frozenset(), singular=singular, short_names=short
    )
    for resource, singular, short in (
        (row("v1", "nodes", "Node", namespaced=False), "node", ("no",)),
        (row("apps/v1", "deployments", "Deployment"), "deployment", ("deploy",)),
    )
]


class Cluster:
    """A client of a server whose clock reaches what it is asked for, or not, and whose only object has these conditions."""

    def __init__(self, *, is_reached=True, conditions=None):
        self.advances = []
        self._status = {"time": "12:00", "isReached": is_reached}
        self._conditions = conditions

    def with_timeout(self, _seconds):
        return self

    async def create(self, _resource, tree, **_):
        self.advances.append(tree["spec"])
        return {"status": self._status}

    async def get(self, resource, key):
        if self._conditions is None:
            raise not_found(resource.group_resource, key.name)
        return {"status": {"conditions": self._conditions}}


async def test_faults_that_exist_are_removed_beside_one_that_does_not(capsys):
    class Faults:
        async def delete(self, _resource, key):
            if key.name == "gone":
                raise not_found("faults", "gone")

    with pytest.raises(Missing, match='faults "gone" not found'):
        await fault._remove(Faults(), Namespace(faults=["a", "gone", "b"], all=False))
    assert capsys.readouterr().out == "a removed\nb removed\n"
