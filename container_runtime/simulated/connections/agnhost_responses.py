"""The responses of agnhost's servers in containers: its paths and datagrams, with the requests that it sends to others over the pod's network.

Upstream: test/images/agnhost. What a server would do beyond that (a command that is not simulated) is refused by a response that says so.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from email.message import Message
from email.parser import BytesParser
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl

import msgspec
from msgspec import Struct, field

from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.gotext import int_or_none, marshal, marshal_indent, quote
from mockube.apimachinery.hosts import join_host_port
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.clock import Clock
from mockube.container_runtime.behavior import CommandResult
from mockube.container_runtime.config.environment import environment_of, hostname_of
from mockube.container_runtime.images.table import MAX_PORT, PortBehavior
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.network.calls import NetworkCaller
from mockube.container_runtime.simulated.pod_files import PodFiles
from mockube.container_runtime.simulated.servers.http_paths import route_of, sniffed_type
from mockube.container_runtime.simulated.servers.server_programs import AgnhostPort, option
from mockube.container_runtime.simulated.shell.network_programs.agnhost_clients import log_line
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from .go_client import Failed, GoClient
from .port_answers import HttpAnswer, ReceivedRequest, placeholder_text

MAX_TRIES: Final = 1000
"""The requests that one call of /dial sends."""
_SHELL_SECONDS: Final = 60.0
_DATAGRAM: Final = 2048
_STDERR: Final = 2
_MAX_STATUS: Final = 999
_GUESTBOOK_PORT: Final = 6379
_MAX_KEYS: Final = 1000
_MAX_REPLICAS: Final = 100
_MAX_ERRORS: Final = 500
_CONTACTS: Final = "the part of nettest that contacts its peers"


class ContainerAccess(Struct, frozen=True, kw_only=True):
    """What a server does in its container, by the run-time."""

    network: Callable[[ReadOnlyTree], NetworkCaller]
    """Returns what answers the calls of a pod."""
    write_log: Callable[[ReadOnlyTree, str, Sequence[tuple[int, str]]], None]
    """Adds lines to the log of a container, each with its descriptor."""
    run_command: Callable[[ReadOnlyTree, str, Sequence[str], float], Awaitable[CommandResult | None]]
    """Runs a command in a container for some seconds; returns its result, or None if it is unknown."""
    end: Callable[[ReadOnlyTree, str, int], None]
    """Ends the first process of a container with an exit code."""


class _Contact(Struct, rename="pascal"):
    """What another nettest writes."""

    source: str = ""


class _ServerRun(Struct):
    """What a server has in memory."""

    store: dict[str, str] = field(default_factory=dict)
    """The values of a guestbook."""
    replicas: list[str] = field(default_factory=list)
    """Those to which a guestbook sends what is set."""
    received: dict[str, int] = field(default_factory=dict)
    """How often a nettest was contacted, by the name of the other one."""
    errors: list[str] = field(default_factory=list)


class _ServerRuns(dict[tuple[str, int], _ServerRun]):
    """Those of a pod's containers, by name and number of restarts."""


class _Exchange(Struct, frozen=True, kw_only=True):
    """A request to a server, and where it came to."""

    pod: ReadOnlyTree
    container: ReadOnlyTree
    behavior: PortBehavior
    port: int
    request: ReceivedRequest
    query: Mapping[str, str]
    """The first values of the query's parameters."""
    form: Mapping[str, str]
    """The same with those of the body, which go before them."""


_Handler = Callable[[_Exchange], Awaitable[HttpAnswer]]


class AgnhostResponses:
    def __init__(self, records: Records, files: PodFiles, clock: Clock) -> None:
        self._records = records
        self._files = files
        self._clock = clock
        self.access: ContainerAccess
        """Set by the run-time, whose network needs the responses."""
        self._handlers: Mapping[str, Mapping[str, _Handler]] = {
            "netexec": {
                "/clientip": self._client,
                "/serverport": self._port,
                "/header": self._header,
                "/dial": self._dial,
                "/echo": self._echo,
                "/exit": self._exit,
                "/healthz": self._health,
                "/readyz": self._health,
                "/hostname": self._hostname,
                "/hostName": self._hostname,
                "/envvar": self._variable,
                "/redirect": self._redirect,
                "/shell": self._shell,
                "/upload": self._upload,
                "/shutdown": self._shutdown,
                "/": self._time,
            },
            "guestbook": {
                "/register": self._register,
                "/get": self._get,
                "/set": self._set,
                "/guestbook": self._proxy,
            },
            "nettest": {
                "/read": self._read_contacts,
                "/write": self._write_contact,
                "/status": self._contact_status,
                "/quit": self._shutdown,
            },
            "no-snat-test": {"/whoami": self._client, "/checknosnat": self._check_no_snat},
        }

    async def respond(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        behavior: AgnhostPort,
        port: int,
        request: ReceivedRequest,
    ) -> HttpAnswer:
        """Return the response of a server, which logs the request."""
        path, _, text = request.path.partition("?")
        override = behavior.override
        if override:
            path, _, text = override.partition("?")
            request = ReceivedRequest(method="GET", path=override, time=request.time, run=request.run)
        query = {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}
        exchange = _Exchange(
            pod=pod, container=container, behavior=behavior, port=port, request=request, query=query,
            form={**query, **_form_of(request)},
        )  # fmt: skip
        handlers = self._handlers[behavior.subcommand]
        handler = handlers.get(path) or handlers.get("/")
        return await handler(exchange) if handler is not None else _error("404 page not found", 404)

    async def reply_to_datagram(
        self,
        pod: ReadOnlyTree,
        container: ReadOnlyTree,
        behavior: PortBehavior,
        port: int,
        data: bytes,
        client: str,
    ) -> bytes:
        """Return the datagram with which netexec answers one, or the only one that another server sends; empty if it sends none."""
        if not isinstance(behavior, AgnhostPort):
            received = ReceivedRequest(method="", path="", client=client)
            return (
                placeholder_text(behavior.routes[0].body, pod, received).encode() if behavior.routes else b""
            )
        text = data[:_DATAGRAM].decode("utf-8", "replace").strip()
        command, _, rest = text.partition(" ")
        match command.lower():
            case "hostname" if not rest:
                reply, log = hostname_of(pod), "Sending udp hostName response"
            case "clientip" if not rest:
                reply, log = client, f"Sending clientip back to UDP client {client}\n"
            case "serverport" if not rest:
                reply, log = str(port), f"Sending server port to UDP client {port}\n"
            case "echo" if rest:
                reply = rest.lower()
                log = f"Echoing {reply} to UDP client {client}\n"
            case "envvar" if rest:
                name = rest.strip()
                reply = (await self._variables(pod, container)).get(name, "")
                log = f"Sending UDP envvar response for {name}"
            case "":
                return b""
            case _:
                reply, log = "", f"Unknown UDP command received from {client}: {text.lower()}\n"
        self._log(pod, container, log.rstrip("\n"))
        return reply.encode()

    # --- netexec

    async def _text(self, text: str, exchange: _Exchange) -> HttpAnswer:
        self._log_path(exchange)
        return HttpAnswer(body=text.encode())

    async def _time(self, exchange: _Exchange) -> HttpAnswer:
        self._log(exchange.pod, exchange.container, "GET /")
        return HttpAnswer(body=f"NOW: {exchange.request.time}".encode())

    async def _client(self, exchange: _Exchange) -> HttpAnswer:
        return await self._text(exchange.request.client, exchange)

    async def _port(self, exchange: _Exchange) -> HttpAnswer:
        return await self._text(str(exchange.port), exchange)

    async def _hostname(self, exchange: _Exchange) -> HttpAnswer:
        return await self._text(hostname_of(exchange.pod), exchange)

    async def _health(self, exchange: _Exchange) -> HttpAnswer:
        """Return the health, which probes read, too: it is that of the server of datagrams, so that a server without one has none."""
        self._log_path(exchange)
        route = route_of(exchange.behavior, exchange.request.path, 0.0)
        assert route is not None
        return HttpAnswer(status=route.status, body=route.body.encode())

    async def _header(self, exchange: _Exchange) -> HttpAnswer:
        key = exchange.form.get("key", "")
        headers = exchange.request.headers
        if key:
            self._log(exchange.pod, exchange.container, f"GET /header?key={key}")
            return HttpAnswer(body=headers.get(key.lower(), "").encode())
        self._log_path(exchange)
        names = {name.title(): [value] for name, value in sorted(headers.items()) if name != "host"}
        return HttpAnswer(body=marshal(names).encode())

    async def _echo(self, exchange: _Exchange) -> HttpAnswer:
        text, code = exchange.form.get("msg", ""), exchange.form.get("code", "")
        self._log(exchange.pod, exchange.container, f"GET /echo?msg={text}&code={code}")
        status = int_or_none(code) if code else int(HTTPStatus.OK)
        if status is None:
            return HttpAnswer(body=_not_an_integer(code))
        return _with_status(status, HttpAnswer(content_type=sniffed_type(text), body=text.encode()))

    async def _redirect(self, exchange: _Exchange) -> HttpAnswer:
        location, code = exchange.form.get("location", ""), exchange.form.get("code", "")
        method = exchange.request.method
        self._log(exchange.pod, exchange.container, f"{method} /redirect?msg={location}&code={code}")
        status = int_or_none(code) if code else int(HTTPStatus.FOUND)
        if status is None:
            return HttpAnswer(body=_not_an_integer(code))
        if not location.startswith("/") and "://" not in location:
            location = f"/{location}"
        return _with_status(status, HttpAnswer(location=location, content_type="text/html; charset=utf-8"))

    async def _variable(self, exchange: _Exchange) -> HttpAnswer:
        name = exchange.form.get("var", "")
        if not name:
            return _error("'var' query parameter is required", 400)
        self._log(exchange.pod, exchange.container, f"GET /envvar?var={name}")
        value = (await self._variables(exchange.pod, exchange.container)).get(name)
        if value is None:
            return _error(f"env var {quote(name)} is not set", 500)
        return HttpAnswer(body=value.encode())

    async def _exit(self, exchange: _Exchange) -> HttpAnswer:
        code, limit, wait = (exchange.form.get(name, "") for name in ("code", "timeout", "wait"))
        self._log(exchange.pod, exchange.container, f"GET /exit?code={code}&timeout={limit}&wait={wait}")
        seconds = dict[str, float]()
        for name, text in (("timeout", limit), ("wait", wait)):
            try:
                seconds[name] = parse_duration(text) / 10**9 if text else 0.0
            except DurationError:
                problem = f"argument '{name}' must be a valid golang duration or empty, got {quote(text)}\n"
                return HttpAnswer(body=problem.encode())
        number = int_or_none(code) if code else 0
        if number is None:
            problem = f"argument 'code' must be an integer [0-127] or empty, got {quote(code)}\n"
            return HttpAnswer(body=problem.encode())
        if seconds["wait"] > 0:
            await self._clock.sleep(seconds["wait"])
        self.access.end(exchange.pod, exchange.container["name"], number & 0xFF)
        # Without time for them, open connections are closed; with it, the response is sent first.
        return HttpAnswer() if seconds["timeout"] > 0 else HttpAnswer(status=0)

    async def _shutdown(self, exchange: _Exchange) -> HttpAnswer:
        self._log_path(exchange)
        self.access.end(exchange.pod, exchange.container["name"], 0)
        return HttpAnswer(status=0)

    async def _shell(self, exchange: _Exchange) -> HttpAnswer:
        command = exchange.form.get("shellCommand") or exchange.form.get("cmd", "")
        pod, container = exchange.pod, exchange.container
        self._log(pod, container, f"GET /shell?cmd={command}")
        argv = ["/bin/sh", "-c", command]
        result = await self.access.run_command(pod, container["name"], argv, _SHELL_SECONDS)
        if result is None or result.seconds > _SHELL_SECONDS:
            return _not_simulated(f"the command {command!r}")
        output = {"output": result.output} if result.output else {}
        if result.exit_code:
            output = {"error": f"exit status {result.exit_code}", **output}
        return HttpAnswer(body=marshal(output).encode())

    async def _upload(self, exchange: _Exchange) -> HttpAnswer:
        self._log_path(exchange)
        data = _uploaded_file(exchange.request)
        if data is None:
            self._log(exchange.pod, exchange.container, "Unable to upload file: http: no such file")
            return HttpAnswer(body=marshal({"error": "Unable to upload file."}).encode())
        now = self._clock.now()
        path = f"/uploads/upload{now:%H%M%S%f}"
        try:
            files = await self._files.file_system(exchange.pod, exchange.container)
            files.write(path, data, modified=now.timestamp())
            files.change(path, mode=0o700)
        except FileError as error:
            self._log(exchange.pod, exchange.container, f"Unable to open file for write: {error}")
            return HttpAnswer(body=marshal({"error": "Unable to open file for write"}).encode())
        self._log(exchange.pod, exchange.container, f"Wrote upload to {path}")
        return HttpAnswer(status=HTTPStatus.CREATED, body=marshal({"output": path}).encode())

    async def _dial(self, exchange: _Exchange) -> HttpAnswer:
        """Send requests to another server over the network of the pod."""
        host, port, request, protocol, text = (
            exchange.query.get(name, "") for name in ("host", "port", "request", "protocol", "tries")
        )
        self._log(
            exchange.pod,
            exchange.container,
            f"GET /dial?host={host}&protocol={protocol}&port={port}&request={request}&tries={text}",
        )
        tries = int_or_none(text) if text else 1
        if tries is None:
            problem = f"strconv.Atoi: parsing {quote(text)}: invalid syntax"
            return _error(f"tries parameter is invalid. {problem}", 400)
        if tries > MAX_TRIES:
            return _not_simulated(f"/dial with more than {MAX_TRIES} tries")
        if not request:
            return _error("request parameter not specified. <nil>", 400)
        kind = protocol.lower() or "http"
        if kind not in ("http", "udp", "sctp"):
            return _error(f"unsupported protocol. {protocol}", 400)
        number = int_or_none(port) if port else 0
        if number is None or not 0 <= number <= MAX_PORT:
            return _error(f"host and/or port param are invalid. address {port}: invalid port", 400)
        client = await self._client_of(exchange)
        try:
            address = await client.resolve(host)
        except Failed as error:
            return _error(f"host and/or port param are invalid. {error}", 400)
        responses, errors, response = list[str](), list[str](), ""
        for _ in range(tries):
            try:
                if kind == "http":
                    response = await client.get(f"http://{join_host_port(address, number)}/{request}")
                else:
                    response = await client.send_datagram(address, number, request, kind)
                responses.append(response)
            except Failed as error:
                response = ""
                errors.append(str(error))
        output = {"errors": errors} if errors else dict[str, list[str]]()
        # As upstream: what was received before counts only if the last attempt got something.
        return HttpAnswer(body=marshal({**output, **({"responses": responses} if response else {})}).encode())

    # --- guestbook

    async def _register(self, exchange: _Exchange) -> HttpAnswer:
        address = exchange.query.get("host", "")
        self._log(exchange.pod, exchange.container, f"GET /register?host={address}")
        guestbook = self._run_of(exchange)
        answer = HttpAnswer(body=marshal({"data": _sorted(guestbook.store)}).encode())
        if address not in guestbook.replicas and len(guestbook.replicas) < _MAX_REPLICAS:
            guestbook.replicas.append(address)
        self._log(exchange.pod, exchange.container, f"Node '{address}' registered.")
        return answer

    async def _get(self, exchange: _Exchange) -> HttpAnswer:
        key = exchange.query.get("key", "")
        self._log(exchange.pod, exchange.container, f"GET /get?key={key}")
        store = self._run_of(exchange).store
        data: Any = store.get(key, "") if key else _sorted(store)
        return HttpAnswer(body=marshal({"data": data}).encode())

    async def _set(self, exchange: _Exchange) -> HttpAnswer:
        key, value = exchange.query.get("key", ""), exchange.query.get("value", "")
        self._log(exchange.pod, exchange.container, f"GET /set?key={key}&value={value}")
        if not key:
            return _error("cannot set with empty key.", 400)
        guestbook = self._run_of(exchange)
        if key not in guestbook.store and len(guestbook.store) >= _MAX_KEYS:
            return _not_simulated(f"a guestbook with more than {_MAX_KEYS} keys")
        guestbook.store[key] = value
        client = await self._client_of(exchange)
        for replica in tuple(guestbook.replicas):
            try:
                address = join_host_port(replica, _backend_port(exchange))
                await client.get(f"http://{address}/set?key={key}&value={value}")
            except Failed as error:
                return _error(f"encountered error while propagating to replica '{replica}': {error}", 417)
        return HttpAnswer(body=marshal({"message": "Updated"}).encode())

    async def _proxy(self, exchange: _Exchange) -> HttpAnswer:
        command = exchange.query.get("cmd", "").lower()
        key, value = exchange.query.get("key", ""), exchange.query.get("value", "")
        self._log(exchange.pod, exchange.container, f"GET /guestbook?cmd={command}&key={key}&value={value}")
        if command not in ("get", "set"):
            return _error(f"unsupported cmd: '{command}'", 400)
        if command == "set" and not key:
            return _error("cannot set with empty key.", 400)
        host = "agnhost-replica" if command == "get" else "agnhost-primary"
        client = await self._client_of(exchange)
        try:
            await client.resolve(host)
        except Failed as error:
            return _error(f"host and/or port param are invalid. {error}", 400)
        try:
            url = f"http://{host}:{_backend_port(exchange)}/{command}?key={key}&value={value}"
            return HttpAnswer(body=(await client.get(url)).encode())
        except Failed as error:
            return _error(f"encountered error: {error}", 417)

    def _run_of(self, exchange: _Exchange) -> _ServerRun:
        uid, name, restarts = exchange.request.run
        return self._records.ensure(uid, _ServerRuns).setdefault((name, restarts), _ServerRun())

    # --- nettest, which here is contacted by others, and contacts nobody

    async def _write_contact(self, exchange: _Exchange) -> HttpAnswer:
        contacts = self._run_of(exchange)
        try:
            source = msgspec.json.decode(exchange.request.body, type=_Contact).source
        except msgspec.DecodeError as error:
            contacts.errors.append(str(error))
            source = ""
        if source and (source in contacts.received or len(contacts.received) < _MAX_KEYS):
            contacts.received[source] = contacts.received.get(source, 0) + 1
        else:
            contacts.errors.append(f"{hostname_of(exchange.pod)}: Got request with no source")
            del contacts.errors[:-_MAX_ERRORS]
        return HttpAnswer(body=f"{marshal({'Hostname': hostname_of(exchange.pod)})}\n".encode())

    async def _read_contacts(self, exchange: _Exchange) -> HttpAnswer:
        contacts = self._run_of(exchange)
        state = {
            "Hostname": hostname_of(exchange.pod),
            "Sent": None,
            "Received": dict(sorted(contacts.received.items())) or None,
            "Errors": contacts.errors or None,
            "Log": [f"mockube: {_CONTACTS} is not simulated"],
            "StillContactingPeers": True,
        }
        return HttpAnswer(body="".join(marshal_indent(state)).encode())

    async def _contact_status(self, _: _Exchange) -> HttpAnswer:
        return _not_simulated(_CONTACTS)

    # --- no-snat-test

    async def _check_no_snat(self, exchange: _Exchange) -> HttpAnswer:
        """Ask other pods under which address they see this one."""
        variables = await self._variables(exchange.pod, exchange.container)
        own, node = variables.get("POD_IP", ""), variables.get("NODE_IP", "")
        client = await self._client_of(exchange)
        problems = list[str]()
        for target in exchange.query.get("ips", "").split(","):
            try:
                seen = (await client.get(f"http://{target}/whoami")).rpartition(":")[0]
            except Failed as error:
                problems.append(str(error))
                continue
            if seen != own:
                problems.append(
                    f"Returned ip {quote(seen)} != my Pod ip {quote(own)} == my Node ip {quote(node)} - SNAT"
                    if seen == node
                    else f"Returned ip {quote(seen)} != my Pod ip {quote(own)} or my Node ip {quote(node)} - SNAT to something unexpected"
                )
        return HttpAnswer(status=500 if problems else 200, body=", ".join(problems).encode())

    # ---

    async def _client_of(self, exchange: _Exchange) -> GoClient:
        files = await self._files.file_system(exchange.pod, exchange.container)
        address = (exchange.pod.get("status") or {}).get("podIP") or ""
        return GoClient(self.access.network(exchange.pod), files, self._clock, address)

    async def _variables(self, pod: ReadOnlyTree, container: ReadOnlyTree) -> Mapping[str, str]:
        return environment_of(pod, container, await self._files.references_of(pod, container))

    def _log_path(self, exchange: _Exchange) -> None:
        self._log(exchange.pod, exchange.container, f"GET {exchange.request.path.partition('?')[0]}")

    def _log(self, pod: ReadOnlyTree, container: ReadOnlyTree, text: str) -> None:
        self.access.write_log(pod, container["name"], [(_STDERR, log_line(self._clock.now(), text))])


def _sorted(store: Mapping[str, str]) -> dict[str, str]:
    return dict(sorted(store.items()))


def _backend_port(exchange: _Exchange) -> int:
    words = [*(exchange.container.get("command") or ()), *(exchange.container.get("args") or ())]
    return int_or_none(option(words, "--backend-port") or "") or _GUESTBOOK_PORT


def _form_of(request: ReceivedRequest) -> Mapping[str, str]:
    """Return the first values of the parameters in the body of a form."""
    content_type = request.headers.get("content-type", "").partition(";")[0].strip()
    if content_type != "application/x-www-form-urlencoded":
        return {}
    pairs = parse_qsl(request.body.decode("utf-8", "replace"), keep_blank_values=True)
    return dict(reversed(pairs))


def _uploaded_file(request: ReceivedRequest) -> bytes | None:
    """Return the content of the part `file` of a form."""
    content_type = request.headers.get("content-type", "")
    if not content_type.startswith("multipart/form-data"):
        return None
    message = BytesParser().parsebytes(f"Content-Type: {content_type}\r\n\r\n".encode() + request.body)
    parts: list[Message] = message.get_payload() if message.is_multipart() else []  # type: ignore[assignment]
    for part in parts:
        if part.get_param("name", header="content-disposition") == "file" and part.get_filename():
            content = part.get_payload(decode=True)
            return content if isinstance(content, bytes) else b""
    return None


def _not_an_integer(code: str) -> bytes:
    return f"argument 'code' must be an integer or empty, got {quote(code)}\n".encode()


def _with_status(status: int, answer: HttpAnswer) -> HttpAnswer:
    """Return an answer with a status; Go's server panics at one that has not three digits, and closes the connection."""
    if not 100 <= status <= _MAX_STATUS:
        return HttpAnswer(status=0)
    return HttpAnswer(
        status=status, content_type=answer.content_type, location=answer.location, body=answer.body
    )


def _error(text: str, status: int) -> HttpAnswer:
    return HttpAnswer(status=status, body=f"{text}\n".encode())


def _not_simulated(name: str) -> HttpAnswer:
    return _error(f"mockube: {name} is not simulated", HTTPStatus.NOT_IMPLEMENTED)
