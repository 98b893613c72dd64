"""The programs that look names up: nslookup, getent, host and dig."""

from collections.abc import Generator, Sequence
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.hosts import is_address
from mockube.container_runtime.simulated.network.calls import Lookup, Reply
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Output,
    Process,
    Run,
    Sleep,
    UnknownProgram,
    write_text,
)
from mockube.network.dns import reverse_name

from . import network

_RECORD_TYPES: Final = frozenset({"A", "AAAA", "CNAME", "PTR", "SRV", "TXT"})
_SECTIONS: Final = ("comments", "question", "answer", "stats")
"""The parts of a report of dig."""
_NO_SERVER: Final = ";; connection timed out; no servers could be reached\n"
_NOT_FOUND: Final = 2


def _query(
    process: Process,
    server: str,
    name: str,
    record_type: str,
    seconds: float = network.QUERY_SECONDS * network.ATTEMPTS,
    protocol: str = "UDP",
) -> Generator[Effect, bytes | None, Reply | None]:
    """Query a server; return None after the time of a query that nobody answers."""
    lookup = Lookup(server=server, name=name, record_type=record_type, protocol=protocol)
    reply = yield from network.call(process, lookup)
    if reply.outcome == "outside":
        raise UnknownProgram(f"{process.name} of {name}, which is outside of the cluster,")
    if not reply.is_open:
        yield Sleep(seconds)
        return None
    return reply


def nslookup(process: Process) -> Run:
    """Query each name of the search list until one exists, as busybox does."""
    seconds, words = _timeout_of(process)
    record_type, arguments = _record_type_of(process, words, {"-type=": True, "-query=": True, "-q=": True})
    if not 1 <= len(arguments) <= 2:
        raise UnknownProgram(" ".join(process.argv))
    name = arguments[0]
    settings = network.resolver_settings(process)
    server = settings.server
    if len(arguments) == 2:
        server = next(iter((yield from network.resolve(process, arguments[1])).addresses), "")
    queries = [reverse_name(name)] if is_address(name) else settings.queries(name)
    record_types = [record_type] if record_type else ["PTR"] if is_address(name) else ["A", "AAAA"]
    failed = list[str]()
    for query in queries:
        replies = list[Reply]()
        for query_type in record_types:
            reply = yield from _query(process, server, query, query_type, seconds)
            if reply is None:
                yield write_text(_NO_SERVER)
                return 1
            replies.append(reply)
        if any(reply.exists for reply in replies):
            yield write_text(f"Server:\t\t{server}\nAddress:\t{server}:53\n\n")
            yield write_text("".join(_nslookup_lines(reply) for reply in replies if reply.records) + "\n")
            return 0
        code = next((reply.code for reply in replies if reply.code), "NXDOMAIN")
        failed.append(f"** server can't find {query}: {code}\n\n")
    lines = "".join(failed)
    yield write_text(f"Server:\t\t{server}\nAddress:\t{server}:53\n\n{lines}")
    return 1


def _nslookup_lines(reply: Reply) -> str:
    formats = {
        "A": "Name:\t{0}\nAddress: {1}\n",
        "AAAA": "Name:\t{0}\nAddress: {1}\n",
        "CNAME": "{0}\tcanonical name = {1}\n",
        "PTR": "{0}\tname = {1}\n",
        "SRV": "{0}\tservice = {1}\n",
        "TXT": '{0}\ttext = "{1}"\n',
    }
    return "".join(
        formats[record_type].format(name, value.rstrip(".") if record_type in ("CNAME", "PTR") else value)
        for name, record_type, value in reply.records
    )


def _timeout_of(process: Process) -> tuple[float, list[str]]:
    """Return the seconds after which nslookup gives up, and the arguments without the options of time and attempts."""
    seconds, words = float(network.QUERY_SECONDS * network.ATTEMPTS), list[str]()
    for argument in process.arguments:
        option, equals, value = argument.partition("=")
        if not equals or option not in ("-timeout", "-retry"):
            words.append(argument)
        elif not value.isascii() or not value.isdecimal() or not int(value):
            raise UnknownProgram(f"{process.name} {argument}")
        elif option == "-timeout":
            seconds = float(value)
    return seconds, words


def _record_type_of(
    process: Process, arguments: Sequence[str], prefixes: dict[str, bool]
) -> tuple[str, list[str]]:
    """Return the type of records in an option, and the other arguments; raise `UnknownProgram` for other options."""
    record_type, rest = "", list[str]()
    for argument in arguments:
        prefix = next((prefix for prefix in prefixes if argument.startswith(prefix)), None)
        if prefix is not None:
            record_type = argument.removeprefix(prefix).upper()
        elif argument.startswith("-"):
            raise UnknownProgram(f"{process.name} {argument}")
        else:
            rest.append(argument)
    if record_type and record_type not in _RECORD_TYPES:
        raise UnknownProgram(f"{process.name} of type {record_type}")
    return record_type, rest


def getent(process: Process) -> Run:
    match list(process.arguments):
        case ["hosts" | "ahosts" | "ahostsv4" as database, *names] if names:
            pass
        case _:
            raise UnknownProgram(" ".join(process.argv))
    code = 0
    for name in names:
        if is_address(name):
            local = next((aliases for address, aliases in network.hosts(process) if address == name), None)
            if local is None:
                reply = yield from _query(
                    process, network.resolver_settings(process).server, reverse_name(name), "PTR"
                )
                local = [
                    value.rstrip(".")
                    for _, record_type, value in (reply.records if reply else ())
                    if record_type == "PTR"
                ]
            addresses: Sequence[str] = (name,) if local else ()
            owner = " ".join(local)
        else:
            resolution = yield from network.resolve(process, name)
            addresses, owner = resolution.addresses, resolution.name
            if database == "ahostsv4":
                addresses = [address for address in addresses if ":" not in address]
        if not addresses:
            code = _NOT_FOUND
        for address in addresses:
            if database == "hosts":
                yield write_text(f"{address:<15} {owner}\n")
            else:
                socket_types = ("STREAM", "DGRAM", "RAW")
                yield write_text(
                    "".join(
                        f"{address:<15} {socket_type:<6} {owner if socket_type == 'STREAM' else ''}".rstrip()
                        + "\n"
                        for socket_type in socket_types
                    )
                )
    return code


def host(process: Process) -> Run:
    arguments = list(process.arguments)
    record_type = ""
    if arguments[:1] == ["-t"] and len(arguments) > 1:
        record_type, arguments = arguments[1].upper(), arguments[2:]
    if (
        len(arguments) != 1
        or arguments[0].startswith("-")
        or (record_type and record_type not in _RECORD_TYPES)
    ):
        raise UnknownProgram(" ".join(process.argv))
    name = arguments[0]
    settings = network.resolver_settings(process)
    queries, failure = [reverse_name(name)] if is_address(name) else settings.queries(name), ""
    for query in queries:
        reply = yield from _query(
            process, settings.server, query, record_type or ("PTR" if is_address(name) else "A")
        )
        if reply is None:
            yield write_text(_NO_SERVER)
            return 1
        if reply.exists:
            yield write_text(
                "".join(_host_line(*record) for record in reply.records)
                or f"{query} has no {record_type or 'A'} record\n"
            )
            return 0
        failure = failure or reply.code
    code = "2(SERVFAIL)" if failure == "SERVFAIL" else "5(REFUSED)" if failure else "3(NXDOMAIN)"
    yield write_text(f"Host {name} not found: {code}\n")
    return 1


def _host_line(name: str, record_type: str, value: str) -> str:
    texts = {
        "A": "has address",
        "AAAA": "has IPv6 address",
        "CNAME": "is an alias for",
        "PTR": "domain name pointer",
        "SRV": "has SRV record",
        "TXT": "descriptive text",
    }
    return f"{name} {texts[record_type]} {value}\n"


class _DigOptions(Struct, kw_only=True):
    """What the arguments of dig say."""

    name: str = ""
    record_type: str = "A"
    server: str = ""
    is_short: bool = False
    searches: bool = False
    protocol: str = "UDP"
    seconds: float = float(network.QUERY_SECONDS)
    tries: int = network.ATTEMPTS
    sections: set[str] = field(default_factory=lambda: set(_SECTIONS))
    """The parts of the report."""


def _dig_options(process: Process) -> _DigOptions:  # noqa: C901 - a list of options
    options, arguments = _DigOptions(), list(process.arguments)
    while arguments:
        argument = arguments.pop(0)
        if argument.startswith("@"):
            options.server = argument[1:]
        elif argument.startswith("+"):
            if not _set_flag(options, argument[1:]):
                raise UnknownProgram(f"dig {argument}")
        elif argument == "-q" and arguments:
            options.name = arguments.pop(0)
        elif argument == "-t" and arguments:
            options.record_type = arguments.pop(0).upper()
        elif argument == "-x" and arguments and is_address(arguments[0]):
            options.name, options.record_type = reverse_name(arguments.pop(0)), "PTR"
        elif argument.upper() in _RECORD_TYPES:
            options.record_type = argument.upper()
        elif argument.startswith("-") or options.name:
            raise UnknownProgram(f"dig {argument}")
        else:
            options.name = argument
    if options.record_type not in _RECORD_TYPES:
        raise UnknownProgram(f"dig of type {options.record_type}")
    return options


def _set_flag(options: _DigOptions, flag: str) -> bool:
    """Set what a flag such as +noall says; return whether it is known."""
    word, _, value = flag.partition("=")
    is_on, word = not word.startswith("no"), word.removeprefix("no")
    match word:
        case "short":
            options.is_short = is_on
        case "search" | "defname":
            options.searches = is_on
        case "tcp" | "vc":
            options.protocol = "TCP" if is_on else "UDP"
        case "all":
            options.sections = set(_SECTIONS) if is_on else set()
        case "time" | "timeout" | "tries" | "retry" if value.isdecimal():
            if word in ("time", "timeout"):
                options.seconds = float(max(int(value), 1))
            else:
                options.tries = max(int(value) + (word == "retry"), 1)
        case "cmd" | "authority" | "additional" | "recurse" | "edns" | "dnssec" | "cookie" | "ignore":
            pass  # Nothing of it is in a report here.
        case _ if word in _SECTIONS:
            (options.sections.add if is_on else options.sections.discard)(word)
        case _:
            return False
    return True


def dig(process: Process) -> Run:
    """Query a name without a search list, unless +search is set. The report has the answers only, or all of `+short`."""
    options = _dig_options(process)
    name, settings = options.name, network.resolver_settings(process)
    server = options.server or settings.server
    if not is_address(server):
        server = next(iter((yield from network.resolve(process, server)).addresses), "")
        if not server:
            text = f"dig: couldn't get address for '{options.server}': not found\n"
            yield Output(2, text.encode())
            return 10
    reply: Reply | None = None
    for query in settings.queries(name) if options.searches else [name.rstrip(".")]:
        seconds = options.seconds * options.tries
        reply = yield from _query(process, server, query, options.record_type, seconds, options.protocol)
        if reply is None:
            yield Output(1, f";; communications error to {server}#53: timed out\n{_NO_SERVER}".encode())
            return 9
        if reply.exists:
            break
    records = reply.records if reply is not None else ()
    if options.is_short:
        yield write_text("".join(f"{value}\n" for _, _, value in records))
        return 0
    status = "NOERROR" if reply is not None and reply.exists else (reply and reply.code) or "NXDOMAIN"
    answers = "".join(f"{owner}.\t30\tIN\t{record_type}\t{value}\n" for owner, record_type, value in records)
    if options.sections == {"answer"}:
        yield write_text(answers)
        return 0
    question = f"{name.rstrip('.')}.\t\tIN\t{options.record_type}"
    report = {
        "comments": f";; ->>HEADER<<- opcode: QUERY, status: {status}, id: 1\n\n",
        "question": f";; QUESTION SECTION:\n;{question}\n",
        "answer": f"\n;; ANSWER SECTION:\n{answers}" if answers else "",
        "stats": f"\n;; SERVER: {server}#53({server}) ({options.protocol})\n",
    }
    yield write_text("".join(text for part, text in report.items() if part in options.sections))
    return 0
