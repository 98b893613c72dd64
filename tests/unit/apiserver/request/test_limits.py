"""Limits of a request: requests in flight and timeouts."""

import pytest

from mockube.apimachinery.status import BadRequest
from mockube.apiserver.request.limits import InFlight, is_long_running, request_timeout
from mockube.apiserver.request_info import parse
from mockube.apiserver.user import User

ANYBODY, MASTER = User(name="a"), User(name="m", groups=("system:masters",))


def test_reads_and_writes_have_separate_limits():
    places = InFlight(reads=1, writes=1)
    assert [places.enter(verb, ANYBODY) for verb in ("get", "list", "create", "delete")] == [
        True,
        False,
        True,
        False,
    ]
    places.leave("get")
    assert places.enter("list", ANYBODY)


def test_system_masters_are_not_limited():
    places = InFlight(reads=1, writes=200)
    assert places.enter("get", ANYBODY)
    assert places.enter("get", MASTER)


def test_requests_for_control_are_not_limited():
    places = InFlight(reads=1, writes=1)
    assert places.enter("create", ANYBODY)
    assert places.enter("delete", ANYBODY, "control.mockube.dev")


def test_limit_0_is_unlimited():
    places = InFlight(reads=400, writes=0)
    assert all(places.enter("create", ANYBODY) for _ in range(1000))


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        pytest.param((), 60.0, id="no parameter"),
        pytest.param(("",), 60.0, id="empty parameter"),
        pytest.param(("5s",), 5.0, id="less"),
        pytest.param(("5m",), 60.0, id="more"),
        pytest.param(("0s",), 60.0, id="no time at all"),
    ],
)
def test_request_timeout_is_parsed(asked, seconds):
    assert request_timeout(asked, 60.0) == seconds


def test_invalid_timeout_is_refused():
    with pytest.raises(
        BadRequest, match=r"^invalid timeout specified in the request URL - time: invalid duration"
    ):
        request_timeout(("x",), 60.0)


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
def test_long_running_requests_are_recognised(method, path, watch, long):
    assert is_long_running(parse(method, path, watch=watch)) is long
