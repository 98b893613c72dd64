"""The script guestbook.php of Kubernetes' tutorial: it sets a key of Redis at the leader and reads it at a follower, over the pod's network.

Upstream: kubernetes-engine-samples quickstarts/guestbook/php-redis, with the client Predis. Errors are shown as PHP shows them, without the stack.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.config.environment import environment_of
from mockube.container_runtime.images.table import PortBehavior
from mockube.container_runtime.simulated.network.calls import NetworkCaller
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.shell.network_programs.redis_protocol import (
    ErrorReply,
    encode_command,
    replies_in,
)

from .port_answers import HttpAnswer, ReceivedRequest
from .redis_client import RedisAnswer, ask_redis, redis_host

SCRIPT: Final = "/guestbook.php"
_KEY: Final = "guestbook"
_PORT: Final = 6379
_STDERR: Final = 2
_TIMEOUT: Final = 5.0
"""The seconds after which Predis gives a connection up."""
_JSON: Final = "application/json"
_PREDIS: Final = "/var/www/html/vendor/predis/predis/src"
_CONNECTION: Final = (f"{_PREDIS}/Connection/AbstractConnection.php", 155)
_CLIENT: Final = (f"{_PREDIS}/Client.php", 370)
"""Where Predis raises its errors."""
WriteLog = Callable[[ReadOnlyTree, str, Sequence[tuple[int, str]]], None]


class _FatalError(Exception):
    """The script ends with an exception of Predis."""

    def __init__(self, name: str, message: str, place: tuple[str, int]) -> None:
        super().__init__(f"Uncaught Predis\\{name}: {message} in {place[0]}:{place[1]}")
        self.place = place


class PhpGuestbook:
    def __init__(self, files: PodFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self.network: Callable[[ReadOnlyTree], NetworkCaller]
        """Returns what answers the calls of a pod; set by the run-time, whose network needs the responses."""
        self.write_log: WriteLog = lambda *_: None
        """Adds lines to the log of a container, each with its descriptor."""

    async def respond(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        behavior: PortBehavior,
        request: ReceivedRequest,
    ) -> HttpAnswer | None:
        """Return the response of the script; None for another path, which is that of a file."""
        path, _, text = request.path.partition("?")
        if path != SCRIPT:
            return None
        query = dict(parse_qsl(text, keep_blank_values=True))
        if "cmd" not in query:
            missing = b"mockube: the page of phpinfo() is not simulated\n"
            return HttpAnswer(status=HTTPStatus.NOT_IMPLEMENTED, server=behavior.server, body=missing)
        key = query.get("key") or _KEY
        leader, follower = behavior.redis_hosts
        try:
            if query["cmd"] == "set":
                await self._run(pod, container, leader, ["SET", key, query.get("value", "")])
                text = '{"message": "Updated"}'
            else:
                text = f'{{"data": "{await self._run(pod, container, follower, ["GET", key])}"}}'
        except _FatalError as error:
            text = self._report(pod, container, error, request.client)
        body = text.encode("utf-8", "surrogateescape")
        return HttpAnswer(content_type=_JSON, server=behavior.server, body=body)

    async def _run(
        self, pod: ReadOnlyTree, container: ReadOnlyTree, name: str, command: Sequence[str]
    ) -> str:
        """Return the reply to a command as PHP prints it."""
        variables = environment_of(pod, container, await self._files.references_of(pod, container))
        host = redis_host(name, variables)
        files = await self._files.file_system(pod, container)
        answer = await ask_redis(self.network(pod), files, host, _PORT, encode_command(command))
        if answer.has_timed_out:
            await self._clock.sleep(_TIMEOUT)
        reply = next(replies_in(answer.data), ErrorReply(""))
        if not answer.data:
            message = f"{_problem_of(answer)} [tcp://{host}:{_PORT}]"
            raise _FatalError("Connection\\ConnectionException", message, _CONNECTION)
        if isinstance(reply, ErrorReply):
            raise _FatalError("Response\\ServerException", reply.text, _CLIENT)
        return "" if reply is None else str(reply)

    def _report(self, pod: ReadOnlyTree, container: ReadOnlyTree, error: _FatalError, client: str) -> str:
        """Return what PHP prints about an error, which it also logs; the status stays 200, because the script shows its errors."""
        time = f"{self._clock.now():%a %b %d %H:%M:%S.%f %Y}"
        line = f"[{time}] [php7:error] [pid 17] [client {client}] PHP Fatal error:  {error}"
        self.write_log(pod, container["name"], [(_STDERR, line)])
        path, number = error.place
        return (
            f"<br />\n<b>Fatal error</b>:  {error}\n  thrown in <b>{path}</b> on line <b>{number}</b><br />\n"
        )


def _problem_of(answer: RedisAnswer) -> str:
    if answer.unknown_name:
        return f"php_network_getaddresses: getaddrinfo failed: {answer.unknown_name}"
    return answer.reason or "Error while reading line from the server."
