"""The servers that pods name in commands of their own, by program: on which ports each listens, by its arguments and variables. Pure."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import gotext
from mockube.apimachinery.gotext import int_or_none, marshal
from mockube.container_runtime.images.table import MAX_PORT, HttpRoute, PortBehavior

from .http_paths import sniffed_type


class AgnhostPort(PortBehavior, frozen=True, kw_only=True):
    """A port at which a server of agnhost answers the requests of clients by rules of its own; its routes answer probes."""

    subcommand: str
    override: str = ""
    """The path that it answers in place of each other one."""


Behaviors = Mapping[int, PortBehavior | None]
"""What a server does on each of its ports; None if nobody knows."""
Environment = Mapping[str, str]
Server = Callable[[Sequence[str], Environment, str], Behaviors | None]
"""Returns the ports for the arguments, the variables and the working folder; None if the program is no server with them."""

_BUSYBOX_MISSING: Final = "<HTML><HEAD><TITLE>404 Not Found</TITLE></HEAD>\n<BODY><H1>404 Not Found</H1>\nThe requested URL was not found\n</BODY></HTML>\n"
_NC_VALUES: Final = frozenset("eciIMmOopPqsTVwXx")
"""The options of nc with a value; -e and -c have the rest of the command in busybox' nc."""


def port_number(text: str) -> int | None:
    """Return the port in a number or an address such as :8080 or 0.0.0.0:8080; None if there is none."""
    number = int_or_none(text.rpartition(":")[2])
    return number if number is not None and 0 < number <= MAX_PORT else None


def option(arguments: Sequence[str], *names: str) -> str | None:
    """Return the value of an option, from `--name=value` or `--name value`, the last one; None if there is none."""
    value = None
    for index, argument in enumerate(arguments):
        name, separator, text = argument.partition("=")
        if name in names:
            value = text if separator else next(iter(arguments[index + 1 :]), "")
    return value


def _ports(behavior: PortBehavior | None, text: str | None, default: int) -> Behaviors | None:
    """Return the behavior at the port in a text, or at the default one without a text; None if the text has no port."""
    number = default if text is None else port_number(text)
    return None if number is None else {number: behavior}


def _nc(arguments: Sequence[str], _: Environment, __: str) -> Behaviors | None:
    """Nc and ncat: `nc -l -p 8080`, `nc -lk 8080`, `nc -lkp 8080 -e PROGRAM`."""
    listens, is_udp, text = False, False, ""
    words = list(arguments)
    while words:
        word = words.pop(0)
        if word in ("--listen", "--udp", "--keep-open"):
            listens, is_udp = listens or word == "--listen", is_udp or word == "--udp"
        elif word == "--" or (word.startswith("-") and word.strip("-") in ("e", "exec", "sh-exec")):
            break
        elif word.startswith("-") and not word.startswith("--"):
            letters = word[1:]
            listens, is_udp = listens or "l" in letters, is_udp or "u" in letters
            value_at = next((index for index, letter in enumerate(letters) if letter in _NC_VALUES), None)
            if value_at is not None:
                value = letters[value_at + 1 :] or (words.pop(0) if words else "")
                text = value if letters[value_at] == "p" else text
        elif not text or int_or_none(text) is None:
            text = word
    return _ports(None, text, 0) if listens and not is_udp else {}


def _busybox_httpd(arguments: Sequence[str], _: Environment, folder: str) -> Behaviors | None:
    if any(argument.startswith("-D") for argument in arguments):
        return None  # Apache's
    root = _short_value(arguments, "h") or folder
    return _ports(PortBehavior(root=root, missing=_BUSYBOX_MISSING), _short_value(arguments, "p"), 80)


def _short_value(arguments: Sequence[str], letter: str) -> str | None:
    """Return the value of a short option, which may be attached to it or follow other letters: -p8080, -fp 8080."""
    for index, argument in enumerate(arguments):
        letters, found, value = argument.partition(letter)
        if found and letters[:1] == "-" and (letters[1:] + "a").isalpha():
            return value or next(iter(arguments[index + 1 :]), "")
    return None


def _socat(arguments: Sequence[str], _: Environment, __: str) -> Behaviors | None:
    match = re.match(r"(?:tcp4?|tcp6|openssl|ssl)-l(?:isten)?:(\d+)", " ".join(arguments[-2:]), re.IGNORECASE)
    return _ports(None, match[1], 0) if match else {}


def _http_echo(arguments: Sequence[str], environment: Environment, _: str) -> Behaviors | None:
    text = option(arguments, "-text", "--text")
    text = environment.get("ECHO_TEXT") if text is None else text
    if not text:
        return None  # it ends: Missing -text option!
    routes = (
        HttpRoute(path="/health", exact=True, content_type="application/json", body='{"status":"ok"}\n'),
        HttpRoute(body=f"{text}\n"),
    )
    status = option(arguments, "-status-code", "--status-code")
    if status is not None and status.isdecimal() and 100 <= int(status) < 600:
        routes = (routes[0], HttpRoute(body=routes[1].body, status=int(status)))
    behavior = PortBehavior(routes=routes, only_routes=True)
    return _ports(behavior, option(arguments, "-listen", "--listen"), 5678)


# --- agnhost, by its subcommand


def _get(path: str, body: str = "", status: int = 200, since: float = 0.0, location: str = "") -> HttpRoute:
    return HttpRoute(path=path, exact=True, body=body, status=status, since=since, location=location)


def _http(*routes: HttpRoute) -> PortBehavior:
    return PortBehavior(routes=routes, only_routes=True)


_HOSTNAME: Final = _http(HttpRoute(body="$(hostname)"))
ACTIONS: Final = ("/dial", "/exit", "/shell", "/shutdown", "/upload")
"""The paths of netexec whose responses depend on what they do."""
_NETEXEC: Final = AgnhostPort(
    subcommand="netexec",
    only_routes=True,
    routes=(
        _get("/hostname", "$(hostname)"),
        _get("/hostName", "$(hostname)"),
        _get("/clientip", "$(client)"),
        _get("/healthz"),
        _get("/readyz", "ok"),
        HttpRoute(path="/echo", exact=True, status_parameter="code"),
        HttpRoute(path="/redirect", exact=True, status=302, status_parameter="code", location="$(location)"),
        *map(_get, ACTIONS),
        HttpRoute(body="NOW: $(time)"),
    ),
)
_LIVENESS: Final = _http(
    _get("/started", "$(elapsed)s"),
    _get("/healthz", "error: $(elapsed)", 500, since=10.0),
    _get("/healthz", "ok"),
    _get("/redirect", status=302, location="$(loc)"),
)
_GUESTBOOK: Final = AgnhostPort(
    subcommand="guestbook",
    only_routes=True,
    routes=tuple(
        HttpRoute(path=f"/{name}", exact=True, status=status)
        for name, status in (("register", 200), ("get", 200), ("set", 400), ("guestbook", 400))
    ),
)
_NETTEST: Final = AgnhostPort(
    subcommand="nettest",
    only_routes=True,
    routes=(_get("/read"), _get("/write"), _get("/status", status=501), _get("/quit")),
)
_NO_SNAT_TEST: Final = AgnhostPort(
    subcommand="no-snat-test",
    only_routes=True,
    routes=(_get("/whoami", "$(client)"), _get("/checknosnat", status=500)),
)
_SERVING: Final = "SERVING"


def _agnhost(arguments: Sequence[str], environment: Environment, _: str) -> Behaviors | None:
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    if name in _NO_SERVERS:
        return {}
    if name == "porter":
        return _porter(environment, is_json=_is_on(arguments, "--json-response"))
    if name == "grpc-health-checking":
        service = option(arguments, "--service") or ""
        grpc = PortBehavior(speaks="grpc", grpc_health={service: _SERVING})
        control = _http(_get("/make-serving", "$(elapsed)s"), _get("/make-not-serving", "$(elapsed)s"))
        number = port_number(option(arguments, "--port") or "5000")
        http_number = port_number(option(arguments, "--http-port") or "8080")
        return None if number is None or http_number is None else {number: grpc, http_number: control}
    if name not in _SERVERS:
        return None
    option_name, default, behavior = _SERVERS[name]
    if (
        name in ("netexec", "webhook", "mtlsserver")
        and option(arguments, "--tls-cert-file")
        and behavior is not None
    ):
        behavior = replace(behavior, tls=True)
    if name == "netexec" and behavior is not None and (path := option(arguments, "--http-override")):
        behavior = replace(behavior, override=path)
    if name == "netexec" and behavior is not None and option(arguments, "--udp-port") == "-1":
        routes = (_get("/healthz", status=412), _get("/readyz", status=412), *behavior.routes)
        behavior = replace(behavior, routes=routes)
    if name == "serve-hostname" and option(arguments, "--http") == "false":
        if not _is_on(arguments, "--tcp"):
            return {}
        behavior = None
    return _ports(behavior, option(arguments, option_name), default)


def _porter(environment: Environment, *, is_json: bool) -> Behaviors:
    ports: dict[int, PortBehavior | None] = {}
    for name, value in environment.items():
        match = re.fullmatch(r"SERVE_(TCP_|TLS_)?PORT_(\d+)", name)
        number = port_number(match[2]) if match else None
        if match and number is not None:
            route = HttpRoute(body=value, content_type=sniffed_type(value))
            if is_json:
                body = f'{{"Method":"$(method)","Body":{marshal(value)}}}'
                route = HttpRoute(body=body, content_type="application/json")
            ports[number] = PortBehavior(routes=(route,), only_routes=True, tls=match[1] == "TLS_")
    return ports


def _agnhost_datagrams(arguments: Sequence[str], environment: Environment) -> Mapping[str, Behaviors]:
    """Return the ports of UDP and SCTP of agnhost's servers."""
    name = next((argument for argument in arguments if not argument.startswith("-")), "")
    udp, sctp = dict[int, PortBehavior | None](), dict[int, PortBehavior | None]()
    if name == "netexec":
        for ports, text in (
            (udp, option(arguments, "--udp-port") or "8081"),
            (sctp, option(arguments, "--sctp-port")),
        ):
            if text and (number := port_number(text)) is not None:
                ports[number] = AgnhostPort(speaks=_DATAGRAMS, subcommand="netexec")
    elif name == "porter":
        for variable, value in environment.items():
            match = re.fullmatch(r"SERVE_(UDP|SCTP)_PORT_(\d+)", variable)
            if match and (number := port_number(match[2])) is not None:
                ports = udp if match[1] == "UDP" else sctp
                ports[number] = PortBehavior(speaks=_DATAGRAMS, routes=(HttpRoute(body=value),))
    elif name == "serve-hostname" and _is_on(arguments, "--udp"):
        number = port_number(option(arguments, "--port") or "9376")
        if number is not None:
            udp[number] = PortBehavior(speaks=_DATAGRAMS, routes=_HOSTNAME.routes)
    return {"UDP": udp, "SCTP": sctp}


def _is_on(arguments: Sequence[str], name: str) -> bool:
    """Return whether an option is on that needs no value."""
    return any(
        gotext.BOOLEANS.get(value, False) if separator else True
        for argument in arguments
        for key, separator, value in (argument.partition("="),)
        if key == name
    )


_DATAGRAMS: Final = "datagrams"


_NO_SERVERS: Final = frozenset(
    [
        "connect",
        "dns-server-list",
        "dns-suffix",
        "entrypoint-tester",
        "etc-hosts",
        "help",
        "inclusterclient",
        "logs-generator",
        "mounttest",
        "mtlsclient",
        "nonewprivs",
        "pause",
    ]
)
_SERVERS: Final[Mapping[str, tuple[str, int, PortBehavior | None]]] = {
    "guestbook": ("--http-port", 80, _GUESTBOOK),
    "liveness": ("--port", 8080, _LIVENESS),
    "netexec": ("--http-port", 8080, _NETEXEC),
    "nettest": ("--port", 8080, _NETTEST),
    "no-snat-test": ("--port", 8080, _NO_SNAT_TEST),
    "serve-hostname": ("--port", 9376, _HOSTNAME),
    "test-webserver": ("--port", 80, PortBehavior(root="/", lists_folders=True, serves_image=True)),
}
"""The option for the port of each subcommand with one server, its default, and what it answers."""

SERVERS: Final[Mapping[str, Server]] = {
    **dict.fromkeys(("nc", "ncat", "netcat"), _nc),
    **dict.fromkeys(("agnhost", "agnhost-2"), _agnhost),
    "httpd": _busybox_httpd,
    "http-echo": _http_echo,
    "socat": _socat,
}

DATAGRAM_SERVERS: Final[Mapping[str, Callable[[Sequence[str], Environment], Mapping[str, Behaviors]]]] = (
    dict.fromkeys(("agnhost", "agnhost-2"), _agnhost_datagrams)
)
"""The servers whose ports of UDP and SCTP are known."""
