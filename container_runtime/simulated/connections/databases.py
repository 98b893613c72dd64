"""The databases in containers: whose credentials they accept, by their variables and arguments, and the keys of Redis and its replicas."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.config.environment import environment_of
from mockube.container_runtime.config.variables import expand_references
from mockube.container_runtime.images.table import ImageTable, protocols_of
from mockube.container_runtime.records import Records
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.network.calls import Login, NetworkCaller
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from mockube.container_runtime.simulated.servers.redis_parameters import (
    parameters_of_file,
    parameters_of_options,
    parameters_of_variables,
)
from mockube.container_runtime.simulated.servers.redis_server import RedisServer
from mockube.container_runtime.simulated.servers.running_servers import RunningServers
from mockube.container_runtime.simulated.servers.server_programs import option
from mockube.container_runtime.simulated.shell.network_programs.redis_protocol import commands_in
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.network.view import ClusterView

from .port_answers import OpenPort, running_containers
from .redis_client import REDIS, ask_redis

_MAX_SERVERS: Final = 200
"""The servers of Redis whose keys are in memory; the least recently used one is dropped first."""
_ACCOUNTS: Final = {
    "mysql": (
        ("root", "MYSQL_ROOT_PASSWORD", "MARIADB_ROOT_PASSWORD"),
        ("MYSQL_USER", "MYSQL_PASSWORD"),
        ("MARIADB_USER", "MARIADB_PASSWORD"),
    ),
    "postgres": (
        ("POSTGRES_USER", "POSTGRES_PASSWORD"),
        ("POSTGRESQL_USERNAME", "POSTGRESQL_PASSWORD"),
        ("postgres", "POSTGRES_PASSWORD", "POSTGRESQL_POSTGRES_PASSWORD"),
    ),
}
"""The accounts of each protocol: the name, or the variable that has it, and the variables of the password."""
_SEARCH_SECONDS: Final = 1.0
"""How long the writes of servers do not look for new replicas, of which each write informs those that are known."""
_SHOWS_REPLICAS: Final = frozenset({"INFO", "ROLE"})
_SUPERUSERS: Final = frozenset({"postgres", "root"})
"""The roles of PostgreSQL that nobody adds, and that clients use by mistake."""
_TRUSTED: Final = "POSTGRES_HOST_AUTH_METHOD"
_PASSWORDS_OF_REDIS: Final = ("REDIS_PASSWORD", "VALKEY_PASSWORD")


class _Servers(dict[tuple[str, int], RedisServer]):
    """The servers of Redis of a pod, by the container's name and the number of its restarts."""


class Databases:
    def __init__(
        self, records: Records, images: ImageTable, files: PodFiles, clock: Clock, view: ClusterView
    ) -> None:
        """`view` has the pods of the cluster, of which some may be replicas."""
        self._records = records
        self._running = RunningServers(records)
        self._images = images
        self._files = files
        self._clock = clock
        self._view = view
        self._server_count = 0
        """The servers of Redis that were made, also those that were dropped."""
        self._found_at = -_SEARCH_SECONDS
        """When all replicas of the cluster were found."""
        self.network: Callable[[ReadOnlyTree], NetworkCaller]
        """Returns what answers the calls of a pod; set by the run-time, whose network needs the databases."""
        self._recent: WeakValueDictionary[tuple[str, str, int], RedisServer] = WeakValueDictionary()
        """All servers, the least recently used one first."""

    async def denies(self, pod: ReadOnlyTree | None, opened: OpenPort, login: Login) -> bool:
        """Return whether a server refuses credentials. Only of the accounts in its variables the passwords are known."""
        accounts = _ACCOUNTS.get(opened.speaks)
        if pod is None or opened.container is None or accounts is None:
            return False
        variables = await self._variables(pod, opened.container)
        if login.user in _SUPERUSERS and _lacks_role(self._images, opened.container, variables, login.user):
            return True
        if login.is_trusted or variables.get(_TRUSTED) == "trust":
            return False
        passwords = [
            variables[each]
            for name, *names in accounts
            if login.user == (name if name.islower() else variables.get(name))
            for each in names
            if each in variables
        ]
        return bool(passwords) and login.password not in passwords

    async def reply(self, pod: ReadOnlyTree, container: ReadOnlyTree, data: bytes) -> bytes:
        """Return the replies of a server of Redis; one that has the keys of another server asks it for them first."""
        server = await self._server_of_redis(pod, container)
        await self._synchronize(pod, container, server)
        if _asks_for_replicas(data):
            await self._find_replicas(server)
        password = await self._password_of_redis(pod, container)
        before = server.replication.offset
        replies = server.reply(data, password, self._clock.now().timestamp())
        if server.replication.offset != before:
            await self._update_replicas(server)
        return replies

    async def _server_of_redis(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> RedisServer:
        uid, name, restarts = key = _run_of(pod, container)
        parameters = {} if key in self._recent else await self._parameters_of_redis(pod, container)
        server = self._recent.pop(key, None)
        if server is None:
            self._server_count += 1
            server = RedisServer(parameters, seed="/".join(map(str, (*key, self._server_count))))
            self._records.ensure(uid, _Servers)[name, restarts] = server
        self._recent[key] = server
        if len(self._recent) > _MAX_SERVERS:
            uid, name, restarts = next(iter(self._recent))
            if (servers := self._records.find(uid, _Servers)) is not None:
                servers.pop((name, restarts), None)
        return server

    async def _synchronize(self, pod: ReadOnlyTree, container: ReadOnlyTree, server: RedisServer) -> None:
        """Ask the leader of a server for its keys, over the network of the pod. Without an answer, the server has what it had."""
        if server.leader is None:
            return
        files = await self._files.file_system(pod, container)
        address = (pod.get("status") or {}).get("podIP") or ""
        data = await ask_redis(self.network(pod), files, *server.leader, server.sync_request(address))
        server.synchronize(data, self._clock.now().timestamp())

    async def _find_replicas(self, server: RedisServer) -> None:
        """Let all replicas of the cluster ask their leaders for keys, so that this server knows its own."""
        self._found_at = self._clock.monotonic()
        server.replication.replicas.clear()
        for pod in self._view.pods_that_speak(REDIS):
            await self._synchronize_pod(pod, server)

    async def _update_replicas(self, server: RedisServer) -> None:
        """Let the replicas of a server ask for the keys that it has since a write, also new ones from time to time."""
        if self._clock.monotonic() - self._found_at >= _SEARCH_SECONDS:
            await self._find_replicas(server)
            return
        for address, _ in tuple(server.replication.replicas):
            pod = self._view.pod_at(address)
            if pod is not None:
                await self._synchronize_pod(pod, server)

    async def _synchronize_pod(self, pod: ReadOnlyTree, leader: RedisServer) -> None:
        for container in running_containers(pod):
            if REDIS not in protocols_of(self._images, container):
                continue
            server = await self._known_server(pod, container)
            if server is not None and server is not leader:
                await self._synchronize(pod, container, server)

    async def _known_server(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> RedisServer | None:
        """Return the server of a container if it is in memory, or a replica."""
        if _run_of(pod, container) in self._recent or "replicaof" in await self._parameters_of_redis(
            pod, container
        ):
            return await self._server_of_redis(pod, container)
        return None

    async def _parameters_of_redis(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, str]:
        """Return what the image, the configuration file and the options of a server set."""
        command = await self._command_of(pod, container)
        reads_variables = _reads_variables(self._images, container)
        if not (command or reads_variables):
            return {}
        variables = await self._variables(pod, container)
        found = parameters_of_variables(variables) if reads_variables else {}
        paths = [word for word in command if word.endswith(".conf")]
        if paths:
            files = await self._files.file_system(pod, container)
            with suppress(FileError):
                found |= parameters_of_file(files.read(paths[0]).decode("utf-8", "replace"))
        return found | parameters_of_options(command)

    async def _command_of(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Sequence[str]:
        """Return the command line of a server of Redis; nothing for the one of its image."""
        calls = listeners_of(self._images, pod, container, self._running).calls.values()
        argv: Sequence[str] = next((call.argv for call in calls), ())
        return expand_references(argv, await self._variables(pod, container)) if argv else ()

    async def _password_of_redis(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
        """Return the password of a server: an option, or a variable of the images that read it."""
        password = option(await self._command_of(pod, container), "--requirepass")
        if password is not None or not _reads_variables(self._images, container):
            return password or ""
        variables = await self._variables(pod, container)
        return next((variables[name] for name in _PASSWORDS_OF_REDIS if variables.get(name)), "")

    async def _variables(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> dict[str, str]:
        references = await self._files.references_of(pod, container)
        return dict(environment_of(pod, container, references))


def _lacks_role(images: ImageTable, container: ReadOnlyTree, variables: Mapping[str, str], role: str) -> bool:
    """Return whether a server of PostgreSQL was certainly initialized with another role, and without scripts that may add some."""
    image = images.behavior_of(container)
    if image is None or "postgres" not in image.servers:
        return False
    mounts = [mount["mountPath"] for mount in container.get("volumeMounts") or ()]
    user = variables.get("POSTGRES_USER") or ("postgres" if "POSTGRES_PASSWORD" in variables else role)
    return user != role and not any("initdb.d" in path for path in mounts)


def _run_of(pod: ReadOnlyTree, container: ReadOnlyTree) -> tuple[str, str, int]:
    restarts = (container_status(pod, container["name"]) or {}).get("restartCount") or 0
    return meta.uid(pod), container["name"], restarts


def _reads_variables(images: ImageTable, container: ReadOnlyTree) -> bool:
    """Return whether the image of a server of Redis has an entrypoint that configures it by variables."""
    image = images.behavior_of(container)
    return image is not None and any("PASSWORD" in name for each in image.requires for name in each.one_of)


def _asks_for_replicas(data: bytes) -> bool:
    return any(words[0].upper() in _SHOWS_REPLICAS for words in commands_in(data))
