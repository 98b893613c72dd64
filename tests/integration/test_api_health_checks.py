"""The health endpoints list the checks of kube-apiserver in its order; those of background tasks only while they fail."""

from pathlib import Path

import orjson
import pytest

from tests.support.server import apiserver

RECORDED = orjson.loads((Path(__file__).parent / "health_checks.json").read_bytes())
WITHOUT_FLOW_CONTROL = "--enable-priority-and-fairness=false"


@pytest.mark.parametrize(
    ("flags", "endpoint"),
    [(flags, endpoint) for flags, endpoints in RECORDED.items() for endpoint in endpoints],
)
async def test_checks_are_those_of_real_server(flags, endpoint):
    given = ["--enable-priority-and-fairness=false"] if flags == WITHOUT_FLOW_CONTROL else []
    async with apiserver.running(*given, modes=("RBAC",)) as client:
        text = (await client.get(f"/{endpoint}?verbose")).data.decode()
    names = [line[3:].split()[0] for line in text.splitlines() if line.startswith("[")]
    assert names == RECORDED[flags][endpoint]
