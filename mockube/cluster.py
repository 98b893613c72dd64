"""`mockube.Cluster`: a control plane of two processes for notebooks, scripts and tests, gone when its block ends.

`async with` gives one whose methods are awaited, `with` gives one that can be used anywhere, also where an event loop
runs already, for it has one in a thread of its own.
"""

import asyncio
import tempfile
import threading
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from apimachinery.clock import RealClock
from controller_manager.runtime.client import Parsed
from controller_manager.runtime.kubeconfig import read
from mockube.plane.control_plane import ControlPlane, NotReady
from mockube.plane.last_words import last_words
from mockube.plane.launch import SERVER, Launch, control_plane, throwaway
from mockube.plane.sizes import KRUISE, NODES
from mockube.reach import Condition, Reach, reaching

TIMEOUT = 30.0
"""Seconds that are waited for a condition."""

T = TypeVar("T")


class NotStarted(Exception):
    """With what the processes have logged."""


class AsyncCluster:
    """What `async with Cluster() as cluster` gives."""

    def __init__(self, *, nodes: int, packs: str, flags: Sequence[str]) -> None:
        self._nodes = nodes
        self._packs = packs
        self._flags = flags
        self._stack = AsyncExitStack()
        self._reach: Reach
        self.kubeconfig: Path
        self.url: str

    async def start(self) -> None:
        """Until the server answers and every node is ready."""
        async with AsyncExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mockube-")))
            launch = throwaway(folder, nodes=self._nodes, packs=self._packs, flags=self._flags)
            try:
                await stack.enter_async_context(self._plane(launch).running())
            except NotReady as error:
                raise NotStarted(last_words(launch.log(SERVER))) from error
            access = read(launch.kubeconfig)
            self._reach = await stack.enter_async_context(reaching(access))
            self.kubeconfig, self.url = launch.kubeconfig, access.server
            await self._reach.wait_usable(self._nodes, seconds=TIMEOUT)
            self._stack = stack.pop_all()

    @staticmethod
    def _plane(launch: Launch) -> ControlPlane:
        return control_plane(launch, clock=RealClock(), tell=lambda _: None)

    async def stop(self) -> None:
        await self._stack.aclose()

    async def apply(self, manifests: str | Path) -> list[Parsed]:
        """Apply YAML of any number of documents, or a file of it; answers with the objects as they are now."""
        return await self._reach.apply(manifests)

    async def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,  # noqa: ASYNC109 - it is a limit of what a user asks for
        *,
        namespace: str = "default",
    ) -> Parsed:
        """Until the object meets the condition: the type of one that shall be True, or a question about the object."""
        return await self._reach.wait(kind, name, condition, seconds=timeout, namespace=namespace)


class Cluster:
    """A context manager. `packs` are kinds to serve besides Kubernetes' own, `flags` more flags of the API server."""

    def __init__(self, *, nodes: int = NODES, packs: str = KRUISE, flags: Sequence[str] = ()) -> None:
        self._inner = AsyncCluster(nodes=nodes, packs=packs, flags=flags)
        self._stack = ExitStack()
        self._loop: asyncio.AbstractEventLoop

    async def __aenter__(self) -> AsyncCluster:
        await self._inner.start()
        return self._inner

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._inner.stop()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._loop = asyncio.new_event_loop()
            stack.callback(self._loop.close)
            thread = threading.Thread(target=self._loop.run_forever, name="mockube", daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(self._loop.call_soon_threadsafe, self._loop.stop)
            stack.callback(lambda: self._do(_settled()))
            self._do(self._inner.start())
            stack.callback(lambda: self._do(self._inner.stop()))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def kubeconfig(self) -> Path:
        return self._inner.kubeconfig

    @property
    def url(self) -> str:
        return self._inner.url

    def apply(self, manifests: str | Path) -> list[Parsed]:
        """Apply YAML of any number of documents, or a file of it; answers with the objects as they are now."""
        return self._do(self._inner.apply(manifests))

    def wait(
        self,
        kind: str,
        name: str,
        condition: Condition,
        timeout: float = TIMEOUT,
        *,
        namespace: str = "default",
    ) -> Parsed:
        """Until the object meets the condition: the type of one that shall be True, or a question about the object."""
        return self._do(self._inner.wait(kind, name, condition, timeout, namespace=namespace))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise


async def _settled() -> None:
    """Until what was cancelled has ended in order."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    await asyncio.gather(*others, return_exceptions=True)
