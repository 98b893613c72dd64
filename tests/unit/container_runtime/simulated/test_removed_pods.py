"""The run-time keeps nothing of a pod that is removed, whatever clients have done in it."""

from collections import deque
from types import ModuleType

import pytest

from mockube.container_runtime.simulated.runtime import SimulatedRuntime
from tests.support.event_loop import yield_to_loop
from tests.support.running_containers import Cluster, shell

UID = "uid-that-nothing-else-has"
ATOMS = (str, bytes, int, float, complex, bool, type(None), type, ModuleType)


def places_of(root, text):
    """Return where a text is reached from an object, by its attributes, keys and members."""
    seen, pending, found = {id(root)}, deque([(root, type(root).__name__)]), []
    while pending:
        value, place = pending.popleft()
        if isinstance(value, str) and value == text:
            found.append(place)
        if isinstance(value, ATOMS):
            continue
        for name, inner in _parts(value):
            if id(inner) not in seen or isinstance(inner, str):
                seen.add(id(inner))
                pending.append((inner, f"{place}.{name}"))
    return found


def _parts(value):
    if isinstance(value, dict):
        yield from ((f"key {key!r}", key) for key in value)
        yield from value.items()
    elif isinstance(value, list | tuple | set | frozenset | deque):
        yield from enumerate(value)
    elif type(value).__module__.startswith("mockube."):
        yield from getattr(value, "__dict__", {}).items()
        names = {name for each in type(value).__mro__ for name in getattr(each, "__slots__", ())}
        yield from ((name, getattr(value, name)) for name in sorted(names) if hasattr(value, name))


@pytest.fixture
async def cluster():
    made = Cluster(shell("sleep 1000"), shell("cat", name="live", stdin=True))
    made.pod["metadata"]["uid"] = UID
    async with made.runtime.running():
        yield made


def kept(cluster):
    return [place for place in places_of(cluster.runtime, UID) if "_pods" not in place]


async def test_pod_in_which_commands_have_run_leaves_nothing(cluster):
    runtime: SimulatedRuntime = cluster.runtime
    runtime.start_container(cluster.pod, "live", 0)
    await cluster.exec(
        "sh", "-c", "echo a > /tmp/file; unknown-program; head -c 1000000 /dev/zero > /dev/null"
    )
    await runtime.exec_sync(cluster.pod, "c", ["cat", "/tmp/file"], 1)
    runtime.loads.kill(cluster.pod, "c")
    await cluster.advance(2)
    assert any("loads" in place for place in kept(cluster))
    runtime.remove_containers(UID)
    runtime.remove_pod(UID)
    await yield_to_loop(50)
    assert kept(cluster) == []
    assert runtime.kills(cluster.pod) == {}
