"""Commands that keep more than their container has memory for end it, and fork bombs end as on a node; none of them stops other tasks."""

import gc
import weakref
from datetime import UTC, datetime

import pytest

from judges.differential.shell.shells import run_simulated
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.ends_of_commands import end_of
from tests.support.running_containers import shell


@pytest.mark.parametrize(
    "script", ["sleep 1 & sleep 2", "seq 3 | cat", "trap 'echo b' EXIT; f() { sleep 1; }; f & wait; exit 3"]
)
def test_command_that_has_ended_leaves_nothing_to_the_garbage_collector(script):
    files = FileSystem({"/dev/null": FileEntry(data=b"")})
    host = Host(hostname="pod", files=files, now=lambda: datetime(2030, 1, 1, tzinfo=UTC), programs=PROGRAMS)
    remaining = weakref.ref(files)
    gc.disable()
    try:
        for _ in run_command(host, ["bash", "-c", script], {}):
            pass
        del host, files
        assert remaining() is None
    finally:
        gc.enable()


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
