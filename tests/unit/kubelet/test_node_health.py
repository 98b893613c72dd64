"""The healthz endpoint of a simulated node."""

import pytest
from aiohttp.test_utils import make_mocked_request

from mockube.kubelet.server.node_health import NodeHealthEndpoints

NODE = {"metadata": {"name": "n"}}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/healthz", "ok"),
        ("/healthz/syncloop", "ok"),
        ("/healthz?verbose", "[+]ping ok\n[+]log ok\n[+]syncloop ok\nhealthz check passed\n"),
        (
            "/healthz?verbose&exclude=log&exclude=etcd",
            """[+]ping ok
[+]log excluded: ok
[+]syncloop ok
warn: some health checks cannot be excluded: no matches for "etcd"
healthz check passed
""",
        ),
    ],
)
def test_healthz_lists_checks(path, text):
    answer = NodeHealthEndpoints().respond(make_mocked_request("GET", path), NODE)
    assert (answer.status, answer.text) == (200, text)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


def test_checks_that_are_left_out_are_not_counted():
    health = NodeHealthEndpoints()
    health.respond(make_mocked_request("GET", "/healthz?exclude=log"), NODE)
    families = [*health.metrics(NODE)]
    assert [sorted(values[0] for values, _ in samples) for _, samples in families] == [
        ["ping", "syncloop"],
        ["ping", "syncloop"],
    ]
