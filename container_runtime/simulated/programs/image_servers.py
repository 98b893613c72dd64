"""The servers of known images as programs, which scripts call: each logs what it logs at its start, and runs until it is stopped."""

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from math import inf

from mockube.container_runtime.behavior import NOT_FOUND
from mockube.container_runtime.extras import hint, missing_distribution
from mockube.container_runtime.images.table import Image, is_daemon, serves_with
from mockube.container_runtime.simulated.shell.process import (
    Output,
    Process,
    Program,
    Run,
    Sleep,
    UnknownProgram,
)
from mockube.container_runtime.simulated.shell.programs.all_programs import INSTALLED_PROGRAMS, PROGRAMS
from mockube.container_runtime.simulated.shell.programs.installed_programs import LayeredPrograms
from mockube.container_runtime.simulated.shell.programs.installed_servers import PROGRAMS as SERVERS
from mockube.container_runtime.simulated.shell.programs.installed_servers import kind_of, missing_server
from mockube.container_runtime.simulated.shell.programs.servers import OTHERS

from .wrong_options import assumed_argument_of_call, unread_argument, wrong_option_of_call


def server_names(image: Image | None) -> Iterator[str]:
    """Yield the names of the programs that are the server of an image, and that nothing else simulates."""
    if image is None or image.is_guess or not (image.ports or image.logs):
        return
    for name in (*image.servers, *(each.rpartition("/")[2] for each in image.entrypoint[:1])):
        is_replaced = name in SERVERS and kind_of(image) is None
        if name not in image.scripts and (is_replaced or name not in PROGRAMS):
            yield name


@lru_cache(maxsize=1024)
def programs_with_servers(image: Image | None, reference: str) -> Mapping[str, Program]:
    """Return all programs that a container of an image may call."""
    of_image: dict[str, Program] = {}
    if image is not None:
        of_image = {name: partial(_serve, image, reference) for name in server_names(image)}
        of_image |= {name: partial(_call, name) for name in image.servers if name in INSTALLED_PROGRAMS}
        kind = kind_of(image)
        of_image |= {} if kind is None else kind.programs
    return LayeredPrograms({**OTHERS, **of_image}, PROGRAMS)


def _not_simulated(process: Process) -> Run:
    name = process.path_name or process.name
    if process.host.is_strict:
        raise UnknownProgram(name)
    process.host.on_unknown(name)
    yield process.error(f"not simulated{hint(missing_distribution(name))}")
    return NOT_FOUND


def _call(name: str, process: Process) -> Run:
    """Run a program of another distribution that is the server of the image: it listens from its call on."""
    process.host.note_call(process)
    return (yield from PROGRAMS[name](process))


def _serve(image: Image, reference: str, process: Process) -> Run:
    host = process.host
    is_reconfigured = any(any(host.files.inodes.below(path)) for path in image.configuration)
    host.note_call(process, is_reconfigured=is_reconfigured)
    if is_daemon(image, process.argv):
        return 0
    options = process.arguments
    if (
        not serves_with(image, options)
        or (is_reconfigured and missing_server(image))
        or unread_argument(image, process.argv)
        or assumed_argument_of_call(process.argv, reference, host.files)
    ):
        return (yield from _not_simulated(process))
    wrong = wrong_option_of_call(process.argv, reference, process.environment, host.files)
    if wrong is not None:
        yield Output(2, "".join(f"{line}\n" for line in wrong.logs).encode())
        return wrong.exit_code
    yield Output(1, "".join(f"{line}\n" for line in image.logs).encode())
    yield Sleep(inf)
    return 0
