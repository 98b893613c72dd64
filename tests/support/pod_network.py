"""Whether this machine gives pods networks of their own, for the tests that need them."""

import asyncio
from functools import cache

import pytest

from mockube.component_base.clock import RealClock
from mockube.container_runtime.pod_network.namespaces import NetworkProblem
from mockube.container_runtime.pod_network.network import PodNetwork

POD = {"metadata": {"uid": "probe"}, "spec": {}, "status": {"podIP": "10.244.0.2"}}


async def problem():
    """Return what the machine lacks; "" if nothing."""
    network = PodNetwork(RealClock())
    try:
        await network.attach(POD)
    except NetworkProblem as error:
        return str(error)
    finally:
        await network.close()
    return ""


@cache
def missing():
    """Return what the machine lacks, for tests without an event loop."""
    return asyncio.run(problem())


async def require_pod_network():
    """Skip a test, and name what the machine lacks."""
    if lack := await problem():
        pytest.skip(f"no network namespaces for pods: {lack}")
