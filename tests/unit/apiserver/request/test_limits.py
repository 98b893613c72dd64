"""What a request may take: places in flight, and how much time."""

import pytest

from mockube.apimachinery.status import BadRequest
from mockube.apiserver.request.limits import Budget, InFlight, allotted_seconds, is_long_running
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User

ANYBODY, MASTER = User(name="a"), User(name="m", groups=("system:masters",))


def test_reads_and_writes_are_counted_apart():
    places = InFlight(Budget(reads=1, writes=1))
    assert [places.enter(verb, ANYBODY) for verb in ("get", "list", "create", "delete")] == [
        True,
        False,
        True,
        False,
    ]
    places.leave("get")
    assert places.enter("list", ANYBODY)


def test_masters_always_get_a_place():
    places = InFlight(Budget(reads=1))
    assert places.enter("get", ANYBODY)
    assert places.enter("get", MASTER)


def test_nothing_is_any_number():
    places = InFlight(Budget(writes=0))
    assert all(places.enter("create", ANYBODY) for _ in range(1000))


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param((), 60.0, id="not asked"),
        pytest.param(("",), 60.0, id="asked for nothing"),
        pytest.param(("5s",), 5.0, id="less"),
        pytest.param(("5m",), 60.0, id="more"),
        pytest.param(("0s",), 60.0, id="no time at all"),
    ],
)
def test_the_time_that_a_request_is_given(asked, seconds):
    assert allotted_seconds(asked, 60.0) == seconds


def test_a_time_that_is_none_is_refused():
    with pytest.raises(
        BadRequest, match=r"^invalid timeout specified in the request URL - time: invalid duration"
    ):
        allotted_seconds(("x",), 60.0)


@pytest.mark.parametrize(
    ("method", "path", "watch", "long"),
    [
        pytest.param("GET", "/api/v1/pods", True, True, id="watch"),
        pytest.param("GET", "/api/v1/pods", False, False, id="list"),
        pytest.param("GET", "/api/v1/namespaces/n/pods/p/log", False, True, id="log"),
        pytest.param("POST", "/api/v1/namespaces/n/pods/p/exec", False, True, id="exec"),
        pytest.param("GET", "/readyz", False, False, id="health"),
    ],
)
def test_what_runs_as_long_as_it_likes(method, path, watch, long):
    assert is_long_running(parse(method, path, watch=watch)) is long
