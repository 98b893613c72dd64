"""Runs Python scripts in a simulated container."""

from datetime import UTC, datetime

from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.memory import Memory
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Host,
    Input,
    Output,
    RepeatedIteration,
    Sleep,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

NAME = "/scripts/app.py"
MAX_COMMANDS = 3_000


class Result:
    def __init__(self):
        self.code = None
        self.output = {1: b"", 2: b""}
        self.elapsed = 0.0
        self.memory = []
        self.commands = 0
        """The commands of a shell that take as long as the script did."""
        self.effects = 0

    @property
    def stdout(self):
        return self.output[1].decode()

    @property
    def stderr(self):
        return self.output[2].decode()


def run(
    script=None,
    *,
    argv=("python", NAME),
    files=None,
    image="python:3.11.7",
    stdin=b"",
    until=60.0,
    strict=True,
    limit=float("inf"),
    max_commands=MAX_COMMANDS,
):
    """Run a script until it ends, it repeats itself, so many seconds have passed, or it has taken too much work."""
    entries = {path: FileEntry(data=text.encode()) for path, text in (files or {}).items()}
    if script is not None:
        entries[NAME] = FileEntry(data=script.encode())
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    host = Host(
        hostname="pod",
        files=FileSystem(entries),
        now=lambda: now,
        programs=PROGRAMS,
        image=image,
        is_strict=strict,
        memory=Memory(lambda: limit),
    )
    execution, result, reply = run_command(host, argv, {"PATH": "/usr/bin"}), Result(), None
    while host.elapsed <= until and result.commands < max_commands:
        try:
            effect = execution.send(reply) if reply else next(execution)
        except StopIteration as ended:
            result.code = ended.value
            break
        reply = None
        result.commands += isinstance(effect, CommandStart)
        result.effects += 1
        if isinstance(effect, Output):
            result.output[effect.descriptor] += effect.data
        elif isinstance(effect, Input):
            reply, stdin = stdin[: effect.limit], stdin[effect.limit :]
        elif isinstance(effect, Sleep):
            host.elapsed += effect.seconds
        elif isinstance(effect, RepeatedIteration):
            break
    result.elapsed, result.memory = host.elapsed, [step.size for step in host.memory.steps]
    return result
