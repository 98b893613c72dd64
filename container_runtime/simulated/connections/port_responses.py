"""The HTTP responses of simulated containers, also those that depend on their files or on Ingresses."""

from collections.abc import Awaitable, Callable
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.simulated.network.ingress import backend_of
from mockube.container_runtime.simulated.network.services import RouteTarget, endpoints
from mockube.container_runtime.simulated.network.view import SyncedView
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.shell.filesystem import FileError

from . import port_answers
from .port_answers import HttpAnswer, OpenPort, ReceivedRequest

_MAX_FORWARDS: Final = 4
"""The number of Ingress controllers behind each other."""


class PortResponses:
    def __init__(
        self,
        files: PodFiles,
        view: SyncedView,
        work: Callable[[ReadOnlyTree, ReadOnlyTree], Awaitable[None]],
    ) -> None:
        """`work` is called with a pod and its container that answers a request, and lasts as long as the container works on it."""
        self._work = work
        self._files = files
        self._view = view

    async def respond(
        self, pod: ReadOnlyTree, port: int, opened: OpenPort, request: ReceivedRequest, forwards: int = 0
    ) -> HttpAnswer:
        """Return the response of a pod on an open port that speaks HTTP."""
        if opened.container is not None:
            await self._work(pod, opened.container)
        answer = port_answers.fixed_answer(pod, port, opened, request)
        behavior, container = opened.behavior, opened.container
        if answer is not None or behavior is None or container is None:
            assert answer is not None
            return answer
        if behavior.ingress:
            return await self._forward(opened, request, forwards)
        if not behavior.root:
            return port_answers.missing_answer(behavior)
        if request.method not in ("GET", "HEAD"):
            return port_answers.missing_answer(behavior, 405)
        path = port_answers.file_of(behavior, request.path)
        files = await self._files.file_system(pod, container)
        try:
            return port_answers.file_answer(behavior, path, files.read(path))
        except FileError:
            is_folder = path.endswith("/index.html") and files.exists(path.removesuffix("/index.html"))
            return port_answers.missing_answer(behavior, 403 if is_folder else 404)

    async def _forward(self, opened: OpenPort, request: ReceivedRequest, forwards: int) -> HttpAnswer:
        """Return the response of the backend that an Ingress names for the request."""
        behavior = opened.behavior
        assert behavior is not None
        await self._view.wait_synced()
        path = request.path.partition("?")[0]
        host = request.headers.get("host", "").partition(":")[0]
        backend = backend_of(self._view, behavior.ingress, host, path)
        if backend is None or forwards >= _MAX_FORWARDS:
            return port_answers.missing_answer(behavior)
        target = self._backend_target(*backend)
        target_port = (
            port_answers.open_port(target.pod, target.port)
            if target is not None and target.pod is not None
            else None
        )
        if target is None or target.pod is None or target_port is None:
            return port_answers.missing_answer(behavior, 502 if target is not None else 503)
        return await self.respond(target.pod, target.port, target_port, request, forwards + 1)

    def _backend_target(self, namespace: str, name: str, port: int | str) -> RouteTarget | None:
        service = self._view.service(namespace, name)
        if service is None:
            return None
        service_port = next(
            (
                entry
                for entry in service["spec"].get("ports") or ()
                if port in (entry["port"], entry.get("name"))
            ),
            None,
        )
        if service_port is None:
            return None
        return next(iter(endpoints(self._view, service, service_port)), None)
