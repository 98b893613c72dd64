"""Commands that keep more than their container has memory for end it, and fork bombs end as on a node; none of them stops other tasks."""

import gc
import weakref
from datetime import UTC, datetime

import pytest

from judges.differential.shell.shells import run_simulated
from mockube.apimachinery.quantity import from_json
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated import predictions
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileSystem
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from tests.support.images import IMAGES
from tests.support.running_containers import Cluster, shell


async def end_of(container, *, memory="64Mi"):
    cluster = Cluster({**container, "resources": {"limits": {"memory": memory}}}, restartPolicy="Never")
    if "c" not in cluster.runtime.states(cluster.pod):  # It is computed in advance.
        behavior = predictions.program_of_run(IMAGES, cluster.pod, container, script_of({}))()
        return (
            None if behavior.load.exceeds_at(float(from_json(memory).number)) is None else (137, "OOMKilled")
        )
    cluster.runtime.start_container(cluster.pod, "c", 0)
    for _ in range(20):
        await cluster.advance(1)
        if cluster.end() is not None:
            return cluster.end().code, cluster.end().reason
    return None


@pytest.mark.parametrize(
    "script", ["sleep 1 & sleep 2", "seq 3 | cat", "trap 'echo b' EXIT; f() { sleep 1; }; f & wait; exit 3"]
)
def test_command_that_has_ended_leaves_nothing_to_the_garbage_collector(script):
    files = FileSystem({"/dev/null": FileEntry(data=b"")})
    host = Host(name="pod", files=files, now=lambda: datetime(2030, 1, 1, tzinfo=UTC), programs=PROGRAMS)
    remaining = weakref.ref(files)
    gc.disable()
    try:
        for _ in run_command(host, ["bash", "-c", script], {}):
            pass
        del host, files
        assert remaining() is None
    finally:
        gc.enable()


def python(script):
    return {"name": "c", "image": "python:3.12", "command": ["python", "-c", script]}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command",
    ["dd if=/dev/zero bs=1M count=200 | tr '\\0' x", "cat /dev/zero | tr '\\0' x", "cat /dev/urandom", "yes"],
)
async def test_value_that_is_larger_than_the_memory(command):
    container = shell(f"x=$({command}); echo ${{#x}}", image="alpine", resources={})
    assert await end_of(container, memory="20Mi") == (137, "OOMKilled")


@pytest.mark.thorough
async def test_line_that_is_larger_than_the_memory():
    assert await end_of(shell("head -c 200M /dev/zero | tail"), memory="100Mi") == (137, "OOMKilled")


@pytest.fixture
def few_elements(monkeypatch):
    monkeypatch.setattr(limits, "MAX_PYTHON_ELEMENTS", 10_000)


@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    "script",
    [
        "a=list(range(10**8))",
        "a=[i for i in range(10**8)]",
        "a=[]\nwhile True: a += [0]*10000",
        "a=[1]\nwhile True: a=a+a",
        "a=[]\nfor i in range(10**7): a += [i]*10000",
    ],
)
async def test_list_of_python_that_is_larger_than_the_memory(script):
    assert await end_of(python(script)) == (137, "OOMKilled")


@pytest.mark.thorough
@pytest.mark.usefixtures("few_elements")
@pytest.mark.parametrize(
    "script",
    [
        "a=list(range(2*10**4))",
        "while True: a=list(range(2*10**4))",
        "a=[]\nfor i in range(3): a += [i]*10000",
        "a=[]\nwhile len(a) < 30000: a += [1]*10000",
    ],
)
async def test_list_of_python_that_is_only_too_large_to_be_stored(script):
    assert await end_of(python(script), memory="1Gi") is None


@pytest.mark.parametrize(
    ("arguments", "sent", "output"),
    [
        ("abc xyz", "aabbcc\n", "xxyyzz\n"),
        ("-s ab", "a" * 65_000 + "b" * 65_000, "ab"),
        ("-d é", "é" * 65_000 + "x", "x"),
        ("-cs a-z '\\n'", "ab  cd", "ab\ncd"),
    ],
)
def test_tr_reads_its_input_in_parts(arguments, sent, output):
    assert run_simulated(f"printf '%s' '{sent}' | tr {arguments}").output == output


@pytest.mark.thorough
@pytest.mark.parametrize("bomb", [":(){ :|:& };:", "f(){ f & f & }; f"])
async def test_fork_bomb_fills_the_memory_of_its_container(bomb):
    container = {"name": "c", "image": "bash", "command": ["bash", "-c", f"{bomb}; sleep 1000"]}
    assert await end_of(container, memory="16Mi") == (137, "OOMKilled")


def test_fork_bomb_without_a_limit_goes_on(monkeypatch):
    monkeypatch.setattr(limits, "MAX_PROCESSES", 20)
    result = run_simulated(":(){ :|:& };:; sleep 1; echo on", "bash")
    assert result.output == "on\n"
    assert "fork: retry: Resource temporarily unavailable\n" in result.errors
