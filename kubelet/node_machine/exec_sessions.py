"""Commands that `crictl exec` runs in containers: their output is fetched, and their input is sent when they wait for it."""

import asyncio
from collections.abc import Callable
from itertools import count
from typing import Any, Final

from mockube.component_base.supervision import cancel_and_wait, start
from mockube.container_runtime.node_machine import ServiceFailed
from mockube.container_runtime.runs import ContainerNotFound
from mockube.container_runtime.runtime import Command, CommandFailed, RuntimeProblem
from mockube.container_runtime.streams import InputStream, TerminalSizes

MAX_SESSIONS: Final = 100
"""Commands at a time; beyond them the oldest ends."""
MAX_UNREAD: Final = 256 << 10
"""Bytes of output that are kept until a program fetches them; the command waits then."""


class _AwaitedInput(InputStream):
    """The input of a command, which says when the command waits for it."""

    def __init__(self, on_wait: Callable[[], None]) -> None:
        super().__init__()
        self._on_wait = on_wait

    async def read(self, limit: int) -> bytes:
        self._on_wait()
        return await super().read(limit)


class _Session:
    """The streams of one command: `Streams`."""

    def __init__(self, *, has_input: bool) -> None:
        self.stdin: InputStream | None = _AwaitedInput(self._on_wait) if has_input else None
        self.sizes = TerminalSizes()
        self.departure = asyncio.Event()
        self.output: list[tuple[int, str]] = []
        self.unread = 0
        self.needs_input = False
        self.code: int | None = None
        self.message = ""
        self.changed, self.fetched = asyncio.Event(), asyncio.Event()
        self.task: asyncio.Task[None] | None = None

    def _on_wait(self) -> None:
        self.needs_input = True
        self.changed.set()

    async def write(self, stream: int, data: bytes) -> None:
        while self.unread > MAX_UNREAD:
            self.fetched.clear()
            await self.fetched.wait()
        self.output.append((stream, data.decode("utf-8", "surrogateescape")))
        self.unread += len(data)
        self.changed.set()

    async def finish(self, status: bytes) -> None: ...

    async def run(self, command: Command) -> None:
        try:
            self.code = await command(self)
        except (CommandFailed, ContainerNotFound, RuntimeProblem) as error:
            self.code, self.message = 1, str(error)
        self.changed.set()


class ExecSessions:
    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}
        self._numbers = count(1)

    async def begin(self, command: Command, *, has_input: bool) -> int:
        session, number = _Session(has_input=has_input), next(self._numbers)
        session.task = start("a command of crictl", session.run(command))
        self._sessions[number] = session
        if len(self._sessions) > MAX_SESSIONS:
            await self._end(next(iter(self._sessions)))
        return number

    async def next(self, number: int) -> dict[str, Any]:
        """Wait until a command has written, waits for input, or has ended; return that."""
        session = self._of(number)
        while not session.output and not session.needs_input and session.code is None:
            session.changed.clear()
            await session.changed.wait()
        answer: dict[str, Any] = {"output": session.output, "needs_input": session.needs_input}
        session.output, session.unread, session.needs_input = [], 0, False
        session.fetched.set()
        if session.code is not None:
            answer |= {"code": session.code, "message": session.message, "needs_input": False}
            await self._end(number)
        return answer

    async def write(self, number: int, text: str) -> None:
        stdin = self._of(number).stdin
        if stdin is None:
            return
        if text:
            await stdin.feed(text.encode("utf-8", "surrogateescape"))
        else:
            await stdin.end()

    async def _end(self, number: int) -> None:
        session = self._sessions.pop(number)
        if session.task is not None:
            await cancel_and_wait([session.task])

    def _of(self, number: int) -> _Session:
        session = self._sessions.get(number)
        if session is None:
            raise ServiceFailed("the command has ended")
        return session
