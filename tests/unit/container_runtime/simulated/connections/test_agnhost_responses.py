"""The servers of agnhost answer their paths and datagrams, and send requests over the network of their pods."""

import orjson
import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.connections.agnhost_responses import (
    AgnhostResponses,
    ContainerAccess,
)
from mockube.container_runtime.simulated.connections.port_answers import ReceivedRequest, open_port
from mockube.container_runtime.simulated.network.calls import (
    Connect,
    HttpRequest,
    Lookup,
    Reply,
    decode_call,
    encode_reply,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from tests.support.images import IMAGES

RESOLVER = b"search shop.svc.cluster.local\nnameserver 10.0.0.10\noptions ndots:5\n"
ADDRESSES = {"agnhost-primary.shop.svc.cluster.local": "10.0.0.7", "web.shop.svc.cluster.local": "10.0.0.8"}


class PassingClock(SteppedClock):
    """A clock that notes sleeps, which take no time."""

    def __init__(self):
        super().__init__()
        self.sleeps = []

    async def sleep(self, seconds):
        self.sleeps.append(seconds)


class Machine:
    """A container of agnhost: its files, and a network whose other ends answer from lists."""

    def __init__(self, *args, **environment):
        env = [{"name": name, "value": value} for name, value in environment.items()]
        self.container = {"name": "c", "image": "agnhost", "args": [*args], "env": env}
        self.pod = {
            "metadata": {"name": "p", "namespace": "shop", "uid": "u"},
            "spec": {"containers": [self.container]},
            "status": {
                "podIP": "10.244.0.5",
                "containerStatuses": [{"name": "c", "restartCount": 0, "state": {"running": {}}}],
            },
        }
        self.files = FileSystem({"/etc/resolv.conf": FileEntry(data=RESOLVER), "/uploads": FileEntry()})
        self.lines = []
        self.ends = []
        self.sent = []
        self.replies = []
        self.result = CommandResult(exit_code=0)
        self.clock = PassingClock()
        self.records = Records()
        self.responses = AgnhostResponses(self.records, self, self.clock)
        self.responses.access = ContainerAccess(
            network=lambda _: self.call,
            write_log=lambda _pod, _name, lines: self.lines.extend(
                text.partition("] ")[2] for _, text in lines
            ),
            run_command=self.run_command,
            end=lambda _pod, _name, code: self.ends.append(code),
        )

    async def file_system(self, _pod, _container):
        return self.files

    async def references_of(self, _pod, _container):
        return References()

    async def run_command(self, _pod, _name, argv, _seconds):
        self.sent.append(argv)
        return self.result

    async def call(self, data):
        call = decode_call(data)
        if isinstance(call, Lookup):
            address = ADDRESSES.get(call.name)
            records = ((call.name, "A", address),) if address else ()
            return encode_reply(Reply(outcome="open", exists=bool(address), records=records))
        self.sent.append(call)
        return encode_reply(self.replies.pop(0))

    async def get(self, path, *, port=8080, method="GET", body=b"", **headers):
        opened = open_port(IMAGES, self.pod, port)
        request = ReceivedRequest(
            method=method,
            path=path,
            headers=headers,
            client="10.244.0.9:40000",
            time="now",
            body=body,
            run=("u", "c", 0),
        )
        return await self.responses.respond(self.pod, self.container, opened.behavior, port, request)

    async def send(self, data, *, port=8081, protocol="UDP"):
        opened = open_port(IMAGES, self.pod, port, protocol)
        return await self.responses.reply_to_datagram(
            self.pod, self.container, opened.behavior, port, data, "10.244.0.9:40000"
        )


def http(body, status=200, **headers):
    return Reply(outcome="open", status=status, body=body.encode(), headers=tuple(headers.items()))


@pytest.mark.parametrize(
    ("path", "status", "body", "log"),
    [
        ("/", 200, "NOW: now", "GET /"),
        ("/anything", 200, "NOW: now", "GET /"),
        ("/hostname", 200, "p", "GET /hostname"),
        ("/clientip", 200, "10.244.0.9:40000", "GET /clientip"),
        ("/serverport", 200, "8080", "GET /serverport"),
        ("/echo?msg=a%26b&code=418", 418, "a&b", "GET /echo?msg=a&b&code=418"),
        ("/echo?code=x", 200, 'argument \'code\' must be an integer or empty, got "x"\n', "GET /echo?msg=&code=x"),
        ("/echo?code=5000", 0, "", "GET /echo?msg=&code=5000"),
        ("/envvar?var=A", 200, "1", "GET /envvar?var=A"),
        ("/envvar?var=B", 500, 'env var "B" is not set\n', "GET /envvar?var=B"),
        ("/header?key=X-A", 200, "b", "GET /header?key=X-A"),
        ("/healthz", 200, "", "GET /healthz"),
        ("/readyz", 200, "ok", "GET /readyz"),
        ("/dial?host=web", 400, "request parameter not specified. <nil>\n", None),
        ("/dial?host=web&request=a&protocol=x", 400, "unsupported protocol. x\n", None),
        ("/dial?host=web&request=a&port=x", 400, "host and/or port param are invalid. address x: invalid port\n", None),
        ("/dial?host=web&request=a&tries=9999", 501, "mockube: /dial with more than 1000 tries is not simulated\n", None),
        ("/exit?wait=x", 200, 'argument \'wait\' must be a valid golang duration or empty, got "x"\n', None),
    ],
)  # fmt: skip
async def test_paths_of_netexec(path, status, body, log):
    machine = Machine("netexec", A="1")
    answer = await machine.get(path, **{"x-a": "b"})
    assert (answer.status, answer.body.decode()) == (status, body)
    if log is not None:
        assert machine.lines == [log]
    assert not machine.ends


@pytest.mark.parametrize(
    ("text", "kind"),
    [("<a href=x>", "html"), (" <B>", "html"), ("<abc>", "plain"), ("<?xml x", "xml"), ("a", "plain")],
)
async def test_content_type_is_found_in_the_text(text, kind):
    machine = Machine("porter", SERVE_PORT_80=text)
    assert open_port(IMAGES, machine.pod, 80).behavior.routes[0].content_type == f"text/{kind}; charset=utf-8"


async def test_netexec_redirects():
    answer = await Machine("netexec").get("/redirect?location=/a%3Fb&code=307")
    assert (answer.status, answer.location) == (307, "/a?b")


async def test_netexec_without_datagrams_is_not_healthy():
    assert (await Machine("netexec", "--udp-port", "-1").get("/healthz")).status == 412


async def test_netexec_answers_the_path_that_it_is_given_in_place_of_others():
    machine = Machine("netexec", "--http-override=/echo?msg=same")
    assert (await machine.get("/hostname")).body == b"same"


@pytest.mark.parametrize(
    ("datagram", "reply"),
    [
        (b"hostname\n", b"p"),
        (b"hostName", b"p"),
        (b"echo Hi There", b"hi there"),
        (b"clientip", b"10.244.0.9:40000"),
        (b"serverport", b"8081"),
        (b"envvar A", b"1"),
        (b"nonsense", b""),
        (b"\n", b""),
    ],
)
async def test_datagrams_of_netexec(datagram, reply):
    assert await Machine("netexec", A="1").send(datagram) == reply


@pytest.mark.parametrize(
    ("args", "port", "protocol", "is_open"),
    [
        (["netexec"], 8081, "UDP", True),
        (["netexec", "--udp-port=-1"], 8081, "UDP", False),
        (["netexec", "--udp-port", "80", "--http-port=80"], 80, "UDP", True),
        (["netexec", "--sctp-port=90"], 90, "SCTP", True),
        (["netexec"], 90, "SCTP", False),
        (["netexec"], 8081, "TCP", False),
        (["serve-hostname", "--udp", "--http=false"], 9376, "UDP", True),
        (["serve-hostname"], 9376, "UDP", False),
        (["pause"], 8081, "UDP", False),
    ],
)
def test_ports_of_datagrams(args, port, protocol, is_open):
    assert (open_port(IMAGES, Machine(*args).pod, port, protocol) is not None) is is_open


async def test_porter_serves_the_values_of_its_variables():
    machine = Machine("porter", "--json-response", SERVE_PORT_80="a", SERVE_UDP_PORT_90="b")
    assert await machine.send(b"x", port=90) == b"b"
    route = open_port(IMAGES, machine.pod, 80).behavior.routes[0]
    assert (route.body, route.content_type) == ('{"Method":"$(method)","Body":"a"}', "application/json")


async def test_dial_sends_requests_and_returns_what_came_back():
    machine = Machine("netexec")
    machine.replies = [http("one"), Reply(outcome="refused"), http("", 302, Location="/b"), http("two")]
    answer = await machine.get("/dial?host=web&port=80&request=a%3Fb&tries=3")
    assert orjson.loads(answer.body) == {
        "errors": ['Get "http://10.0.0.8:80/a?b": dial tcp 10.0.0.8:80: connect: connection refused'],
        "responses": ["one", "two"],
    }
    assert [(call.address, call.path) for call in machine.sent] == [
        ("10.0.0.8", "/a?b"), ("10.0.0.8", "/a?b"), ("10.0.0.8", "/a?b"), ("10.0.0.8", "/b"),
    ]  # fmt: skip


async def test_dial_drops_responses_if_the_last_attempt_failed():
    machine = Machine("netexec")
    machine.replies = [Reply(outcome="open", body=b"web-1"), Reply(outcome="refused")]
    answer = await machine.get("/dial?host=10.0.0.8&port=81&protocol=udp&request=hostname&tries=2")
    problem = "read udp 10.244.0.5:40000->10.0.0.8:81: read: connection refused"
    assert orjson.loads(answer.body) == {"errors": [f"reading from udp connection failed. err:'{problem}'"]}
    assert machine.sent[0] == Connect(address="10.0.0.8", port=81, protocol="UDP", data=b"hostname")


async def test_servers_that_dial_each_other_end():
    machine = Machine("netexec")

    async def call(_data):
        answer = await machine.get("/dial?host=10.0.0.8&port=80&request=dial&tries=1000")
        return encode_reply(http(answer.body.decode()))

    machine.call = call
    answer = await machine.get("/dial?host=10.0.0.8&port=80&request=dial&tries=3")
    assert b"without an end are not simulated" in answer.body


async def test_dial_waits_for_a_server_that_does_not_answer():
    machine = Machine("netexec")
    machine.replies = [Reply(outcome="timeout")]
    answer = await machine.get("/dial?host=10.0.0.8&port=81&request=a")
    assert b"context deadline exceeded" in answer.body
    assert machine.clock.sleeps == [5.0]


async def test_dial_of_an_unknown_name_is_refused():
    answer = await Machine("netexec").get("/dial?host=nope&port=81&request=a")
    assert answer.status == 400
    assert answer.body.endswith(b"lookup nope on 10.0.0.10:53: no such host\n")


@pytest.mark.parametrize(
    ("result", "status", "body"),
    [
        (CommandResult(exit_code=0, output="a\n"), 200, '{"output":"a\\n"}'),
        (CommandResult(exit_code=3), 200, '{"error":"exit status 3"}'),
        (None, 501, "mockube: the command 'x' is not simulated\n"),
    ],
)
async def test_shell_runs_a_command_or_says_that_it_cannot(result, status, body):
    machine = Machine("netexec")
    machine.result = result
    answer = await machine.get("/shell?cmd=x")
    assert (answer.status, answer.body.decode()) == (status, body)
    assert machine.sent == [["/bin/sh", "-c", "x"]]


@pytest.mark.parametrize(
    ("path", "code", "status"),
    [("/exit?code=3", 3, 0), ("/exit?code=1&timeout=1s", 1, 200), ("/shutdown", 0, 0)],
)
async def test_netexec_ends_its_container(path, code, status):
    machine = Machine("netexec")
    assert (await machine.get(path)).status == status
    assert machine.ends == [code]


async def test_upload_writes_a_file():
    machine = Machine("netexec")
    body = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\nhello\r\n--x--\r\n'
    headers = {"content-type": "multipart/form-data; boundary=x"}
    answer = await machine.get("/upload", method="POST", body=body, **headers)
    assert answer.status == 201
    assert machine.files.read(orjson.loads(answer.body)["output"]) == b"hello"
    assert (await machine.get("/upload")).body == b'{"error":"Unable to upload file."}'


async def test_guestbook_keeps_what_is_set_and_sends_it_to_replicas():
    machine = Machine("guestbook", "--http-port=6379")
    assert (await machine.get("/register?host=10.244.0.6", port=6379)).body == b'{"data":{}}'
    machine.replies = [http("{}")]
    assert (await machine.get("/set?key=a&value=b", port=6379)).body == b'{"message":"Updated"}'
    assert (machine.sent[0].address, machine.sent[0].port) == ("10.244.0.6", 6379)
    assert (await machine.get("/get?key=a", port=6379)).body == b'{"data":"b"}'
    assert (await machine.get("/get", port=6379)).body == b'{"data":{"a":"b"}}'
    assert (await machine.get("/set", port=6379)).status == 400
    machine.records.remove("u")
    assert (await machine.get("/get", port=6379)).body == b'{"data":{}}'


async def test_guestbook_passes_requests_on():
    machine = Machine("guestbook")
    machine.replies = [http('{"message":"Updated"}')]
    assert (await machine.get("/guestbook?cmd=set&key=a&value=b", port=80)).body == b'{"message":"Updated"}'
    assert isinstance(machine.sent[0], HttpRequest)
    assert machine.sent[0].address == "10.0.0.7"
    assert (await machine.get("/guestbook?cmd=get&key=a", port=80)).status == 400  # no such name
    assert (await machine.get("/guestbook?cmd=x", port=80)).status == 400


async def test_nettest_records_contacts_and_refuses_a_status():
    machine = Machine("nettest")
    await machine.get("/write", method="POST", body=b'{"Source": "prestop"}')
    await machine.get("/write", method="POST", body=b"no JSON")
    state = orjson.loads((await machine.get("/read")).body)
    assert state["Received"] == {"prestop": 1}
    assert len(state["Errors"]) == 2
    assert "not simulated" in state["Log"][0]
    assert (await machine.get("/status")).status == 501


async def test_no_snat_test_compares_the_address_that_others_see():
    machine = Machine("no-snat-test", POD_IP="10.244.0.5", NODE_IP="172.18.0.2")
    machine.replies = [http("10.244.0.5:40000"), http("172.18.0.2:40000")]
    assert (await machine.get("/checknosnat?ips=10.244.0.6:8080")).status == 200
    assert (await machine.get("/checknosnat?ips=10.244.0.6:8080")).status == 500
