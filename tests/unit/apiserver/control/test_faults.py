"""Faults: plain data that is checked, and the effects on the requests that match."""

import asyncio
from typing import get_args, get_type_hints

import msgspec
import orjson
import pytest

from mockube.apiserver.control.effects import EFFECTS, ChangeResponse, Cut, Delay, Drop, Hold, Refuse, Stale
from mockube.apiserver.control.faults import Fault, FaultInjector
from mockube.apiserver.control.matching import Match
from mockube.apiserver.registry.selection import Selection
from mockube.apiserver.registry.watch_stream import ClientWatch
from mockube.apiserver.request.response import Response
from mockube.apiserver.request_info import parse
from mockube.apiserver.storage.resource_cache import ResourceCache
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock
from tests.support.event_loop import until, yield_to_loop
from tests.support.server.handler_requests import request_of

COMPLETE = Fault(
    match=Match(
        user="u*", agent="kubectl", verbs=("get", "list"), resource="pods", namespace="", name="a", path="/x"
    ),
    delay=Delay(seconds=2.5),
    cut=Cut(when="after"),
    refuse=Refuse(status=429, reason="Busy", message="not now", retry_after=7),
    times=3,
    skip=1,
    share=0.5,
)


def get_request(name="a", *, user="alice", watch=False):
    request = request_of("GET", f"/api/v1/namespaces/default/configmaps/{name}")
    request.info = parse("GET", request.path, watch=watch)
    if watch:
        request.info = parse("GET", request.path.rpartition("/")[0], watch=True)
    request.user = User(name=user)
    return request


class Endpoint:
    """Responds to each request, once `release` was called if it waits."""

    def __init__(self, *, waits=False):
        self.requests = []
        self.released = asyncio.Event()
        if not waits:
            self.released.set()

    async def __call__(self, request):
        self.requests.append(request)
        await self.released.wait()
        return Response(200)


@pytest.fixture
def clock():
    return SteppedClock()


@pytest.fixture
def injector(clock):
    return FaultInjector(clock)


# --- data


def test_each_effect_is_a_field_of_a_fault_with_its_arguments():
    hints = get_type_hints(Fault)
    assert {effect.name for effect in EFFECTS} == {*Fault.__struct_fields__} - {
        "match",
        "times",
        "skip",
        "share",
    }
    for effect in EFFECTS:
        assert get_args(hints[effect.name])[0] is effect.arguments


@pytest.mark.parametrize("fault", [COMPLETE, Fault(), Fault(cut=Cut(when="before"))], ids=str)
def test_fault_is_the_same_after_it_was_json(fault):
    assert msgspec.json.decode(msgspec.json.encode(fault), type=Fault) == fault


def test_json_of_a_fault_has_what_was_set_only():
    fault = Fault(match=Match(verbs=("create",)), refuse=Refuse(status=503), times=2)
    assert orjson.loads(msgspec.json.encode(fault)) == {
        "match": {"verbs": ["create"]},
        "refuse": {"status": 503},
        "times": 2,
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param('{"delay": {"seconds": 1, "x": 2}}', "unknown field `x` - at `$.delay`", id="argument"),
        pytest.param('{"melt": {}}', "unknown field `melt`", id="effect"),
        pytest.param('{"match": {"verb": "get"}}', "unknown field `verb` - at `$.match`", id="criterion"),
        pytest.param('{"cut": {"when": "now"}}', "Invalid enum value 'now' - at `$.cut.when`", id="value"),
        pytest.param('{"refuse": {}}', "missing required field `status` - at `$.refuse`", id="missing"),
    ],
)
def test_unknown_json_is_refused(text, problem):
    with pytest.raises(msgspec.ValidationError) as refused:
        msgspec.json.decode(text, type=Fault)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        pytest.param(
            Fault(), "a fault needs one of delay, cut, refuse, repeat, steal, stale", id="no effect"
        ),
        pytest.param(Fault(delay=Delay(seconds=-1)), "delay is 0 or more seconds, not -1", id="delay"),
        pytest.param(Fault(delay=Delay(seconds=float("nan"))), "delay is 0 or more seconds", id="no number"),
        pytest.param(Fault(cut=Cut(when="now")), "cut must be", id="cut"),
        pytest.param(
            Fault(refuse=Refuse(status=200)), "status must be from 400 to 599, not 200", id="status"
        ),
        pytest.param(
            Fault(refuse=Refuse(status=500), times=0), "times must be at least 1, not 0", id="times"
        ),
        pytest.param(Fault(refuse=Refuse(status=500), skip=-1), "skip must be at least 0", id="after"),
        pytest.param(
            Fault(delay=Delay(seconds=True)), "delay is a number of seconds, not True", id="boolean delay"
        ),
        pytest.param(
            Fault(delay=Delay(seconds="1")), "delay is a number of seconds, not '1'", id="text as delay"
        ),
        pytest.param(
            Fault(delay=Delay(seconds=float("inf"))), "delay is at most 1000000000 seconds", id="infinite"
        ),
        pytest.param(
            Fault(delay=Delay(seconds=10**400)), "delay is at most 1000000000 seconds", id="huge delay"
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429, retry_after=-5)),
            "retryAfter must be from 0 to 2147483647, not -5",
            id="retryAfter",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429, retry_after=2**31)),
            "retryAfter must be from 0",
            id="huge retryAfter",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429, retry_after=True)),
            "retryAfter must be an integer",
            id="boolean seconds",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429, retry_after=1.5)),
            "retryAfter must be an integer, not 1.5",
            id="float",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429.5)), "status must be an integer, not 429.5", id="status as a float"
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429, reason=5)),
            "reason must be a text of valid Unicode, not 5",
            id="reason",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=429, message="\ud800")),
            "message must be a text of valid",
            id="surrogate",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=500), times=True),
            "times must be an integer, not True",
            id="boolean times",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=500), times=float("nan")),
            "times must be an integer",
            id="times as NaN",
        ),
        pytest.param(
            Fault(refuse=Refuse(status=500), skip=False), "skip must be an integer", id="boolean after"
        ),
        pytest.param(
            Fault(match=Match(verbs=("put",)), refuse=Refuse(status=500)), "is not a verb", id="verb"
        ),
    ],
)
def test_invalid_fault_is_refused(fault, problem):
    with pytest.raises(ValueError, match=problem):
        fault.check()


def test_valid_fault_passes():
    COMPLETE.check()


# --- effects


async def test_request_without_fault_is_executed(injector):
    injector.add(Fault(match=Match(name="other"), refuse=Refuse(status=500)))
    endpoint, request = Endpoint(), get_request()
    assert (await injector.inject(request, endpoint)).status == 200
    assert endpoint.requests == [request]


async def test_refused_request_is_not_executed(injector):
    injector.add(Fault(refuse=Refuse(status=429, message="not now", retry_after=7)))
    endpoint = Endpoint()
    response = await injector.inject(get_request(), endpoint)
    assert (response.status, response.retry_after) == (429, 7)
    assert orjson.loads(response.body)["message"] == "not now"
    assert endpoint.requests == []


@pytest.mark.parametrize(
    ("fault", "is_answer"),
    [
        (Fault(refuse=Refuse(status=503)), True),
        (Fault(stale=Stale(revision=1)), False),
        (Fault(change=ChangeResponse(merge_patch={"a": 1})), False),
    ],
    ids=str,
)
async def test_only_a_fault_that_responds_has_answered(injector, fault, is_answer):
    injector.add(fault)
    request = get_request()
    await injector.inject(request, Endpoint())
    assert request.is_answered_by_fault is is_answer


@pytest.mark.parametrize(("when", "executed"), [("before", 0), ("after", 1)])
async def test_cut_request_is_executed_only_before_the_cut(injector, when, executed):
    injector.add(Fault(cut=Cut(when=when), refuse=Refuse(status=500)))
    endpoint, request = Endpoint(), get_request()
    await injector.inject(request, endpoint)
    assert request.client.is_aborted
    assert len(endpoint.requests) == executed


async def test_delayed_request_continues_after_the_time(injector, clock):
    injected = injector.add(Fault(delay=Delay(seconds=10)))
    endpoint = Endpoint()
    handling = asyncio.create_task(injector.inject(get_request(), endpoint))
    await until(lambda: injected.hits)
    clock.advance(9)
    await yield_to_loop(5)
    assert not handling.done()
    assert not injector.is_busy
    clock.advance(1)
    assert (await handling).status == 200
    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("end", ["remove", "clear"])
async def test_delayed_request_is_executed_when_its_fault_is_removed(injector, end):
    injected = injector.add(Fault(delay=Delay(seconds=10), refuse=Refuse(status=503)))
    handling = asyncio.create_task(injector.inject(get_request(), Endpoint()))
    await until(lambda: injected.hits)
    if end == "remove":
        injector.remove(injected)
    else:
        injector.clear()
    assert (await handling).status == 200
    assert (await injector.inject(get_request(), Endpoint())).status == 200


async def test_fault_skips_requests_and_ends_after_its_times(injector):
    injected = injector.add(Fault(refuse=Refuse(status=500), skip=1, times=2))
    codes = [(await injector.inject(get_request(), Endpoint())).status for _ in range(5)]
    assert codes == [200, 500, 500, 200, 200]
    assert injected.hits == 2


async def test_oldest_of_several_faults_applies(injector):
    first = injector.add(Fault(refuse=Refuse(status=500), times=1))
    second = injector.add(Fault(refuse=Refuse(status=503)))
    codes = [(await injector.inject(get_request(), Endpoint())).status for _ in range(2)]
    assert codes == [500, 503]
    assert (first.hits, second.hits) == (1, 1)


@pytest.mark.parametrize(
    ("fault", "is_cut"),
    [
        pytest.param(Fault(cut=Cut(when="before")), True, id="cut"),
        pytest.param(Fault(match=Match(name="a"), cut=Cut(when="before")), False, id="of other requests"),
        pytest.param(Fault(refuse=Refuse(status=500)), False, id="refuse"),
    ],
)
async def test_only_a_cut_interrupts_matching_watches_in_progress(injector, fault, is_cut):
    endpoint, request = Endpoint(waits=True), get_request(watch=True)
    watching = asyncio.create_task(injector.inject(request, endpoint))
    await until(lambda: endpoint.requests)
    assert not injector.is_busy
    injected = injector.add(fault)
    assert (request.client.is_aborted, injected.hits) == (is_cut, int(is_cut))
    endpoint.released.set()
    await watching


async def test_watch_of_the_control_group_in_progress_is_not_interrupted(clock):
    request = request_of("GET", "/apis/control.mockube.dev/v1alpha1/requests")
    request.info = parse("GET", request.path, watch=True)
    injector = FaultInjector(clock, watches=[request])
    injected = injector.add(Fault(match=Match(user="*"), cut=Cut(when="before")))
    assert (request.client.is_aborted, injected.hits) == (False, 0)


async def test_injector_is_busy_while_a_request_is_executed(injector):
    endpoint = Endpoint(waits=True)
    handling = asyncio.create_task(injector.inject(get_request(), endpoint))
    await until(lambda: endpoint.requests)
    assert injector.is_busy
    endpoint.released.set()
    await handling
    assert not injector.is_busy


async def test_delay_of_no_seconds_continues_while_the_clock_is_paused(injector):
    injector.add(Fault(delay=Delay(seconds=0)))
    response = await asyncio.wait_for(injector.inject(get_request(), Endpoint()), 10)
    assert response.status == 200


class Watch(ClientWatch):
    """A watch of nothing."""

    def __init__(self, cache):
        super().__init__(b"/", cache, Selection())
        cache.watchers.add(self)


@pytest.mark.parametrize("fault", [Fault(hold=Hold()), Fault(drop=Drop(seconds=1000))], ids=["hold", "drop"])
async def test_fault_forgets_watches_that_have_ended(injector, clock, fault):
    injected, cache = injector.add(fault), ResourceCache(b"/")
    for _ in range(3):
        request = get_request(watch=True)
        await injector.inject(request, Endpoint())
        watch = Watch(cache)
        for apply in request.on_watch:
            apply(watch)
        assert len(injected.at_removal) == 1
        watch.close()
    assert (injected.hits, len(injected.at_removal), clock.pending_count) == (3, 0, 0)


@pytest.mark.parametrize("fault", [Fault(hold=Hold()), Fault(drop=Drop(seconds=1000))], ids=["hold", "drop"])
async def test_watch_that_opens_after_its_fault_was_removed_is_not_interrupted(injector, clock, fault):
    injected, request = injector.add(fault), get_request(watch=True)
    await injector.inject(request, Endpoint())
    injector.remove(injected)
    watch = Watch(ResourceCache(b"/"))
    for apply in request.on_watch:
        apply(watch)
    assert (len(injected.at_removal), clock.pending_count) == (0, 0)
