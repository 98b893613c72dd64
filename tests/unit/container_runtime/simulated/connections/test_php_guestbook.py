"""The guestbook of Kubernetes' tutorial sets and gets its key at servers of Redis over the network, with the errors of PHP."""

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.connections.php_guestbook import PhpGuestbook
from mockube.container_runtime.simulated.connections.port_answers import ReceivedRequest
from mockube.container_runtime.simulated.network.calls import Lookup, Reply, decode_call, encode_reply
from mockube.container_runtime.simulated.shell.filesystem import FileEntry, FileSystem
from tests.support.images import IMAGES

RESOLVER = FileEntry(data=b"search shop.svc.cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n")
ADDRESSES = {
    "redis-leader.shop.svc.cluster.local": "10.0.0.7",
    "redis-follower.shop.svc.cluster.local": "10.0.0.8",
    "redis-master.shop.svc.cluster.local": "10.0.0.9",
    "redis-slave.shop.svc.cluster.local": "10.0.0.10",
}
FATAL = "<br />\n<b>Fatal error</b>:  Uncaught Predis\\"


class PassingClock(SteppedClock):
    """A clock that notes sleeps, which take no time."""

    def __init__(self):
        super().__init__()
        self.sleeps = []

    async def sleep(self, seconds):
        self.sleeps.append(seconds)


class Frontend:
    """A container of the guestbook, and a network whose servers answer all connections alike."""

    def __init__(self, reply, tag="v5", **environment):
        env = [{"name": name, "value": value} for name, value in environment.items()]
        image = f"us-docker.pkg.dev/google-samples/containers/gke/gb-frontend:{tag}"
        self.container = {"name": "c", "image": image, "env": env}
        self.pod = {
            "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
            "spec": {"containers": [self.container]},
        }
        self.reply = reply
        self.sent = []
        self.lines = []
        self.clock = PassingClock()
        self.script = PhpGuestbook(self, self.clock)
        self.script.network = lambda _: self._call
        self.script.write_log = lambda _pod, _name, lines: self.lines.extend(text for _, text in lines)

    async def file_system(self, _pod, _container):
        return FileSystem({"/etc/resolv.conf": RESOLVER})

    async def references_of(self, _pod, _container):
        return References()

    async def _call(self, data):
        call = decode_call(data)
        if isinstance(call, Lookup):
            address = ADDRESSES.get(call.name)
            records = ((call.name, "A", address),) if address and self.reply.outcome != "lost" else ()
            return encode_reply(Reply(outcome="open", exists=bool(records), records=records))
        self.sent.append((call.address, call.port, call.data))
        return encode_reply(self.reply)

    async def get(self, query):
        behavior = IMAGES.behavior_of_image(self.container["image"]).ports[80]
        request = ReceivedRequest(method="GET", path=f"/guestbook.php{query}", client="10.244.0.9:40000")
        answer = await self.script.respond(self.pod, self.container, behavior, request)
        return answer.status, answer.body.decode()


def redis(body):
    return Reply(outcome="open", speaks="redis", body=body)


async def test_message_is_set_at_the_leader():
    frontend = Frontend(redis(b"+OK\r\n"))
    assert await frontend.get("?cmd=set&key=guestbook&value=,a%20b") == (200, '{"message": "Updated"}')
    data = b"*3\r\n$3\r\nSET\r\n$9\r\nguestbook\r\n$4\r\n,a b\r\n"
    assert frontend.sent == [("10.0.0.7", 6379, data)]


@pytest.mark.parametrize(("reply", "text"), [(b"$6\r\n,hello\r\n", ",hello"), (b"$-1\r\n", "")])
async def test_messages_are_read_from_a_follower(reply, text):
    frontend = Frontend(redis(reply))
    assert await frontend.get("?cmd=get") == (200, f'{{"data": "{text}"}}')
    assert frontend.sent == [("10.0.0.8", 6379, b"*2\r\n$3\r\nGET\r\n$9\r\nguestbook\r\n")]


@pytest.mark.parametrize(
    ("query", "tag", "environment", "address"),
    [
        ("?cmd=set", "v5", {"GET_HOSTS_FROM": "env", "REDIS_LEADER_SERVICE_HOST": "10.0.0.20"}, "10.0.0.20"),
        (
            "?cmd=get",
            "v5",
            {"GET_HOSTS_FROM": "env", "REDIS_FOLLOWER_SERVICE_HOST": "10.0.0.21"},
            "10.0.0.21",
        ),
        ("?cmd=set", "v5", {"GET_HOSTS_FROM": "dns", "REDIS_LEADER_SERVICE_HOST": "10.0.0.20"}, "10.0.0.7"),
        ("?cmd=set", "v4", {}, "10.0.0.9"),
        ("?cmd=get", "v4", {}, "10.0.0.10"),
    ],
)
async def test_hosts_are_those_of_the_image_and_of_its_variables(query, tag, environment, address):
    frontend = Frontend(redis(b"+OK\r\n"), tag, **environment)
    await frontend.get(query)
    assert [sent[0] for sent in frontend.sent] == [address]


@pytest.mark.parametrize(
    ("reply", "problem", "sleeps"),
    [
        (Reply(outcome="refused"), "Connection\\ConnectionException: Connection refused [tcp://redis-leader:6379]", []),
        (Reply(outcome="timeout"), "Connection\\ConnectionException: Connection timed out [tcp://redis-leader:6379]", [5.0]),
        (
            Reply(outcome="lost"),
            "Connection\\ConnectionException: php_network_getaddresses: getaddrinfo failed: Name or service not known [tcp://redis-leader:6379]",
            [],
        ),
        (
            Reply(outcome="open", speaks="http", body=b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "Connection\\ConnectionException: Error while reading line from the server. [tcp://redis-leader:6379]",
            [],
        ),
        (redis(b"-NOAUTH Authentication required.\r\n"), "Response\\ServerException: NOAUTH Authentication required.", []),
    ],
)  # fmt: skip
async def test_failure_is_a_fatal_error_that_is_shown_and_logged(reply, problem, sleeps):
    frontend = Frontend(reply)
    status, text = await frontend.get("?cmd=set&value=a")
    assert (status, text.startswith(f"{FATAL}{problem} in /var/www/html/vendor/predis/")) == (200, True)
    assert len(frontend.lines) == 1
    assert f"[client 10.244.0.9:40000] PHP Fatal error:  Uncaught Predis\\{problem} in " in frontend.lines[0]
    assert frontend.clock.sleeps == sleeps


async def test_script_without_a_command_is_refused_by_name():
    status, text = await Frontend(redis(b"")).get("")
    assert (status, text) == (501, "mockube: the page of phpinfo() is not simulated\n")
