"""The behaviours of known images: what runs by default, files, ports and their answers, user, logs. Data: `images.yaml`.

`--simulated-images FILE` adds the entries of a file in the same format, which go before the built-in ones.
"""

from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

_BUILT_IN: Final = Path(__file__).with_name("images.yaml")
MAX_BYTES: Final = 1 << 20
MAX_PORT: Final = 65535


class ImageTableError(ValueError):
    """A file of image behaviours is invalid."""


class HttpRoute(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A fixed response of an HTTP server to requests for a path."""

    path: str = "/"
    exact: bool = False
    """Whether the path alone matches, and not those below it."""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    body: str = ""
    """The body; $(hostname), $(namespace), $(address), $(client), $(method), $(path), $(host) and $(headers) are replaced."""
    location: str = ""
    """The target of a redirect; $(loc) and $(location) are the values of these parameters of the request's query."""
    since: float = 0.0
    """The seconds of a run after which the route exists; it then goes before those that follow it."""


class PortBehavior(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a server does on a port."""

    speaks: str = "http"
    """The protocol: http, redis, postgres, mysql, mongodb, or another name, which no other client understands."""
    tls: bool = False
    server: str = ""
    """The value of the header Server."""
    routes: tuple[HttpRoute, ...] = ()
    root: str = ""
    """The folder of the container whose files are served, where no route matches."""
    ingress: str = ""
    """The controller whose Ingresses the server serves."""
    missing: str = "404 page not found\n"
    """The body of the response 404."""
    only_routes: bool = False
    """Whether the server has no other paths than its routes: then a probe of another path fails. Otherwise nobody knows."""
    lists_folders: bool = False
    """Whether a request for a folder of `root` without an index.html gets a list of its files."""
    plain_status: int = 400
    """The status with which a server with TLS answers a request without; 0 if it closes the connection."""
    access_log: str = ""
    """The format of the line that is logged for each request: `main`, nginx' own, `combined`, `common` or `python`; "" for none."""
    greeting: str = ""
    """What a server of another protocol sends to a client before it has received anything; characters up to U+00FF are bytes."""
    replies: Mapping[str, str] = field(default_factory=dict)
    """What a server of another protocol replies to a text of its client."""
    grpc_health: Mapping[str, str] | None = None
    """The statuses of the services in its gRPC health service, such as `"": SERVING`; None for a server without it."""
    options: tuple[str, ...] = ()
    """The options of the server's program that name another port, such as --port."""
    variables: tuple[str, ...] = ()
    """The variables of the container that name another port, such as PORT; options go before them."""


class ImageBehavior(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a container of an image does, unless its pod has another command for it."""

    names: tuple[str, ...]
    """Ends of the repository's name; those of Docker's official images begin with library."""
    tags: tuple[str, ...] = ()
    """Parts of tags, between dashes, of which a tag has one; empty for any tag."""
    except_tags: tuple[str, ...] = ()
    """Parts of the tags to which the entry does not apply."""
    entrypoint: tuple[str, ...] = ()
    """The program that runs with the pod's `args`; without one the image is a server, which is not interpreted."""
    arguments: tuple[str, ...] = ()
    """The arguments of a pod without `args`."""
    wraps_programs: bool = False
    """Whether `args` that begin with a program run that program instead of the entrypoint."""
    reads_input: bool = False
    """Whether the default command, such as a shell, ends with its standard input, which most containers do not have."""
    exit_code: int | None = None
    """The exit code with which the default command ends at once; None for a server, or a command that is interpreted."""
    listens: bool = False
    """Whether its programs may listen on any port."""
    servers: tuple[str, ...] = ()
    """The names of the program that listens on the `ports`, in commands of pods: another program does not."""
    user: int | None = None
    """The user of the image; None if it is unknown."""
    files: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] | None = None
    """The folders in which the image may have other files, besides those of a system, such as /usr; None for anywhere."""
    ports: Mapping[int, PortBehavior] = field(default_factory=dict)
    configuration: tuple[str, ...] = ()
    """The paths of the server's configuration: a volume there may change what its ports answer, so that nobody knows."""
    logs: tuple[str, ...] = ()
    """The lines that the server, or a command with `exit_code`, logs at its start."""

    def has_tag(self, tag: str) -> bool:
        """Return whether the entry applies to a tag."""
        parts = set(tag.split("-"))
        return (not self.tags or not parts.isdisjoint(self.tags)) and parts.isdisjoint(self.except_tags)


Table = Mapping[str, ImageBehavior]
"""Behaviours by a name of their images."""
_DOCKER_HUB: Final = ("docker.io", "index.docker.io")


def read_table(data: bytes) -> Table:
    """Read a table from YAML; raise `ImageTableError` if it is invalid."""
    try:
        tree = load(data).tree
    except YamlError as error:
        raise ImageTableError(str(error)) from error
    return table_of(tree or {})


def table_of(tree: Any) -> Table:
    """Return the table of a file's content, or of a pack's images; raise `ImageTableError` if it is invalid."""
    try:
        entries = msgspec.convert(tree, dict[str, ImageBehavior], strict=False)
    except msgspec.ValidationError as error:
        raise ImageTableError(str(error)) from error
    for key, entry in entries.items():
        ports = [port for port in entry.ports if not 0 < port <= MAX_PORT]
        if ports:
            raise ImageTableError(f"{key}: ports: {ports[0]} is no port")
        if not entry.names or not all(entry.names):
            raise ImageTableError(f"{key}: names: at least one is required")
    return {name: entry for entry in entries.values() for name in entry.names}


def load_table(path: Path) -> Table:
    """Load the file of `--simulated-images`."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ImageTableError(f"{path}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ImageTableError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        return read_table(data)
    except ImageTableError as error:
        raise ImageTableError(f"{path}: {error}") from error


@cache
def _built_in_table() -> Table:
    return read_table(_BUILT_IN.read_bytes())


class ImageTable:
    """The behaviours that are known in this process: those of a file go before the built-in ones."""

    def __init__(self) -> None:
        self._added: Table = {}

    def add(self, table: Table) -> None:
        self._added = {**self._added, **table}
        behavior_of_image.cache_clear()

    def find(self, repository: str, tag: str) -> ImageBehavior | None:
        parts = repository.split("/")
        if len(parts) == 1 or (len(parts) == 2 and parts[0] in _DOCKER_HUB):
            parts.insert(-1, "library")
        suffixes = ["/".join(parts[index:]) for index in range(len(parts))]
        for table in (self._added, _built_in_table()):
            for suffix in suffixes:
                if suffix in table and table[suffix].has_tag(tag):
                    return table[suffix]
        return None


IMAGES: Final = ImageTable()


@lru_cache(maxsize=4096)
def behavior_of_image(image: str) -> ImageBehavior | None:
    """Return the behaviour of an image such as docker.io/library/nginx:1.29; None if it is not known."""
    repository = image.partition("@")[0]
    head, slash, last = repository.rpartition("/")
    name, _, tag = last.partition(":")
    return IMAGES.find(f"{head}{slash}{name}", tag)


def behavior_of(container: Mapping[str, Any]) -> ImageBehavior | None:
    return behavior_of_image(container.get("image") or "")
