"""Servers with an option that they do not know, or a wrong value of one, in their command line or a file: what they say. Pure."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from posixpath import normpath
from typing import Final, NamedTuple

from mockube.apimachinery.images import InvalidImage
from mockube.apimachinery.regexp.matcher import contains_match
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.environment import References, environment_of
from mockube.container_runtime.config.variables import expand_references, may_be_defined
from mockube.container_runtime.config.volumes import mounted_volumes, volume_content
from mockube.container_runtime.control_plane_flags import FLAGS
from mockube.container_runtime.images.options import (
    NEWEST,
    ServerOptions,
    Version,
    image_version,
    options_of,
)
from mockube.container_runtime.images.references import parse_reference
from mockube.container_runtime.images.table import Image, ImageTable, Requirement, without_entrypoint
from mockube.container_runtime.simulated.shell.programs.installed_servers import kind_of, missing_server
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from .configuration_lines import file_uses, matching_paths
from .missing_files import may_be_absent
from .option_syntax import SYNTAXES, Use

_FILE_OPTION: Final = re.compile(
    r"(?:^|[-_.])(?:acl|auth|ca|cert|certs|certificate|conf|config|crl|defaults|hba|ident|include|key|kubeconfig|secret|template|token)"
    r"s?(?:[-_.]?(?:file|path|name))?$|(?:[Kk]ey|[Cc]onfig|[Cc]ert|CA)[Ff]ile$"
)
"""Matches the name of an option whose value, if it is a path, is a file that the server reads."""
_PLACEHOLDER: Final = re.compile(r"\$\((\w+)\)")
_NUMBER: Final = re.compile(r"\s*[-+]?[0-9]*")
_ENDING: Final = frozenset(("--help", "--version"))
"""With one of these, a server prints something and ends."""


class _Server(NamedTuple):
    options: ServerOptions
    argv: Sequence[str]
    version: Version | None
    """None if nobody knows it."""
    container: ReadOnlyTree | None = None
    """The container of which it is the command; None for a server that a program has called."""


def wrong_option(
    images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Requirement | None:
    """Return what the server of a container says of its first wrong option; None if all are right, as far as anybody knows."""
    argv, image = _server_argv(images, container), container.get("image") or ""
    options = options_of(_program(argv), image)
    if options is None:
        return None
    variables = environment_of(pod, container, references)
    server = _Server(options, expand_references(argv, variables), image_version(image), container)
    return _wrong_in(server, variables, _mounted_texts(pod, container, references))


def wrong_option_of_call(
    argv: Sequence[str], image: str, variables: Mapping[str, str], files: FileSystem
) -> Requirement | None:
    """Return what the server of an image says of its first wrong option that a program has called; None if all are right."""
    options = options_of(_program(argv), image)
    if options is None:
        return None
    server = _Server(options, argv, image_version(image))
    return _wrong_in(server, variables, _texts_of_files(server, files))


def _texts_of_files(server: _Server, files: FileSystem) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each configuration file that is known."""
    for place in _configured_paths(server):
        for path in matching_paths(files, place) if "*" in place else [place]:
            with suppress(FileError):
                if files.exists(path) and not files.entry(path).is_directory:
                    yield path, files.read(path).decode("utf-8", "replace")


def _wrong_in(
    server: _Server, variables: Mapping[str, str], texts: Iterable[tuple[str, str]]
) -> Requirement | None:
    return (
        _wrong_in_files(server, texts)
        or _wrong_in_variables(server, variables)
        or _wrong_in_arguments(server)
    )


def assumed_argument(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    """Return an argument of a container's server of which nobody knows whether the server starts with it: an option that nobody has
    listed for it, or the option of a file that may not exist; "" if there is none.
    """
    image = images.behavior_of(container)
    if image is None or kind_of(image) is not None:  # what reads its configuration reads its options, too
        return ""
    if image.is_guess:
        command, arguments = without_entrypoint(container, image)
        return _unlisted_word([*command[1:], *arguments], image)
    argv = _server_argv(images, container)
    if unread := unread_argument(image, argv):
        return unread
    if _program(argv) in FLAGS or not _ENDING.isdisjoint(argv):
        return ""
    options = options_of(_program(argv), container.get("image") or "")
    if options is None:
        return _unlisted_word(argv[1:], image)
    server = _Server(options, argv, image_version(container["image"]))
    return _assumed_use(server, partial(may_be_absent, image=image, pod=pod, container=container))


def unread_argument(image: Image, argv: Sequence[str]) -> str:
    """Return the first argument of a server whose distribution is missing, unless the image starts it with these ones; "" for any other."""
    is_default = image.process.replace(" ", "").endswith("".join(argv[1:]).replace(" ", ""))
    return f"the argument {argv[1]}" if not is_default and missing_server(image) else ""


def assumed_argument_of_call(argv: Sequence[str], image: str, files: FileSystem) -> str:
    """Return such an argument of a server that a program has called; "" if there is none."""
    options = options_of(_program(argv), image)
    if options is None or not _ENDING.isdisjoint(argv):
        return next(iter(argv[1:]), "")
    return _assumed_use(_Server(options, argv, image_version(image)), lambda path: not files.exists(path))


def _unlisted_word(words: Sequence[str], image: Image) -> str:
    """Return the first option of a server whose options nobody has listed; those that name its port are read."""
    read = {option for port in image.ports.values() for option in port.options}
    read.update(*(each.split() for each in image.subcommands), _ENDING)
    names = (word.partition("=")[0] for word in words if word.startswith("-") and word.strip("-"))
    name = next((name for name in names if name not in read), "")
    return name and f"the option {name}"


def _assumed_use(server: _Server, is_absent: Callable[[str], bool]) -> str:
    named = (_assumption(server, use, is_absent) for use in _argument_uses(server))
    return next(filter(None, named), "")


def _assumption(server: _Server, use: Use, is_absent: Callable[[str], bool]) -> str:
    if use.is_argument or use.is_letter or use.problem or "$" in use.name:
        return ""
    if not server.options.lists(use.name, server.version):
        return f"the option {use.name}" if server.options.has(use.name, server.version) else ""
    path = use.value or ""
    if not path.startswith("/") or not _FILE_OPTION.search(use.name) or path in server.options.configuration:
        return ""
    return f"the file {path} of the option {use.name}" if is_absent(path) else ""


def names_options(images: ImageTable, container: ReadOnlyTree) -> bool:
    """Return whether a container's server has options, or files with options, that are checked."""
    try:
        argv = _server_argv(images, container)
        options = options_of(_program(argv), container.get("image") or "")
    except InvalidImage:  # such a container is not created
        return False
    return options is not None and bool(
        len(argv) > 1
        or (options.configuration and container.get("volumeMounts"))
        or (options.variables and (container.get("env") or container.get("envFrom")))
    )


def _server_argv(images: ImageTable, container: ReadOnlyTree) -> Sequence[str]:
    """Return the command line of a container, with the server to which its entrypoint gives options; () if it has none."""
    image = images.behavior_of(container)
    if image is None or image.is_guess:
        return ()
    command, arguments = without_entrypoint(container, image)
    argv = (*command, *arguments)
    if command:
        return argv
    if argv and not argv[0].startswith("-"):
        return argv
    if argv and not image.takes_options:
        return ()
    reference = container.get("image") or ""
    server = next((each for each in image.servers if options_of(each, reference) is not None), "")
    name = parse_reference(reference).path.rpartition("/")[2]
    return (server or next(iter(image.servers), name), *argv)


def _mounted_texts(
    pod: ReadOnlyTree, container: ReadOnlyTree, references: References
) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file that ConfigMaps give to a container."""
    volumes = {volume["name"]: volume for volume in mounted_volumes(pod, container) if "configMap" in volume}
    for mount in container.get("volumeMounts") or ():
        if mount["name"] not in volumes or mount.get("subPathExpr"):
            continue
        content = volume_content(volumes[mount["name"]], pod, container, references) or {}
        folder, part = normpath(mount["mountPath"]), mount.get("subPath")
        for name, file in content.items():
            if part in (None, "", name):
                yield folder if part else f"{folder}/{name}", file.data.decode("utf-8", "replace")


def _wrong_in_files(server: _Server, texts: Iterable[tuple[str, str]]) -> Requirement | None:
    places = [*_configured_paths(server)]
    files = dict(texts) if places else {}
    for place in places:  # also the files that others include
        for path in (path for path in files if _is_at(path, place)):
            uses = [*file_uses(server.options, files[path])]
            wrong = _first_wrong(server, uses, path)
            if wrong is not None:
                return wrong
            included = (use.value for use in uses if use.value and use.name == server.options.include)
            places += [value for value in included if value not in places]
    return None


def _first_wrong(server: _Server, uses: Iterable[Use], path: str = "") -> Requirement | None:
    for use in uses:
        if problem := _problem(server, use, path):
            return _requirement(server, use, problem, path)
    return None


def _is_at(path: str, place: str) -> bool:
    """Return whether a file is the one at a place, or one of those in a folder, as in /etc/mysql/conf.d/*.cnf."""
    begin, star, end = place.partition("*")
    if not star:
        return path == place
    return path.startswith(begin) and path.endswith(end) and "/" not in path[len(begin) :]


def _configured_paths(server: _Server) -> Sequence[str]:
    """Return the paths of the configuration files that a server reads."""
    paths = []
    values = {use.name: use.value for use in _argument_uses(server)}
    for text in server.options.configuration:
        if text == "1":
            paths += [word for word in server.argv[1:2] if not word.startswith("-")]
        elif not text.startswith("--"):
            paths.append(text)
        elif path := values.get(text.removeprefix("--")):
            return [*paths, path]
    return paths


def _wrong_in_variables(server: _Server, variables: Mapping[str, str]) -> Requirement | None:
    prefix = server.options.variables
    names = [name for name in variables if prefix and name.startswith(prefix)]
    return _first_wrong(
        server,
        (
            Use(name.removeprefix(prefix).lower().replace("_", "."), variables[name].strip(), name)
            for name in names
        ),
    )


def _wrong_in_arguments(server: _Server) -> Requirement | None:
    return None if not _ENDING.isdisjoint(server.argv) else _first_wrong(server, _argument_uses(server))


def _argument_uses(server: _Server) -> Iterator[Use]:
    arguments = server.argv[1:]
    if arguments[:1] == [server.options.subcommand]:
        arguments = arguments[1:]
    return SYNTAXES[server.options.syntax](server.options, arguments)


def _requirement(server: _Server, use: Use, problem: str, path: str = "") -> Requirement:
    options = server.options
    values = {"problem": problem, "line": str(use.line), "text": use.text, "file": path}
    values |= {
        "command": " ".join([_program(server.argv), *server.argv[1:]]),
        "version": _version_text(server),
    }
    lines = (use.problem and options.syntax_logs) or (path and options.file_logs) or options.logs
    return Requirement(one_of=(), logs=_lines(lines, values), exit_code=options.exit_code)


def _program(argv: Sequence[str]) -> str:
    return argv[0].rpartition("/")[2] if argv else ""


def _problem(server: _Server, use: Use, path: str = "") -> str:
    """Return what a server says of an option; "" if it is right, or if its value is a variable that nobody knows."""
    options = server.options
    text = f"{use.name}={use.value}"
    if "$" in text and (path or server.container is None or may_be_defined(text, server.container)):
        return ""
    values = {"name": use.name, "value": use.value or "", "text": use.text}
    values |= {"file": path, "line": str(use.line), "level": "LOG" if path else "FATAL"}
    values |= {
        "variable": use.name.replace("-", "_"),
        "suffix": _NUMBER.sub("", use.value or "", count=1)[:1],
    }
    if use.problem:
        return _replace(use.problem, values)
    if use.is_argument or use.is_letter:
        is_known = use.is_letter and use.name in options.takes_value
        text = options.unexpected if use.is_argument else options.unknown_letter
        return "" if is_known else _replace(text, values)
    if not options.has(use.name, server.version):
        unknown = (path and options.file_unknown) or options.unknown
        return _replace((use.value is None and options.unknown_without_value) or unknown, values)
    return _problem_of_value(options, use, values)


def _problem_of_value(options: ServerOptions, use: Use, values: Mapping[str, str]) -> str:
    option = options.by_name.get(use.name)
    kind = None if option is None else options.kinds.get(option.kind)
    if option is None or (kind is None and not option.values):
        return ""
    if use.value is None:
        return _replace(options.lacks_value, values)
    if option.values and use.value.lower() not in option.values:
        return _replace(options.other_value, {**values, "values": ", ".join(option.values)})
    if kind is not None and not contains_match(f"^(?:{kind.values})$", use.value):
        return _replace(kind.says, values)
    return ""


def _version_text(server: _Server) -> str:
    if server.version in (None, NEWEST):
        return server.options.version
    numbers = [str(int(number)) if number < float("inf") else "0" for number in server.version or ()]
    return ".".join([*numbers, "0", "0"][:3])


def _lines(lines: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(part for line in lines for part in _replace(line, values).split("\n"))


def _replace(text: str, values: Mapping[str, str]) -> str:
    return _PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), text)
