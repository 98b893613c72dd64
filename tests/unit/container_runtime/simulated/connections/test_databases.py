"""Servers of databases refuse wrong passwords of the accounts that their variables name, and Redis keeps keys for a run."""

from itertools import count

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.connections.databases import Databases
from mockube.container_runtime.simulated.connections.port_answers import OpenPort
from mockube.container_runtime.simulated.network.calls import (
    Login,
    Lookup,
    Reply,
    decode_call,
    encode_reply,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES

RESOLVER = FileEntry(data=b"search n.svc.cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n")


class Files:
    async def references_of(self, _pod, _container):
        return References()

    async def file_system(self, _pod, _container):
        return FileSystem({"/etc/resolv.conf": RESOLVER})


class View:
    """The pods of a cluster, each with a name that leads to it."""

    def __init__(self):
        self.pods = []

    def pods_that_speak(self, protocol):
        assert protocol == "redis"
        return self.pods

    def pod_at(self, address):
        return next((pod for pod in self.pods if pod["status"]["podIP"] == address), None)


class Redises:
    """Servers of Redis in pods that reach each other by their names."""

    def __init__(self):
        self.view = View()
        self.clock = SteppedClock()
        self.records = Records()
        self.databases = Databases(self.records, IMAGES, Files(), self.clock, self.view)
        self.databases.network = lambda _: self._call
        self.connections = 0
        self.addresses = count(1)

    def add(self, name, image, *args, **environment):
        tree = pod(image, *args, **environment)
        tree["metadata"] |= {"name": name, "uid": name}
        tree["status"]["podIP"] = f"10.244.0.{next(self.addresses)}"
        self.view.pods.append(tree)
        return tree

    def remove(self, name):
        self.view.pods = [tree for tree in self.view.pods if tree["metadata"]["name"] != name]
        self.records.remove(name)

    async def run(self, tree, command):
        return (
            await self.databases.reply(tree, tree["spec"]["containers"][0], f"{command}\r\n".encode())
        ).decode()

    async def _call(self, data):
        call = decode_call(data)
        if isinstance(call, Lookup):
            found = [
                tree
                for tree in self.view.pods
                if call.name == f"{tree['metadata']['name']}.n.svc.cluster.local"
            ]
            records = tuple((call.name, "A", tree["status"]["podIP"]) for tree in found)
            return encode_reply(Reply(outcome="open", exists=bool(found), records=records))
        self.connections += 1
        tree = self.view.pod_at(call.address)
        if tree is None:
            return encode_reply(Reply(outcome="unreachable"))
        body = await self.databases.reply(tree, tree["spec"]["containers"][0], call.data)
        return encode_reply(Reply(outcome="open", speaks="redis", body=body))


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
def records():
    return Records()


@pytest.fixture
def databases(records):
    return Databases(records, IMAGES, Files(), SteppedClock(), View())


@pytest.fixture
def redises():
    return Redises()


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


@pytest.mark.parametrize(
    ("image", "environment", "user", "is_denied"),
    [
        ("postgres:16", {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "a"}, "postgres", True),
        ("postgres:16", {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "a"}, "app", False),
        ("postgres:16", {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "a"}, "made-later", False),
        ("postgres:16", {"POSTGRES_PASSWORD": "a"}, "root", True),
        ("postgres:16", {"POSTGRES_PASSWORD": "a"}, "postgres", False),
        ("bitnami/postgresql:17", {"POSTGRES_USER": "app", "POSTGRES_PASSWORD": "a"}, "postgres", False),
    ],
)
async def test_trusted_role_that_was_not_made_is_denied(databases, image, environment, user, is_denied):
    tree = pod("postgres", **environment)
    described = {**tree["spec"]["containers"][0], "image": image}
    login = Login(user=user, is_trusted=True)
    assert await databases.denies(tree, OpenPort(speaks="postgres", container=described), login) is is_denied
    mounted = {**described, "volumeMounts": [{"name": "v", "mountPath": "/docker-entrypoint-initdb.d"}]}
    assert not await databases.denies(tree, OpenPort(speaks="postgres", container=mounted), login)


async def test_keys_of_redis_last_for_a_run(records, databases):
    tree = pod("redis")
    container = tree["spec"]["containers"][0]
    assert await databases.reply(tree, container, b"SET a 1\r\n") == b"+OK\r\n"
    assert await databases.reply(tree, container, b"GET a\r\n") == b"$1\r\n1\r\n"
    assert await databases.reply(pod("redis", restarts=1), container, b"GET a\r\n") == b"$-1\r\n"
    records.remove("u")
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
    databases = Databases(Records(), IMAGES, WithFile(), SteppedClock(), View())
    reply = await databases.reply(
        tree, tree["spec"]["containers"][0], b"CONFIG GET maxmemory\nCONFIG GET databases\n"
    )
    assert reply == b"*2\r\n$9\r\nmaxmemory\r\n$7\r\n2097152\r\n*2\r\n$9\r\ndatabases\r\n$1\r\n4\r\n"


FOLLOWER = ("redis", "--replicaof", "redis-leader", "6379")
"""An image with its arguments."""


@pytest.mark.parametrize(
    ("image", "args", "environment"),
    [
        ("redis", ["redis-server", "--replicaof", "redis-leader", "6379"], {}),
        ("redis", ["--replicaof", "$(LEADER)", "6379"], {"LEADER": "redis-leader"}),
        ("redis", ["sh", "-c", "redis-server --slaveof $LEADER 6379"], {"LEADER": "redis-leader"}),
        ("bitnami/redis", [], {"ALLOW_EMPTY_PASSWORD": "yes", "REDIS_REPLICATION_MODE": "replica", "REDIS_MASTER_HOST": "redis-leader"}),
    ],
)  # fmt: skip
async def test_replica_has_the_keys_of_its_leader(redises, image, args, environment):
    leader = redises.add("redis-leader", "redis")
    replica = redises.add("replica", image, *args, **environment)
    await redises.run(leader, "SET a 1")
    assert await redises.run(replica, "GET a") == "$1\r\n1\r\n"
    assert (await redises.run(replica, "SET a 2")).startswith("-READONLY ")


async def test_replica_keeps_the_keys_of_a_leader_that_has_gone(redises):
    leader = redises.add("redis-leader", "redis")
    replica = redises.add("replica", *FOLLOWER)
    await redises.run(leader, "SET a 1")
    await redises.run(leader, "SET a 2")
    redises.remove("redis-leader")
    assert await redises.run(replica, "GET a") == "$1\r\n2\r\n"
    redises.add("redis-leader", "redis")
    assert await redises.run(replica, "GET a") == "$-1\r\n"


async def test_leader_shows_the_replicas_that_run(redises):
    leader = redises.add("redis-leader", "redis")
    redises.add("a", *FOLLOWER)
    redises.add("b", *FOLLOWER)
    redises.add("other", "redis")
    assert "connected_slaves:2\r\n" in await redises.run(leader, "INFO")
    redises.remove("a")
    assert "connected_slaves:1\r\n" in await redises.run(leader, "INFO")


async def test_writes_look_for_new_replicas_once_in_a_second(redises):
    leader = redises.add("redis-leader", "redis")
    await redises.run(leader, "SET a 1")
    redises.add("replica", *FOLLOWER)
    await redises.run(leader, "SET a 2")
    assert not redises.connections
    redises.clock.advance(1.0)
    await redises.run(leader, "SET a 3")
    await redises.run(leader, "SET a 4")
    assert redises.connections == 2


async def test_replica_of_a_replica_has_the_keys_of_the_first_leader(redises):
    leader = redises.add("redis-leader", "redis")
    redises.add("middle", *FOLLOWER)
    replica = redises.add("replica", "redis", "--replicaof", "middle", "6379")
    await redises.run(leader, "SET a 1")
    assert await redises.run(replica, "GET a") == "$1\r\n1\r\n"


async def test_server_that_is_its_own_leader_has_no_keys(redises):
    server = redises.add("redis-leader", *FOLLOWER)
    assert await redises.run(server, "GET a") == "$-1\r\n"
    assert "master_link_status:down\r\n" in await redises.run(server, "INFO replication")
