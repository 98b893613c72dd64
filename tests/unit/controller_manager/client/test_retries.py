import pytest

from mockube.controller_manager.client.sender import delay
from mockube.controller_manager.client.wire import Answer, OutcomeUnknown, Request, Unreachable

GET = Request(method="GET", target="/", headers={}, timeout=1.0)
PUT = Request(method="PUT", target="/", headers={}, timeout=1.0)


def after(status, seconds):
    return Answer(status, seconds, b"")


@pytest.mark.parametrize(
    ("request_", "outcome", "tried", "expected"),
    [
        pytest.param(GET, after(404, None), 1, None, id="an answer is an answer"),
        pytest.param(PUT, after(429, 3.0), 1, 3.0, id="too many requests"),
        pytest.param(PUT, after(503, 1.0), 1, 1.0, id="unavailable"),
        pytest.param(PUT, after(500, 1.0), 1, 1.0, id="an error that asks to come back"),
        pytest.param(PUT, after(500, None), 1, None, id="an error that does not"),
        pytest.param(PUT, after(503, None), 1, None, id="unavailable for nobody knows how long"),
        pytest.param(PUT, after(504, 1.0), 1, None, id="a write that may have been done"),
        pytest.param(GET, after(504, 1.0), 1, 1.0, id="a read that took too long"),
        pytest.param(GET, after(429, 31.0), 1, None, id="longer than anybody waits"),
        pytest.param(GET, after(429, 1.0), 10, 1.0, id="the tenth time"),
        pytest.param(GET, after(429, 1.0), 11, None, id="once too often"),
        pytest.param(GET, Unreachable(), 1, 0.0, id="a read without an answer"),
        pytest.param(GET, Unreachable(), 2, 1.0, id="a read without an answer, again"),
        pytest.param(GET, Unreachable(), 4, None, id="a read without an answer, too often"),
        pytest.param(PUT, Unreachable(), 1, None, id="a write that was not sent"),
        pytest.param(PUT, OutcomeUnknown(), 1, None, id="a write without an answer"),
    ],
)
def test_retry_delay_follows_retry_after_header(request_, outcome, tried, expected):
    assert delay(request_, outcome, tried) == expected
