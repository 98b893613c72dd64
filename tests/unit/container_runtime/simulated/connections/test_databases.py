"""Servers of databases refuse wrong passwords of the accounts that their variables name, and Redis keeps keys for a run."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.connections.databases import Databases
from mockube.container_runtime.simulated.connections.port_answers import OpenPort
from mockube.container_runtime.simulated.network.calls import Login
from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileSystem


class Files:
    async def references_of(self, _pod, _container):
        return References()


def pod(image, *args, restarts=0, **environment):
    env = [{"name": name, "value": value} for name, value in environment.items()]
    container = {"name": "c", "image": image, "args": [*args], "env": env}
    status = {"containerStatuses": [{"name": "c", "restartCount": restarts, "state": {"running": {}}}]}
    return {
        "metadata": {"name": "p", "namespace": "n", "uid": "u"},
        "spec": {"containers": [container]},
        "status": status,
    }


@pytest.fixture
def databases():
    return Databases(Files(), SteppedClock())


@pytest.mark.parametrize(
    ("speaks", "environment", "user", "password", "is_denied"),
    [
        ("mysql", {"MYSQL_ROOT_PASSWORD": "a"}, "root", "a", False),
        ("mysql", {"MYSQL_ROOT_PASSWORD": "a"}, "root", "b", True),
        ("mysql", {"MYSQL_ROOT_PASSWORD": "a"}, "made-later", "b", False),
        ("mysql", {"MYSQL_USER": "u", "MYSQL_PASSWORD": "p"}, "u", "b", True),
        ("mysql", {"MYSQL_ALLOW_EMPTY_PASSWORD": "1"}, "root", "", False),
        ("postgres", {"POSTGRES_PASSWORD": "a"}, "postgres", "b", True),
        ("postgres", {"POSTGRES_USER": "u", "POSTGRES_PASSWORD": "a"}, "u", "a", False),
        ("postgres", {"POSTGRES_PASSWORD": "a", "POSTGRES_HOST_AUTH_METHOD": "trust"}, "postgres", "", False),
        ("mongodb", {}, "u", "p", False),
    ],
)
async def test_password_of_a_known_account_is_checked(
    databases, speaks, environment, user, password, is_denied
):
    tree = pod("mysql", **environment)
    opened = OpenPort(speaks=speaks, container=tree["spec"]["containers"][0])
    assert await databases.denies(tree, opened, Login(user=user, password=password)) is is_denied


async def test_keys_of_redis_last_for_a_run(databases):
    tree = pod("redis")
    container = tree["spec"]["containers"][0]
    assert await databases.reply(tree, container, b"SET a 1\r\n") == b"+OK\r\n"
    assert await databases.reply(tree, container, b"GET a\r\n") == b"$1\r\n1\r\n"
    assert await databases.reply(pod("redis", restarts=1), container, b"GET a\r\n") == b"$-1\r\n"
    databases.forget("u")
    assert await databases.reply(tree, container, b"GET a\r\n") == b"$-1\r\n"


@pytest.mark.parametrize(
    ("image", "args", "environment"),
    [
        ("redis", ["redis-server", "--requirepass", "p"], {}),
        ("redis", ["--requirepass", "$(PW)"], {"PW": "p"}),
        ("bitnami/redis", [], {"REDIS_PASSWORD": "p"}),
    ],
)
async def test_password_of_redis_is_that_of_its_option_or_variable(databases, image, args, environment):
    tree = pod(image, *args, **environment)
    container = tree["spec"]["containers"][0]
    assert (await databases.reply(tree, container, b"GET a\r\n")).startswith(b"-NOAUTH")
    assert await databases.reply(tree, container, b"AUTH p\r\nGET a\r\n") == b"+OK\r\n$-1\r\n"


async def test_variable_of_another_image_is_no_password_of_redis(databases):
    tree = pod("redis", REDIS_PASSWORD="p")
    assert await databases.reply(tree, tree["spec"]["containers"][0], b"PING\r\n") == b"+PONG\r\n"


async def test_parameters_of_redis_are_read_from_its_configuration_file():
    class WithFile(Files):
        async def file_system(self, _pod, _container):
            return FileSystem({"/conf/redis.conf": FileEntry(data=b"maxmemory 2mb\n")})

    tree = pod("redis", "redis-server", "/conf/redis.conf", "--databases", "4")
    databases = Databases(WithFile(), SteppedClock())
    reply = await databases.reply(
        tree, tree["spec"]["containers"][0], b"CONFIG GET maxmemory\nCONFIG GET databases\n"
    )
    assert reply == b"*2\r\n$9\r\nmaxmemory\r\n$7\r\n2097152\r\n*2\r\n$9\r\ndatabases\r\n$1\r\n4\r\n"
