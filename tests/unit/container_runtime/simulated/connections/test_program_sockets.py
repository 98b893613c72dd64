"""Programs listen on ports themselves and keep connections open: nc with other programs, servers, processes and clients outside."""

import asyncio
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from mockube.component_base.clock import SteppedClock
from mockube.container_runtime.process_port import ProcessPort
from mockube.container_runtime.simulated.client_pace import ClientPace
from mockube.container_runtime.simulated.connections.flows import Flow, FlowClient
from mockube.container_runtime.simulated.connections.port_listeners import PortListeners
from mockube.container_runtime.simulated.connections.program_sockets import (
    answer_about_socket,
    connect_to_process,
    connect_to_program,
    reply_later,
    send_to_program,
    serve_program,
)
from mockube.container_runtime.simulated.execution import run_to_end
from mockube.container_runtime.simulated.network.calls import HttpRequest, Open, decode_call, encode_reply
from mockube.container_runtime.simulated.shell.invocation import run_command
from mockube.container_runtime.simulated.shell.process import Host
from mockube.container_runtime.simulated.shell.programs.all_programs import PROGRAMS
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem
from mockube.container_runtime.streams import InputStream
from tests.support.event_loop import until

POD = {"metadata": {"namespace": "default", "name": "server", "uid": "uid-1"}}
ADDRESS, PORT = "10.0.0.1", 9000
PROCESS_PORT = 9001
SERVED_PORT = 9002


class Output:
    def __init__(self, stdin=None):
        self.stdin = stdin
        self.text = ""

    async def write(self, _stream, data):
        self.text += data.decode()


async def sleep_while_waiting(seconds, _clock):
    """Take no time for short sleeps; others last until something happens."""
    if seconds > 1:
        await asyncio.Event().wait()


async def until_printed(output, text):
    await until(lambda: text in output.text)


class Pods:
    """A pod whose programs listen, a process, and a server within this process."""

    def __init__(self):
        self.listeners = PortListeners(SteppedClock())
        self.process_port = 0
        self.serve = None

    async def _answer(self, call):
        if isinstance(call, HttpRequest):
            return await reply_later(send_to_program(self.listeners, "uid-1", call.port, call))
        if not isinstance(call, Open):
            return answer_about_socket(POD, call, self.listeners)
        if call.port == PROCESS_PORT:
            return await connect_to_process(ProcessPort("127.0.0.1", self.process_port), SteppedClock())
        if call.port == SERVED_PORT:
            return serve_program(self.serve)
        return await connect_to_program(self.listeners, "uid-1", call.port)

    async def run(self, script, output=None):
        """Run a script to its end; return its output."""
        output = output or Output()
        host = Host(
            hostname="server",
            files=FileSystem({}),
            now=lambda: datetime(2030, 1, 1, tzinfo=UTC),
            programs=PROGRAMS,
            is_strict=True,
        )

        async def network(request):
            return encode_reply(await self._answer(decode_call(request)))

        execution = run_command(host, ["sh", "-c", script], {})
        await run_to_end(execution, output, ClientPace(SteppedClock()), network, sleep=sleep_while_waiting)
        return output.text

    async def listening(self):
        await until(lambda: self.listeners.knows("uid-1", PORT))

    @asynccontextmanager
    async def running(self, script):
        """Run a script until the end of a block, which begins when it listens."""
        output = Output()
        task = asyncio.create_task(self.run(script, output))
        await self.listening()
        yield output
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
def pods():
    return Pods()


LOOP = "while true; do echo hello | nc -l -p 9000; done"


async def test_each_client_of_nc_in_a_loop_gets_its_input_and_what_it_sends_is_printed(pods):
    async with pods.running(LOOP) as output:
        assert (
            await pods.run(f"echo one | nc {ADDRESS} {PORT}; nc {ADDRESS} {PORT} </dev/null") == "hello\n" * 2
        )
        assert await pods.run(f"printf two | nc {ADDRESS} {PORT}") == "hello\n"
        await until_printed(output, "one\ntwo")


async def test_nc_without_a_loop_ends_with_its_connection(pods):
    output = Output()
    async with asyncio.TaskGroup() as group:
        group.create_task(pods.run("echo hello | nc -l -p 9000; echo $?", output))
        await pods.listening()
        group.create_task(pods.run(f"echo one | nc {ADDRESS} {PORT}"))
    assert output.text == "one\n0\n"
    assert not pods.listeners.knows("uid-1", PORT)


@pytest.mark.parametrize("options", ["-lk -p 9000", "-l -k 9000", "-lkp9000", "--listen --keep-open 9000"])
async def test_nc_that_is_to_go_on_serves_one_client_after_the_other(pods, options):
    async with pods.running(f"nc {options}") as output:
        for word in ("one", "two", "three"):
            assert await pods.run(f"echo {word} | nc {ADDRESS} {PORT}") == ""
            await until_printed(output, word)
    assert output.text == "one\ntwo\nthree\n"


async def test_client_outside_gets_the_input_of_nc(pods):
    sent, received = Flow(), Flow()
    sent.put(b"from outside\n")
    async with pods.running(LOOP) as output:
        async with asyncio.TaskGroup() as group:
            group.create_task(pods.listeners.serve("uid-1", PORT, FlowClient(sent, received)))
            assert await received.read(100) == b"hello\n"
            sent.end()
            assert await received.read(100) == b""
        await until_printed(output, "from outside\n")


async def test_http_client_gets_the_response_that_is_piped_into_nc(pods):
    response = "HTTP/1.1 200 OK\\r\\nContent-Length: 3\\r\\n\\r\\nok\\n"
    async with pods.running(f"while true; do printf '{response}' | nc -l -p 9000; done") as output:
        assert await pods.run(f"curl -s {ADDRESS}:{PORT}/a") == "ok\n"
        await until_printed(output, "GET /a HTTP/1.1\r\n")
    async with pods.running(LOOP):
        assert await pods.run(f"curl -s {ADDRESS}:{PORT}; echo $?") == "52\n"


async def test_script_reaches_its_own_nc(pods):
    script = "echo hello | nc -l -p 9000 & sleep 0.1; {client}; wait"
    assert await pods.run(script.format(client="echo one | nc 127.0.0.1 9000")) in (
        "one\nhello\n",
        "hello\none\n",
    )
    script = "printf 'HTTP/1.0 200 OK\\r\\n\\r\\nok' | nc -l -p 9000 >/dev/null & sleep 0.1; curl -s 127.0.0.1:9000; wait"
    assert await pods.run(script) == "ok"


async def test_port_of_killed_nc_is_free(pods):
    killed = "nc -l -p 9000 & sleep 0.1; nc -l -p 9000; kill $! 2>/dev/null; wait 2>/dev/null"
    again = "echo hello | nc -l -p 9000 & sleep 0.1; nc 127.0.0.1 9000 </dev/null"
    output = await pods.run(f"({killed}); {again}")
    assert output.startswith("nc: bind: Address already in use\n")
    assert output.endswith("hello\n")


async def test_connection_is_refused_where_no_program_listens(pods):
    output = await pods.run(f"nc {ADDRESS} {PORT}")
    assert output == f"nc: can't connect to remote host ({ADDRESS}): Connection refused\n"


# --- nc as a client


async def test_nc_gets_the_reply_to_the_end_of_its_input(pods):
    received = []

    async def serve(client):
        await client.write(b"banner\n")
        while data := await client.read(100):
            received.append(data)
        await client.write(b"bye\n")

    pods.serve = serve
    assert await pods.run(f"echo hi | nc {ADDRESS} {SERVED_PORT}") == "banner\nbye\n"
    assert await pods.run(f"nc {ADDRESS} {SERVED_PORT} </dev/null") == "banner\nbye\n"
    assert received == [b"hi\n"]


async def test_nc_prints_what_arrives_while_it_waits_for_input(pods):
    async def serve(client):
        await client.write(b"banner\n")
        while data := await client.read(100):
            await client.write(b"got " + data)

    pods.serve, stdin = serve, InputStream()
    output = Output(stdin)
    task = asyncio.create_task(pods.run(f"nc {ADDRESS} {SERVED_PORT}", output))
    await until_printed(output, "banner\n")
    await stdin.feed(b"hi\n")
    await until_printed(output, "got hi\n")
    await stdin.end()
    assert await task == "banner\ngot hi\n"


async def test_nc_gets_the_reply_of_a_process_to_the_end_of_its_input(pods):
    received = []

    async def serve(reader, writer):
        writer.write(b"banner\n")
        received.append(await reader.read())
        writer.write(b"bye\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        pods.process_port = server.sockets[0].getsockname()[1]
        assert await pods.run(f"echo hi | nc {ADDRESS} {PROCESS_PORT}") == "banner\nbye\n"
        assert await pods.run(f"nc {ADDRESS} {PROCESS_PORT} </dev/null") == "banner\nbye\n"
    assert received == [b"hi\n", b""]


async def test_server_sees_the_end_of_nc_that_was_killed(pods):
    async def serve(client):
        await client.departure.wait()
        ended.set()

    pods.serve, ended = serve, asyncio.Event()
    killed = asyncio.create_task(pods.run(f"timeout 0.5 nc {ADDRESS} {SERVED_PORT}; sleep 9000"))
    await until(ended.is_set)
    killed.cancel()


async def test_listener_refuses_clients_beyond_its_backlog():
    listeners = PortListeners(SteppedClock())
    listeners.open("uid-1", PORT)
    listeners.listen("uid-1", PORT, lambda: None)
    connections = [await listeners.connect("uid-1", PORT) for _ in range(130)]
    assert [number for number, flows in enumerate(connections) if flows is None] == [128, 129]
