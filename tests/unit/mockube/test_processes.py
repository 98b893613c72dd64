"""Two processes in the right order, with programs that do nothing but tell what happens to them."""

import asyncio
import os
import signal
import sys

import pytest

from mockube.plane.processes import SIGNALS, ControlPlane
from tests.architecture.source import ROOT
from tests.support.turns import PATIENCE

SUPERVISOR = """
import ast, asyncio, sys
from mockube.plane.processes import ControlPlane
server, manager = map(ast.literal_eval, sys.argv[1:])
asyncio.run(ControlPlane(server=server, manager=manager).supervise(once_ready=lambda: None))
"""

PROGRAM = """
import os, signal, socket, sys
_, log, name, *does = sys.argv
def tell(word):
    with open(log, "a") as file:
        file.write(f"{name} {word}\\n")
def end(*_):
    tell("ends")
    if "stays" not in does:
        sys.exit(0)
signal.signal(signal.SIGTERM, end)
tell("begins")
if "fails" in does:
    sys.exit(3)
if "NOTIFY_SOCKET" in os.environ:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
        ready.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
if "leaves" in does:
    sys.exit(0)
while True:
    signal.pause()
"""


class Told:
    """What the programs tell, as they tell it."""

    def __init__(self, path):
        self._path = path
        self._path.touch()

    def program(self, name, *does):
        return [sys.executable, "-c", PROGRAM, str(self._path), name, *does]

    @property
    def words(self):
        return self._path.read_text().splitlines()

    async def until(self, word):
        """Asked again in each turn of a thread, as files tell nobody when they change."""
        async with asyncio.timeout(PATIENCE):
            while word not in self.words:
                await asyncio.to_thread(os.sched_yield)


@pytest.fixture
def told(tmp_path):
    return Told(tmp_path / "told")


async def run(told, server=(), manager=()):
    ready = []
    plane = ControlPlane(server=told.program("server", *server), manager=told.program("manager", *manager))
    return await plane.supervise(once_ready=lambda: ready.append(True)), ready


@pytest.mark.parametrize("number", SIGNALS)
async def test_the_server_begins_first_and_ends_last(told, number):
    running = asyncio.create_task(run(told))
    await told.until("manager begins")
    os.kill(os.getpid(), number)
    assert await running == (0, [True])
    assert told.words == ["server begins", "manager begins", "manager ends", "server ends"]


async def test_a_server_that_does_not_become_ready_is_all_there_is(told):
    assert await run(told, server=["fails"]) == (3, [])
    assert told.words == ["server begins"]


@pytest.mark.parametrize(
    ("server", "manager", "code", "words"),
    [
        pytest.param([], ["fails"], 3, ["server ends"], id="the manager fails"),
        pytest.param([], ["leaves"], 1, ["server ends"], id="the manager leaves"),
    ],
)
async def test_one_that_ends_by_itself_takes_the_other_along(told, server, manager, code, words):
    assert await run(told, server, manager) == (code, [True])
    assert told.words == ["server begins", "manager begins", *words]


async def test_a_second_signal_waits_for_nobody(told):
    running = asyncio.create_task(run(told, manager=["stays"]))
    await told.until("manager begins")
    os.kill(os.getpid(), signal.SIGTERM)
    await told.until("manager ends")
    assert not running.done()
    os.kill(os.getpid(), signal.SIGTERM)
    code, _ = await running
    assert code == 128 + signal.SIGKILL


async def test_nothing_outlives_a_supervisor_that_is_killed(told):
    """All of them hold one pipe, which is at its end when the last has gone."""
    supervisor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SUPERVISOR, *map(repr, (told.program("server"), told.program("manager")))),
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=asyncio.subprocess.PIPE,
    )
    await told.until("manager begins")
    supervisor.kill()
    async with asyncio.timeout(PATIENCE):
        assert await supervisor.stdout.read() == b""
    await supervisor.wait()
    assert told.words == ["server begins", "manager begins"]
