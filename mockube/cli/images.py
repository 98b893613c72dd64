"""`mockube images`: list the images that simulated containers know, explain one, resolve a reference, or add to them."""

import argparse
import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from mockube import simulated_images
from mockube.apimachinery.images import InvalidImage
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.client.kubeconfig import Access
from mockube.client.wire import NoResponse
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.suggestions import nearest
from mockube.container_runtime.images.references import has_version, parse_reference
from mockube.container_runtime.images.registries import repository_of
from mockube.container_runtime.images.resolution import ImageResolution, is_official, resolve
from mockube.container_runtime.images.table import (
    Image,
    ImageTable,
    ImageTableError,
    Requirement,
    Table,
    built_in_images,
    load_table,
)
from mockube.failure import Failure, Missing, UsageError

from .output import table
from .parsing import CommandParser
from .target import add_server_flags, convert_errors, server_access

_MIB: Final = 1 << 20
_MAX_COMMAND: Final = 32
"""How much of a command the list shows, so that a row fits on a line; that of an image may be a script."""
_DOCKER_HUB: Final = ("docker.io/library/", "docker.io/")


def add_flags(parser: CommandParser) -> None:
    parser.set_defaults(name=None, kubeconfig=None, images=None)
    commands = parser.add_subparsers(dest="action", metavar="list|show|resolve|add|load")
    list_parser = commands.add_parser("list", help="list the images that are known; the default")
    show = commands.add_parser("show", help="explain an image: what it runs, has, requires and answers")
    show.add_argument("image", metavar="NAME", help="the image, such as postgres or postgres:17")
    resolve_parser = commands.add_parser(
        "resolve", help="print what references resolve to, or why a node cannot pull them"
    )
    resolve_parser.add_argument("references", nargs="+", metavar="REFERENCE", help="a reference, as in a pod")
    add = commands.add_parser("add", help="add the images of a file to a running cluster")
    add.add_argument("file", type=Path, metavar="FILE", help="entries in the format of `mockube up --images`")
    load_parser = commands.add_parser("load", help="say that images exist, whatever a registry has")
    load_parser.add_argument("references", nargs="+", metavar="NAME", help="a reference, as in a pod")
    for command in (list_parser, show, resolve_parser):
        _add_common(command)
    for command in (add, load_parser):
        add_server_flags(command)


def _add_common(parser: CommandParser) -> None:
    add_server_flags(parser)
    parser.add_argument("--images", type=Path, metavar="FILE", help="another file that describes images")


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        try:
            return _ACTIONS[options.action](options)
        except (ImageTableError, InvalidImage) as error:
            raise UsageError(str(error)) from error


def _list(options: argparse.Namespace) -> int:
    _, added = _read_added(options)
    entries = [*_entries(added), *built_in_images()]
    rows = {_short(entry.names[0]): entry for entry in reversed(entries)}
    print(
        table(
            [
                ("NAME", "LISTENS", "RUNS", "OTHER NAMES"),
                *(_row(name, entry) for name, entry in sorted(rows.items())),
            ]
        )
    )
    return 0


def _row(name: str, entry: Image) -> tuple[str, str, str, str]:
    others = [_short(other) for other in entry.names[1:]]
    other_names = ", ".join(others[:2]) + (f" and {len(others) - 2} more" if len(others) > 2 else "")
    tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
    return (
        name + tags,
        _ports(entry) or "-",
        _shortened(_command(entry)) or ("a server" if entry.ports or entry.logs else "-"),
        other_names,
    )


def _show(options: argparse.Namespace) -> int:
    images, _ = _read_added(options)
    resolution = resolve(images, options.image)
    if resolution.invalid:
        raise UsageError(resolution.invalid)
    image = resolution.image
    if image is None and resolution.problem:
        raise Missing(resolution.problem)
    if image is None:
        official = is_official(resolution)
        about = (
            "an official image of Docker Hub, of which nothing else is known"
            if official
            else "not known: it runs, and nothing is known of it"
        )
        names = sorted({_short(name) for entry in built_in_images() for name in entry.names})
        near = nearest(options.image, names)
        raise Missing(
            f'"{options.image}" is {about}' + (f'; did you mean "{near}"?' if near and not official else "")
        )
    print(
        "\n".join(f"{label and f'{label}:':<15}{text}".rstrip() for label, text in _facts(resolution, image))
    )
    return 0


def _facts(resolution: ImageResolution, image: Image) -> Iterator[tuple[str, str]]:
    """Yield what is known of an image, with a label for the first line of each fact."""
    yield "Image", resolution.name
    if resolution.problem:
        yield "Problem", resolution.problem
    yield from _lines(
        "Other names", [_short(name) for name in image.names if repository_of(name) != resolution.repository]
    )
    if image.source:
        yield "Source", image.source
    yield "Platforms", ", ".join(image.platforms)
    yield "Runs", _command(image) or "a server, which is not interpreted"
    if image.user is not None:
        yield "User", str(image.user)
    if image.workdir:
        yield "Folder", image.workdir
    if image.programs is not None:
        yield "Programs", ", ".join(image.programs) or "none"
    if image.shell is not None:
        yield "Shell", image.shell or "none: exec of a shell fails"
    yield from _lines("Variables", [f"{name}={value}" for name, value in sorted(image.env.items())])
    requirements = [_requirement(need) for need in image.requires if has_version(resolution.name, need.since)]
    if image.variable_files is not None:
        names = _one_of(image.variable_files.variables)
        requirements.insert(0, f"the file that {names} names, if it is set; or else it exits with code 1")
    yield from _lines("Requires", requirements)
    yield from _lines("Listens", [_listener(port, entry) for port, entry in sorted(image.ports.items())])
    yield from _lines("Volumes", image.volumes)
    yield from _lines("Files", sorted(image.files))
    yield "Stop signal", f"{image.stop_signal}{', which its program ignores' if image.ignores_term else ''}"
    if image.memory.rest:
        yield "Memory", f"{image.memory.rest / _MIB:.4g} Mi at rest"
    yield from _lines("Health", image.health)
    yield from _lines("Logs", image.logs)


def _lines(label: str, values: Iterable[str]) -> Iterator[tuple[str, str]]:
    for value in values:
        yield label, value
        label = ""


def _requirement(need: Requirement) -> str:
    variables = _one_of(need.one_of)
    if need.mounted:
        text = f"no volume at {need.mounted}" + (f", unless the pod sets {variables}" if variables else "")
    elif not variables:
        text = f"no {' or '.join(need.when)}"
    elif need.when == need.one_of:
        text = f"the file that {variables} names, if it is set"
    else:
        text = variables + (f", if {_one_of(need.when)} is set" if need.when else "")
    unless = f", unless {need.unless} exists" if need.unless else ""
    return f"{text}{unless}; or else it exits with code {need.exit_code}"


def _one_of(names: Sequence[str]) -> str:
    return f"one of {', '.join(names)}" if len(names) > 1 else "".join(names)


def _listener(port: int, entry: Any) -> str:
    paths = ", ".join(route.path for route in entry.routes)
    details = [*((f"files of {entry.root}",) if entry.root else ()), *((paths,) if paths else ())]
    return f"{port} {entry.speaks}{'s' if entry.tls and entry.speaks == 'http' else ''}" + (
        f": {', '.join(details)}" if details else ""
    )


def _ports(entry: Image) -> str:
    return ", ".join(str(port) for port in sorted(entry.ports))


def _command(entry: Image) -> str:
    return " ".join((*entry.entrypoint, *entry.arguments))


def _shortened(command: str) -> str:
    return command if len(command) <= _MAX_COMMAND else f"{command[: _MAX_COMMAND - 3]}..."


def _short(name: str) -> str:
    """Return a name as people write it in pods."""
    full = repository_of(name)
    return next(
        (full.removeprefix(beginning) for beginning in _DOCKER_HUB if full.startswith(beginning)), full
    )


def _resolve(options: argparse.Namespace) -> int:
    images, _ = _read_added(options)
    resolutions = [resolve(images, reference) for reference in options.references]
    for reference, resolution in zip(options.references, resolutions, strict=True):
        print(f"{reference}: {_outcome(resolution)}")
    return 1 if any(resolution.problem or resolution.invalid for resolution in resolutions) else 0


def _outcome(resolution: ImageResolution) -> str:
    if resolution.problem or resolution.invalid:
        return resolution.problem or resolution.invalid
    known = "" if resolution.image is not None or is_official(resolution) else ", of which nothing is known"
    return f"{resolution.name}, {resolution.digest}, {resolution.size / _MIB:.1f} Mi{known}"


def _add(options: argparse.Namespace) -> int:
    entries = _described(options.file)
    asyncio.run(
        _with_client(server_access(options), lambda client: simulated_images.add_images(client, entries))
    )
    print(f"{len(entries)} {'image' if len(entries) == 1 else 'images'} added: {', '.join(sorted(entries))}")
    return 0


def _described(path: Path) -> dict[str, Any]:
    if not load_table(path):
        raise UsageError(f"{path} has no images")
    try:
        return dict(load(path.read_bytes()).tree)
    except (OSError, YamlError) as error:
        raise UsageError(f"{path}: {error}") from error


def _load(options: argparse.Namespace) -> int:
    names = [parse_reference(reference).name for reference in options.references]
    asyncio.run(
        _with_client(
            server_access(options), lambda client: simulated_images.load_images(client, options.references)
        )
    )
    print("\n".join(f"{name} loaded" for name in names))
    return 0


async def _with_client(access: Access, action: Any) -> Any:
    async with open_client(access, RealClock()) as client:
        return await action(client)


def _read_added(options: argparse.Namespace) -> tuple[ImageTable, Table]:
    """Return the table with the images of the file, and those of the cluster if it runs, and these additions."""
    added: Table = {} if options.images is None else load_table(options.images, has_processes=True)
    images = ImageTable([added])
    is_chosen = options.name is not None or options.kubeconfig is not None
    with suppress(*(() if is_chosen else (Failure, NoResponse))):
        live = asyncio.run(_with_client(server_access(options), simulated_images.images_of_cluster))
        images.set_live(live)
        added = {**added, **live.table}
    return images, added


def _entries(added: Table) -> Sequence[Image]:
    return list({id(entry): entry for entries in added.values() for entry in entries}.values())


_ACTIONS: Final = {None: _list, "list": _list, "show": _show, "resolve": _resolve, "add": _add, "load": _load}
