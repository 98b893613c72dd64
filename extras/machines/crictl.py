"""crictl: the containers, pods and images that the kubelet of a node has."""

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson

from mockube.container_runtime.simulated.node.services import ServiceError, ask
from mockube.container_runtime.simulated.shell.network_programs.kubectl.output import to_yaml
from mockube.container_runtime.simulated.shell.options import (
    MissingValue,
    OptionTable,
    ProgramOptions,
    UnknownOption,
    parse_command_line,
)
from mockube.container_runtime.simulated.shell.process import (
    Effect,
    Input,
    Output,
    Process,
    ProgramUsageError,
    Run,
    Sleep,
    write_text,
)
from mockube.container_runtime.simulated.shell.programs.durations import seconds_of

from .crictl_output import (
    container_rows,
    image_rows,
    matches,
    pod_rows,
    stats_rows,
    usage,
)
from .tables import table

Work = Generator[Effect, bytes | None, Any]
_FOLLOW_SECONDS: Final = 0.5
_VERSION: Final = "v1.37.0"
_USAGE_CODE: Final = 3
_INPUT: Final = 4096
_OUTPUT: Final = {"-o": "output=", "--output": "output="}
_LISTING: Final[OptionTable] = {
    **_OUTPUT, "-q": "quiet", "--quiet": "quiet", "--no-trunc": "no-trunc", "-v": "verbose", "--verbose": "verbose", "--id": "id=",
    "--label": "label=", "--name": "name=", "-s": "state=", "--state": "state=", "-l": "latest", "--latest": "latest", "-n": "last=",
    "--last": "last=", "--namespace": "namespace=",
}  # fmt: skip
_GLOBAL: Final[OptionTable] = {
    "-r": "endpoint=", "--runtime-endpoint": "endpoint=", "-i": "image-endpoint=", "--image-endpoint": "image-endpoint=", "-c": "config=",
    "--config": "config=", "-t": "timeout=", "--timeout": "timeout=", "-D": "debug", "--debug": "debug", "-h": "help", "--help": "help",
    "-v": "version", "--version": "version",
}  # fmt: skip
_SOCKET: Final = re.compile(r"(?:unix://)?(/(?:var/)?run/containerd/containerd\.sock)")


class CrictlError(Exception):
    """crictl ends with a message."""


def crictl(process: Process) -> Run:
    try:
        options = parse_command_line(process.arguments, _GLOBAL, stops=True)
        if "version" in options:
            yield write_text(f"crictl version {_VERSION}\n")
            return 0
        name, *arguments = options.arguments or ["help"]
        if "help" in options or name in ("help", "h"):
            yield write_text(usage())
            return 0
        entry = _COMMANDS.get(name)
        if entry is None:
            yield write_text(f"No help topic for '{name}'\n")
            return _USAGE_CODE
        run, table_of_options, stops = entry
        parsed = parse_command_line(
            arguments, {**table_of_options, "-h": "help", "--help": "help"}, stops=stops
        )
        if "help" in parsed:
            yield write_text(
                f"NAME:\n   crictl {name}\n\nOPTIONS:\n   {'  '.join(sorted(table_of_options))}\n"
            )
            return 0
        yield from _require_runtime(process, options)
        return (yield from run(process, parsed)) or 0
    except MissingValue as error:
        message = f"flag needs an argument: {_flag(error)}"
    except UnknownOption as error:
        message = f"flag provided but not defined: {_flag(error)}"
    except (CrictlError, ServiceError) as error:
        message = str(error)
    yield _fatal(process, message)
    return 1


def _flag(error: Exception) -> str:
    return f"-{str(error).lstrip('-')}"


def _fatal(process: Process, message: str) -> Output:
    if process.host.has_terminal:
        return process.report(f"FATA[0000] {message}")
    time = process.host.now_running(is_shown=True)
    quoted = message.replace("\\", "\\\\").replace('"', '\\"')
    return process.report(f'time="{time:%Y-%m-%dT%H:%M:%SZ}" level=fatal msg="{quoted}"')


def _require_runtime(process: Process, options: ProgramOptions) -> Work:
    """Raise `CrictlError` if nothing answers at the endpoint."""
    endpoint = options.get("endpoint", "unix:///run/containerd/containerd.sock")
    state = (yield from ask(process, "units"))["containerd"]["state"]
    if not _SOCKET.fullmatch(endpoint) or state != "running":
        path = endpoint.removeprefix("unix://")
        raise CrictlError(
            f'validate service connection: validate CRI v1 runtime API for endpoint "{endpoint}": rpc error: code = Unavailable '
            f'desc = connection error: desc = "transport: Error while dialing: dial unix {path}: connect: no such file or directory"'
        )


def _print(options: ProgramOptions, tree: Any, rows: Sequence[Sequence[str]]) -> Run:
    """Print objects as JSON or YAML, or else as a table."""
    output = options.get("output", "table")
    if output == "json":
        yield write_text(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode() + "\n")
    elif output == "yaml":
        yield write_text(to_yaml(tree))
    elif output == "table":
        yield write_text(table(rows))
    else:
        raise CrictlError(f'unsupported output format "{output}": it must be one of json, yaml and table')
    return 0


def _now(process: Process) -> datetime:
    return process.host.now_running(is_shown=True).astimezone(UTC)


def _selected(items: Sequence[Mapping[str, Any]], options: ProgramOptions) -> list[Mapping[str, Any]]:
    """Return the containers or pods that the options select, the newest first."""
    found = sorted(
        (each for each in items if matches(each, options)), key=lambda each: -int(each["createdAt"])
    )
    if "latest" in options:
        return found[:1]
    count = options.get("last")
    if count and not count.isdecimal():
        raise CrictlError(f'invalid value "{count}" for flag -last: parse error')
    return found[: int(count[:9])] if count else found


def _ps(process: Process, options: ProgramOptions) -> Work:
    containers = (yield from ask(process, "cri.containers"))["containers"]
    shows_all = bool({"all", "state", "latest", "last"} & options.values.keys())
    found = [
        each for each in _selected(containers, options) if shows_all or each["state"] == "CONTAINER_RUNNING"
    ]
    if "quiet" in options:
        yield write_text("".join(f"{each['id']}\n" for each in found))
        return 0
    rows = container_rows(found, _now(process), is_full="no-trunc" in options)
    return (yield from _print(options, {"containers": found}, rows))


def _pods(process: Process, options: ProgramOptions) -> Work:
    sandboxes = (yield from ask(process, "cri.containers"))["sandboxes"]
    found = _selected(sandboxes, options)
    if "quiet" in options:
        yield write_text("".join(f"{each['id']}\n" for each in found))
        return 0
    rows = pod_rows(found, _now(process), is_full="no-trunc" in options)
    return (yield from _print(options, {"items": found}, rows))


def _images(process: Process, options: ProgramOptions) -> Work:
    images = yield from ask(process, "cri.images")
    name = options.arguments[0] if options.arguments else ""
    found = [each for each in images if not name or any(name in tag for tag in each["repoTags"])]
    if "quiet" in options:
        yield write_text("".join(f"{each['id']}\n" for each in found))
        return 0
    rows = image_rows(found, is_full="no-trunc" in options, shows_digests="digests" in options)
    return (yield from _print(options, {"images": found}, rows))


def _find(
    items: Sequence[Mapping[str, Any]], identifier: str, action: str, kind: str = "container"
) -> Mapping[str, Any]:
    """Return the container or pod with an id, of which the beginning is enough; raise `CrictlError`."""
    found = [each for each in items if each["id"].startswith(identifier)] if identifier else []
    if len(found) == 1:
        return found[0]
    problem = (
        f'rpc error: code = NotFound desc = an error occurred when try to find {kind} "{identifier}": '
        + ("ambiguous" if found else "not found")
    )
    raise CrictlError(f"{action}: {problem}")


def _one_id(options: ProgramOptions) -> str:
    if not options.arguments:
        raise CrictlError("ID cannot be empty")
    return options.arguments[0]


def _ids(options: ProgramOptions) -> Sequence[str]:
    _one_id(options)
    return options.arguments


def _inspect(process: Process, options: ProgramOptions) -> Work:
    return (yield from _inspect_all(process, options, "containers", "container"))


def _inspect_pod(process: Process, options: ProgramOptions) -> Work:
    return (yield from _inspect_all(process, options, "sandboxes", "sandbox"))


def _inspect_all(process: Process, options: ProgramOptions, kind: str, title: str) -> Work:
    listed = (yield from ask(process, "cri.containers"))[kind]
    for identifier in _ids(options):
        name = "container" if title == "container" else "pod sandbox"
        found = _find(listed, identifier, f'getting the status of the {name} "{identifier}"', title)
        tree = yield from ask(process, "cri.inspect", {"id": found["id"]})
        if options.get("output", "json") in ("json", "table"):
            yield write_text(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode() + "\n")
        else:
            yield from _print(options, tree, ())
    return 0


def _inspect_image(process: Process, options: ProgramOptions) -> Work:
    images = yield from ask(process, "cri.images")
    for name in _ids(options):
        found = [each for each in images if _is_image(each, name)]
        if not found:
            raise CrictlError(f'no such image "{name}" present')
        yield write_text(
            orjson.dumps({"status": found[0], "info": {}}, option=orjson.OPT_INDENT_2).decode() + "\n"
        )
    return 0


def _is_image(image: Mapping[str, Any], name: str) -> bool:
    is_id = image["id"].removeprefix("sha256:").startswith(name.removeprefix("sha256:"))
    tags = {*image["repoTags"], *image["repoDigests"]}
    short = {tag.removeprefix("docker.io/library/").removeprefix("docker.io/") for tag in tags}
    return is_id or name in tags or name in short or f"{name}:latest" in short


def _logs(process: Process, options: ProgramOptions) -> Work:
    identifier = _one_id(options)
    for name in ("tail", "limit-bytes"):
        if name in options and not re.fullmatch(r"-?[0-9]{1,18}", options.get(name)):
            raise CrictlError(f'invalid value "{options.get(name)}" for flag -{name}: parse error')
    listed = (yield from ask(process, "cri.containers"))["containers"]
    found = _find(listed, identifier, "getting container status")
    since = _since(process, options.get("since"))
    request: dict[str, Any] = {
        "id": found["id"], "tail": int(options.get("tail", "-1")), "since": since, "previous": "previous" in options,
        "timestamps": "timestamps" in options,
        "follow": "follow" in options,
    }  # fmt: skip
    reader, remaining = 0, int(options.get("limit-bytes", "-1"))
    while True:
        answer = yield from ask(process, "cri.logs", {**request, "reader": reader})
        for stream, text in answer["lines"]:
            data = text.encode("utf-8", "surrogateescape")
            data = data if remaining < 0 else data[:remaining]
            remaining -= len(data) if remaining > 0 else 0
            yield Output(stream, data)
        reader = answer["reader"]
        if not reader or not remaining:
            return 0
        if answer["waits"]:
            yield Sleep(_FOLLOW_SECONDS)


def _since(process: Process, text: str) -> str:
    if not text or "T" in text:
        return text
    seconds = seconds_of([text])
    if seconds is None:
        raise CrictlError(
            f'invalid value for --since: "{text}": it must be a duration such as 5m, or a time of RFC 3339'
        )
    return datetime.fromtimestamp(_now(process).timestamp() - seconds, UTC).isoformat()


def _exec(process: Process, options: ProgramOptions) -> Work:
    if len(options.arguments) < 2:
        raise CrictlError("ID cannot be empty" if not options.arguments else "COMMAND cannot be empty")
    identifier, *argv = options.arguments
    listed = (yield from ask(process, "cri.containers"))["containers"]
    found = _find(listed, identifier, "execing command in container")
    terminal = "tty" in options and process.host.has_terminal
    request = {"id": found["id"], "command": argv, "stdin": "interactive" in options, "tty": terminal}
    session = yield from ask(process, "cri.exec", request)
    while True:
        answer = yield from ask(process, "cri.exec.next", {"session": session})
        for stream, text in answer["output"]:
            yield Output(stream, text.encode("utf-8", "surrogateescape"))
        if answer["needs_input"]:
            data = yield Input(_INPUT)
            text = (data or b"").decode("utf-8", "surrogateescape")
            yield from ask(process, "cri.exec.input", {"session": session, "data": text})
        if "code" in answer:
            if answer["code"] and not answer.get("message"):
                yield _fatal(
                    process,
                    f"execing command in container: command terminated with exit code {answer['code']}",
                )
                return 1
            if answer.get("message"):
                raise CrictlError(f"execing command in container: {answer['message']}")
            return 0


def _on_containers(
    service: str, words: str, *, printed: str = "{}"
) -> Callable[[Process, ProgramOptions], Work]:
    """Return a command that does something with each of its containers."""

    def run(process: Process, options: ProgramOptions) -> Work:
        listed = (yield from ask(process, "cri.containers"))["containers"]
        if "all" in options:
            options.arguments = [each["id"] for each in listed]
        for identifier in _ids(options):
            found = _find(listed, identifier, f'{words} the container "{identifier}"')
            yield from ask(process, service, {"id": found["id"], "force": "force" in options})
            yield write_text(printed.format(identifier) + "\n")
        return 0

    return run


def _on_pods(service: str, words: str, printed: str) -> Callable[[Process, ProgramOptions], Work]:
    def run(process: Process, options: ProgramOptions) -> Work:
        listed = (yield from ask(process, "cri.containers"))["sandboxes"]
        if "all" in options:
            options.arguments = [each["id"] for each in listed]
        for identifier in _ids(options):
            found = _find(listed, identifier, f'{words} the pod sandbox "{identifier}"', "sandbox")
            yield from ask(process, service, {"id": found["id"], "force": "force" in options})
            yield write_text(printed.format(identifier) + "\n")
        return 0

    return run


def _pull(process: Process, options: ProgramOptions) -> Work:
    if not options.arguments:
        raise CrictlError("image name must be specified")
    has_credentials = "creds" in options or "auth" in options
    identifier = yield from ask(
        process, "cri.pull", {"image": options.arguments[0], "has_credentials": has_credentials}
    )
    yield write_text(f"Image is up to date for {identifier}\n")
    return 0


def _rmi(process: Process, options: ProgramOptions) -> Work:
    images = yield from ask(process, "cri.images")
    if options.has_any("a") or "all" in options or "prune" in options:
        names = [each["id"] for each in images if "prune" not in options or not each["inUse"]]
    else:
        names = [*_ids(options)]
    for name in names:
        found = [each for each in images if _is_image(each, name)]
        if not found:
            raise CrictlError(f'no such image "{name}"')
        yield from ask(process, "cri.rmi", {"names": [*found[0]["repoTags"], *found[0]["repoDigests"]]})
        yield write_text("".join(f"Deleted: {tag}\n" for tag in found[0]["repoTags"]))
    return 0


def _stats(process: Process, options: ProgramOptions) -> Work:
    stats = yield from ask(process, "cri.stats")
    found = [
        each
        for each in stats
        if not options.arguments or each["attributes"]["id"].startswith(options.arguments[0])
    ]
    found = [each for each in found if matches(each["attributes"], options)]
    return (yield from _print(options, {"stats": found}, stats_rows(found)))


def _version(process: Process, options: ProgramOptions) -> Work:
    tree = yield from ask(process, "cri.version")
    if options.get("output", "table") != "table":
        return (yield from _print(options, tree, ()))
    titles = (("Version", "version"), ("RuntimeName", "runtimeName"), ("RuntimeVersion", "runtimeVersion"))
    lines = [
        f"{title}:  {tree[key]}\n" for title, key in (*titles, ("RuntimeApiVersion", "runtimeApiVersion"))
    ]
    yield write_text("".join(lines))
    return 0


def _info(process: Process, options: ProgramOptions) -> Work:
    tree = yield from ask(process, "cri.info")
    if options.get("output", "json") == "yaml":
        return (yield from _print(options, tree, ()))
    yield write_text(orjson.dumps(tree, option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0


def _refuse(name: str) -> Callable[[Process, ProgramOptions], Work]:
    def run(_: Process, __: ProgramOptions) -> Work:
        raise ProgramUsageError(f"{name} is not simulated: create a pod with kubectl instead")
        yield

    return run


Command = tuple[Callable[[Process, ProgramOptions], Work], OptionTable, bool]
"""What runs a command, its options, and whether they end at the first other argument."""
_IDS_OPTIONS: Final = {
    "-a": "all",
    "--all": "all",
    "-f": "force",
    "--force": "force",
    "-t": "timeout=",
    "--timeout": "timeout=",
}
_BY_NAME: Final[Mapping[str, Command]] = {
    "ps": (_ps, {**_LISTING, "-a": "all", "--all": "all", "-p": "pod=", "--pod": "pod=", "--image": "image=", "-r": "resolve"}, False),
    "pods": (_pods, _LISTING, False),
    "images": (_images, {**_OUTPUT, "-q": "quiet", "--quiet": "quiet", "--no-trunc": "no-trunc", "-v": "verbose", "--digests": "digests", "--prune": "prune"}, False),
    "inspect": (_inspect, {**_OUTPUT, "-q": "quiet", "--quiet": "quiet"}, False),
    "inspectp": (_inspect_pod, {**_OUTPUT, "-q": "quiet", "--quiet": "quiet"}, False),
    "inspecti": (_inspect_image, _OUTPUT, False),
    "logs": (_logs, {"-f": "follow", "--follow": "follow", "--tail": "tail=", "-t": "timestamps", "--timestamps": "timestamps", "--since": "since=",
                     "-p": "previous", "--previous": "previous", "--limit-bytes": "limit-bytes="}, False),
    "exec": (_exec, {"-i": "interactive", "--interactive": "interactive", "-t": "tty", "--tty": "tty", "-s": "sync", "--sync": "sync",
                     "--timeout": "timeout="}, True),
    "stop": (_on_containers("cri.stop", "stopping"), _IDS_OPTIONS, False),
    "rm": (_on_containers("cri.rm", "removing"), _IDS_OPTIONS, False),
    "stopp": (_on_pods("cri.stopp", "stopping", "Stopped sandbox {}"), _IDS_OPTIONS, False),
    "rmp": (_on_pods("cri.rmp", "removing", "Removed sandbox {}"), _IDS_OPTIONS, False),
    "pull": (_pull, {"--creds": "creds=", "--auth": "auth="}, False),
    "rmi": (_rmi, {"-a": "all", "--all": "all", "-q": "prune", "--prune": "prune"}, False),
    "stats": (_stats, {**_OUTPUT, "-a": "all", "--all": "all", "--id": "id=", "-p": "pod=", "--pod": "pod="}, False),
    "info": (_info, _OUTPUT, False),
    "version": (_version, _OUTPUT, False),
    **{name: (_refuse(name), {}, True) for name in ("run", "runp", "create", "start", "attach", "port-forward", "checkpoint", "update", "statsp")},
}  # fmt: skip
_COMMANDS: Final = {**_BY_NAME, "image": _BY_NAME["images"], "img": _BY_NAME["images"], "p": _BY_NAME["pods"]}
