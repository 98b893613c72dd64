"""The databases in containers: whose credentials they accept, by their variables and arguments, and the keys of Redis."""

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.config.environment import environment_of
from mockube.container_runtime.images.table import behavior_of
from mockube.container_runtime.runs import container_status
from mockube.container_runtime.simulated.network.calls import Login
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.servers.redis_parameters import (
    parameters_of_file,
    parameters_of_options,
)
from mockube.container_runtime.simulated.servers.redis_server import RedisServer
from mockube.container_runtime.simulated.shell.filesystem import FileError

from .port_answers import OpenPort

REDIS: Final = "redis"
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
_TRUSTED: Final = "POSTGRES_HOST_AUTH_METHOD"
_PASSWORDS_OF_REDIS: Final = ("REDIS_PASSWORD", "VALKEY_PASSWORD")


class Databases:
    def __init__(self, files: PodFiles, clock: Clock) -> None:
        self._files = files
        self._clock = clock
        self._servers: OrderedDict[tuple[str, str, int], RedisServer] = OrderedDict()

    async def denies(self, pod: ReadOnlyTree | None, opened: OpenPort, login: Login) -> bool:
        """Return whether a server refuses credentials. Only of the accounts in its variables the passwords are known."""
        accounts = _ACCOUNTS.get(opened.speaks)
        if pod is None or opened.container is None or accounts is None:
            return False
        variables = await self._variables(pod, opened.container)
        if variables.get(_TRUSTED) == "trust":
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
        """Return the replies of a server of Redis."""
        restarts = (container_status(pod, container["name"]) or {}).get("restartCount") or 0
        key = (meta.uid(pod), container["name"], restarts)
        parameters = {} if key in self._servers else await self._parameters_of_redis(pod, container)
        server = self._servers.pop(key, None) or RedisServer(parameters)
        self._servers[key] = server
        if len(self._servers) > _MAX_SERVERS:
            self._servers.popitem(last=False)
        password = await self._password_of_redis(pod, container)
        return server.reply(data, password, self._clock.now().timestamp())

    async def _parameters_of_redis(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, str]:
        """Return what the configuration file and the options of a server set."""
        words = [*(container.get("command") or ()), *(container.get("args") or ())]
        paths = [word for word in words if word.endswith(".conf")]
        found: dict[str, str] = {}
        if paths:
            files = await self._files.file_system(pod, container)
            with suppress(FileError):
                found |= parameters_of_file(files.read(paths[0]).decode("utf-8", "replace"))
        return found | parameters_of_options(words)

    def forget(self, uid: str) -> None:
        for key in [key for key in self._servers if key[0] == uid]:
            del self._servers[key]

    async def _password_of_redis(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
        """Return the password of a server: an option, or a variable of the images that read it."""
        words = " ".join((*(container.get("command") or ()), *(container.get("args") or ())))
        _, has_option, rest = words.partition("--requirepass")
        image = behavior_of(container)
        reads_variables = image is not None and any(
            "PASSWORD" in name for each in image.requires for name in each.one_of
        )
        if not has_option and not reads_variables:
            return ""
        variables = await self._variables(pod, container)
        if has_option:
            text = next(iter(rest.lstrip("= ").split()), "").strip("\"'")
            name = text.lstrip("$").strip("(){}")
            return variables.get(name, text) if text.startswith("$") else text
        return next((variables[name] for name in _PASSWORDS_OF_REDIS if variables.get(name)), "")

    async def _variables(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> dict[str, str]:
        references = await self._files.references_of(pod, container)
        return dict(environment_of(pod, container, references))
