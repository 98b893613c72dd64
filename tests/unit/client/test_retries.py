import pytest

from mockube.client.sender import retry_delay
from mockube.client.wire import OutcomeUnknown, Request, Response, Unreachable

GET = Request(method="GET", target="/", headers={}, timeout=1.0)
PUT = Request(method="PUT", target="/", headers={}, timeout=1.0)


def answer_with_retry(status, seconds):
    return Response(status, seconds, b"")


@pytest.mark.parametrize(
    ("request_", "outcome", "attempts", "expected"),
    [
        pytest.param(GET, answer_with_retry(404, None), 1, None, id="status without retry"),
        pytest.param(PUT, answer_with_retry(429, 3.0), 1, 3.0, id="too many requests"),
        pytest.param(PUT, answer_with_retry(503, 1.0), 1, 1.0, id="unavailable"),
        pytest.param(PUT, answer_with_retry(500, 1.0), 1, 1.0, id="error with Retry-After"),
        pytest.param(PUT, answer_with_retry(500, None), 1, None, id="error without Retry-After"),
        pytest.param(PUT, answer_with_retry(503, None), 1, None, id="unavailable without Retry-After"),
        pytest.param(PUT, answer_with_retry(504, 1.0), 1, None, id="write with unknown outcome"),
        pytest.param(GET, answer_with_retry(504, 1.0), 1, 1.0, id="a read that took too long"),
        pytest.param(GET, answer_with_retry(429, 31.0), 1, None, id="too long a Retry-After"),
        pytest.param(GET, answer_with_retry(429, 1.0), 10, 1.0, id="the tenth time"),
        pytest.param(GET, answer_with_retry(429, 1.0), 11, None, id="too many retries"),
        pytest.param(GET, Unreachable(), 1, 0.0, id="a read without an answer"),
        pytest.param(GET, Unreachable(), 2, 1.0, id="repeated read without a response"),
        pytest.param(GET, Unreachable(), 4, None, id="a read without an answer, too often"),
        pytest.param(PUT, Unreachable(), 1, None, id="a write that was not sent"),
        pytest.param(PUT, OutcomeUnknown(), 1, None, id="a write without an answer"),
    ],
)
def test_retry_delay_follows_retry_after_header(request_, outcome, attempts, expected):
    assert retry_delay(request_, outcome, attempts) == expected
