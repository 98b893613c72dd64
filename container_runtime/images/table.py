"""The table of known images: what runs by default, programs, files, ports and their answers, user, logs. Data: `images.yaml` and `catalogue/`.

`--images FILE`, packs, and the ConfigMap that `mockube images add` writes, add entries in the same format, which go before the
built-in ones. `mockube images load` says that an image exists.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from mockube.apimachinery import quantity
from mockube.apimachinery.images import InvalidImage, parse_image
from mockube.apimachinery.yaml_decode import load_all
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.container_runtime.unknown_programs import ASSUMES_ALL, UnknownPrograms

from .registries import origin
from .releases import Releases

_BUILT_IN: Final = Path(__file__).with_name("images.yaml")
_FAMILIES: Final = Path(__file__).with_name("catalogue")
MAX_BYTES: Final = 1 << 20
MAX_PORT: Final = 65535
MAX_EXIT_CODE: Final = 255
HTTP: Final = "http"


class ImageTableError(ValueError):
    """A file of image behaviours is invalid."""


class Amount(float):
    """A quantity, such as 100m or 64Mi."""


class HttpRoute(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A fixed response of an HTTP server to requests for a path."""

    path: str = "/"
    exact: bool = False
    """Whether the path alone matches, and not those below it."""
    status: int = 200
    content_type: str = "text/plain; charset=utf-8"
    body: str = ""
    """The body; $(hostname), $(namespace), $(address), $(client), $(clientaddress), $(method), $(path), $(host), $(headers), $(elapsed) and $(time) are replaced."""
    location: str = ""
    """The target of a redirect; $(loc) and $(location) are the values of these parameters of the request's query."""
    status_parameter: str = ""
    """The parameter of the request's query that may name another status."""
    since: float = 0.0
    """The seconds of a run after which the route exists; it then goes before those that follow it."""


class PortBehavior(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a server does on a port."""

    speaks: str = HTTP
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
    serves_image: bool = False
    """Whether `root` has files of the image that are not known: a path that does not exist may be one of them."""
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
    served_by: tuple[str, ...] = ()
    """The programs that serve the port, of an image with several servers; empty for all of them."""
    options: tuple[str, ...] = ()
    """The options of the server's program that name another port, such as --port."""
    variables: tuple[str, ...] = ()
    """The variables of the container that name another port, such as PORT; options go before them."""


class Requirement(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Variables of which one must be set, or else the entrypoint ends."""

    one_of: tuple[str, ...]
    """Names of variables that must not be empty; NAME=VALUE for one that must have a value. The file that one with a name in _FILE names
    must exist. None if those of `when` must not be set.
    """
    when: tuple[str, ...] = ()
    """Variables of which one must be set for the others to be required; empty if they always are."""
    unless: str = ""
    """A path of the container with which, as with a database that exists already, nothing is required."""
    mounted: str = ""
    """A path at which no volume may be mounted, unless one of the variables is set in the pod; empty if any may."""
    since: int | str = 0
    """The first version of the image that requires it."""
    logs: tuple[str, ...] = ()
    """The lines that the entrypoint logs without them; $(NAME) is a variable's value if a file is missing, and a line with $(when) is
    there for each variable of `when` that is set.
    """
    exit_code: int = 1


class VariableFiles(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Variables with the paths of files that the entrypoint reads, or else ends, also if the server does not need their values."""

    variables: tuple[str, ...]
    """Their names, in the order in which the files are read."""
    logs: tuple[str, ...]
    """The lines that the entrypoint logs without one; $(path) is the path."""


class WrittenPath(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A folder in which a server creates files at its start, or else ends."""

    path: str
    user: int = 0
    """The owner of the folder in the image."""
    mode: int = 0o755
    """The mode of the folder in the image."""
    logs: tuple[str, ...] = ()
    """The lines that the server logs if it cannot write; $(number) and $(reason) are those of the error, $(time) is the time."""
    exit_code: int = 1


class NeededCapabilities(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What a server that starts as root needs to do so, or else ends."""

    capabilities: tuple[str, ...]
    logs: tuple[str, ...] = ()
    """The lines that the entrypoint or the server logs without one of them."""
    exit_code: int = 1


class FailedBind(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How a server ends whose port is in use."""

    logs: tuple[str, ...]
    exit_code: int = 1


class Load(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How much of a resource a server uses: bytes of memory, or cores."""

    rest: Amount = Amount(0)
    """The usage of a server that has nothing to do."""
    request: Amount = Amount(0)
    """What each request adds: cores for a second, or memory while a client is connected."""


class Image(Struct, frozen=True, eq=False, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What is known of an image, and what a container of it does, unless its pod has another command for it."""

    names: tuple[str, ...]
    """Ends of the repository's name; those of Docker's official images begin with library."""
    source: str = ""
    """Where the facts come from."""
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
    is_guess: bool = False
    """Whether the entry is that of another image with the same name, so that nobody knows its other ports and its paths."""
    servers: tuple[str, ...] = ()
    """The names of the program that listens on the `ports`, in commands of pods: another program does not."""
    subcommands: tuple[str, ...] = ()
    """The first words with which its program, or its entrypoint, runs the server, such as `server -dev`."""
    takes_options: bool = True
    """Whether its entrypoint gives arguments that begin with a dash to the server."""
    takes_files: tuple[str, ...] = ()
    """The ends of a first argument that its entrypoint gives to the server: those of its configuration files."""
    programs: tuple[str, ...] | None = None
    """Which programs it has: names of sets, such as busybox or debian, and of single programs; None if that is unknown, so that
    any may be there.
    """
    scripts: Mapping[str, str] = field(default_factory=dict)
    """What programs of the image do, as scripts of a shell, by their names: such as a server that ends without its database."""
    shell: str | None = None
    """The path of its shell, "" for an image without one; None if that is unknown."""
    env: Mapping[str, str] = field(default_factory=dict)
    """The variables of the image."""
    requires: tuple[Requirement, ...] = ()
    variable_files: VariableFiles | None = None
    writes: tuple[WrittenPath, ...] = ()
    """Where the server writes at its start, in its order."""
    needs: tuple[NeededCapabilities, ...] = ()
    """The capabilities without which the server does not start, in the order in which it uses them."""
    failed_bind: FailedBind | None = None
    """How the server ends if another container of its pod has its port; None if nobody knows."""
    workdir: str = ""
    user: int | None = None
    """The user of the image; None if it is unknown."""
    user_name: str = ""
    """The name by which the image names its user; "" if it names the number, or nobody knows."""
    process: str = ""
    """The command line of the server as ps shows it; "" if it is that of the entrypoint, or unknown."""
    children: Mapping[str, int] = field(default_factory=dict)
    """The command lines of the processes that the server starts, each with the number of its user."""
    accounts: Mapping[str, int] = field(default_factory=dict)
    """The accounts that the image adds to those of its base, with their numbers, which are those of their groups, too."""
    group: int | None = None
    """The group of the image's user; None if it is unknown."""
    stop_signal: str = "SIGTERM"
    ignores_term: bool = False
    """Whether its default program, as the first process of a container, goes on after SIGTERM."""
    volumes: tuple[str, ...] = ()
    """The paths at which the image declares volumes."""
    health: Mapping[str, str] = field(default_factory=dict)
    """Beginnings of commands that ask the server whether it is ready, such as `pg_isready`, with what they print if it is."""
    memory: Load = Load()
    cpu: Load = Load()
    files: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, str] = field(default_factory=dict)
    """The symbolic links of the image with their targets."""
    is_base: bool = False
    """Whether /etc and /usr/share have only what its distribution puts there, or packages for compilers."""
    folders: tuple[str, ...] | None = None
    """The folders in which the image may have other files, besides those of a system, such as /usr; None for anywhere."""
    ports: Mapping[int, PortBehavior] = field(default_factory=dict)
    configuration: tuple[str, ...] = ()
    """The paths of the server's configuration: a volume there may change what its ports answer, so that nobody knows."""
    unread: tuple[str, ...] = ()
    """The paths, the variables and the options of a configuration that is not read; the ports are assumed to answer as without it.

    A name of variables or options that ends in an asterisk is their beginning.
    """
    restores_configuration: bool = False
    """Whether its entrypoint puts the image's configuration into an empty volume at such a path."""
    logs: tuple[str, ...] = ()
    """The lines that the server, or a command with `exit_code`, logs at its start."""
    platforms: tuple[str, ...] = ("linux/amd64", "linux/arm64")
    releases: Releases | None = None
    """Which tags can exist; None for those that Docker Hub is known to have, or else any."""
    size: Amount = Amount(0)
    """How many bytes are pulled; 0 if that is unknown."""
    private: bool = False
    """Whether its registry needs credentials."""

    def has_tag(self, tag: str) -> bool:
        """Return whether the entry applies to a tag."""
        parts = set(tag.split("-"))
        return (not self.tags or not parts.isdisjoint(self.tags)) and parts.isdisjoint(self.except_tags)


Table = Mapping[str, Sequence[Image]]
"""Images by each of their names: those for certain tags go before those for any."""
_DOCKER_HUB: Final = ("docker.io", "index.docker.io")


def read_table(data: bytes) -> Table:
    """Read a table from YAML; raise `ImageTableError` if it is invalid."""
    return table_of(_read(data))


def _read(data: bytes) -> Any:
    try:
        documents = [*islice(load_all(data), 2)]
    except YamlError as error:
        raise ImageTableError(str(error)) from error
    if len(documents) > 1:
        raise ImageTableError("there is more than one document")
    for document in documents:
        if (
            document.strict_errors and b"<<:" not in data
        ):  # What replaces a key of a merged mapping is no mistake.
            raise ImageTableError(document.strict_errors[0])
    return (documents[0].tree if documents else None) or {}


def table_of(tree: Any) -> Table:
    """Return the table of a file's content, or of a pack's images; raise `ImageTableError` if it is invalid."""
    return _by_name(_images_of(tree))


def _images_of(tree: Any) -> Sequence[Image]:
    """Return the images of a file, those for certain tags first."""
    try:
        entries = msgspec.convert(tree, dict[str, Image], strict=False, dec_hook=_amount)
    except msgspec.ValidationError as error:
        raise ImageTableError(str(error)) from error
    for key, entry in entries.items():
        ports = [port for port in entry.ports if not 0 < port <= MAX_PORT]
        if ports:
            raise ImageTableError(f"{key}: ports: {ports[0]} is no port")
        if not entry.names or not all(entry.names):
            raise ImageTableError(f"{key}: names: at least one is required")
        if entry.exit_code is not None and not 0 <= entry.exit_code <= MAX_EXIT_CODE:
            raise ImageTableError(f"{key}: exitCode: {entry.exit_code} is not between 0 and {MAX_EXIT_CODE}")
        for name in entry.names:
            _check_name(key, name)
    _check_unique(entries)
    return _tagged_first(entries.values())


def _check_name(key: str, name: str) -> None:
    try:
        parse_image(name)
    except InvalidImage as error:
        raise ImageTableError(f"{key}: names: {name}: {error}") from error


def _check_unique(entries: Mapping[str, Image]) -> None:
    keys: dict[tuple[str, tuple[str, ...], tuple[str, ...]], str] = {}
    for key, entry in entries.items():
        for name in entry.names:
            other = keys.setdefault((name, entry.tags, entry.except_tags), key)
            if other != key:
                raise ImageTableError(f"{key}: names: {name} is in {other}, too")


def _tagged_first(images: Iterable[Image]) -> Sequence[Image]:
    return sorted(images, key=lambda image: not image.tags)


def _by_name(images: Iterable[Image]) -> Table:
    table: dict[str, list[Image]] = {}
    for entry in _tagged_first(images):
        for name in entry.names:
            table.setdefault(name, []).append(entry)
    return table


def _amount(kind: type, value: Any) -> Amount:
    """Return the number of a quantity in a file."""
    assert kind is Amount
    try:
        return Amount(quantity.from_json(value).number)
    except quantity.QuantityError as error:
        raise ValueError(f"{value!r}: {error}") from error


def load_table(path: Path, *, has_processes: bool = False) -> Table:
    """Load the file of `--images`, which also describes those that run as processes of this machine, without names, if it may."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ImageTableError(f"{path}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ImageTableError(f"{path} has more than {MAX_BYTES} bytes")
    try:
        tree = _read(data)
        if has_processes:
            return table_of(described_images(tree))
        _refuse_processes(tree)
        return table_of(tree)
    except ImageTableError as error:
        raise ImageTableError(f"{path}: {error}") from error


def _refuse_processes(tree: Any) -> None:
    """Raise an error for an entry that is one of `container_runtime.process`: a command by the name of an image."""
    for key, entry in tree.items() if isinstance(tree, dict) else ():
        if isinstance(entry, dict) and entry and "names" not in entry:
            raise ImageTableError(
                f"{key} has no names: an image runs as a process with --container-runtime=process only"
            )


def described_images(tree: Any) -> Any:
    """Return the entries of a file that describe images, and not processes that run in place of them."""
    images = tree.get("images", tree) if isinstance(tree, dict) else tree
    if not isinstance(images, dict):
        return {}
    return {key: entry for key, entry in images.items() if is_description(entry)}


def is_description(entry: Any) -> bool:
    """Return whether an entry of a file describes an image, and is no process that runs in place of one."""
    return isinstance(entry, dict) and "names" in entry


@cache
def built_in_images() -> Sequence[Image]:
    """Return the entries of the table that comes with mockube."""
    return tuple(image for data in _built_in_files() for image in _built_in_images_of(data))


@cache
def _built_in_files() -> Sequence[bytes]:
    return tuple(path.read_bytes() for path in (_BUILT_IN, *sorted(_FAMILIES.glob("*.yaml"))))


@cache
def _built_in_images_of(data: bytes) -> Sequence[Image]:
    return _images_of(_read(data))


def _built_in_table(names: Iterable[str]) -> Table:
    """Return a table with the images of the built-in files that contain one of the names: to read all takes longer than the start of a pod."""
    texts = [name.encode() for name in names]
    return _table_of_files(tuple(data for data in _built_in_files() if any(text in data for text in texts)))


@cache
def _table_of_files(files: Sequence[bytes]) -> Table:
    return _by_name(image for data in files for image in _built_in_images_of(data))


class LiveImages(Struct, frozen=True):
    """What users of a running cluster say of images."""

    table: Table = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()
    """The canonical names of images that exist, whatever a registry has."""


class ImageTable:
    """The images that are known in a cluster. Those of its users go before those of packs and files, and these before built-in ones."""

    def __init__(self, added: Iterable[Table] = (), unknown_programs: UnknownPrograms = ASSUMES_ALL) -> None:
        """Of the `added` tables of packs and files, later ones go before earlier ones."""
        self.unknown_programs = unknown_programs
        """What becomes of what is not known."""
        self.version = 0
        """The number of changes of the table."""
        self._on_change: list[Callable[[], None]] = []
        self._added: Table = {name: entries for table in added for name, entries in table.items()}
        self._live = LiveImages()
        self.behavior_of_image = lru_cache(maxsize=4096)(self._behavior_of_image)
        """Returns what is known of an image such as docker.io/library/nginx:1.29; None if nothing is."""

    @property
    def loaded(self) -> frozenset[str]:
        """The canonical names of images that exist, whatever a registry has."""
        return self._live.loaded

    def set_live(self, images: LiveImages) -> None:
        """Replace what the users of the running cluster say of images."""
        if images != self._live:
            self._live = images
            self.version += 1
            self.behavior_of_image.cache_clear()
            for handler in self._on_change:
                handler()

    def on_change(self, handler: Callable[[], None]) -> None:
        """Call a function after each change of the table."""
        self._on_change.append(handler)

    def behavior_of(self, container: Mapping[str, Any]) -> Image | None:
        """Return what is known of the image of a container; None if nothing is."""
        return self.behavior_of_image(container.get("image") or "")

    def is_added(self, image: Image) -> bool:
        """Return whether a user or a pack describes an image, which therefore exists."""
        tables = (self._added, self._live.table)
        return any(image is entry for table in tables for entries in table.values() for entry in entries)

    def _behavior_of_image(self, image: str) -> Image | None:
        repository = image.partition("@")[0]
        head, slash, last = repository.rpartition("/")
        name, _, tag = last.partition(":")
        return self._find(f"{head}{slash}{name}", tag)

    def _find(self, repository: str, tag: str) -> Image | None:
        parts = repository.split("/")
        if len(parts) == 1 or (len(parts) == 2 and parts[0] in _DOCKER_HUB):
            parts.insert(-1, "library")
        suffixes = ["/".join(parts[index:]) for index in range(len(parts))]
        original = origin("/".join(parts))
        if original != suffixes[0]:
            suffixes.insert(0, original)
            suffixes.insert(1, original.partition("/")[2])
        built_in = _built_in_table({suffix.rpartition("/")[2] for suffix in suffixes})
        for table in (self._live.table, self._added, built_in):
            for suffix in suffixes:
                entry = next((entry for entry in table.get(suffix, ()) if entry.has_tag(tag)), None)
                if entry is not None:
                    is_guess = table is built_in and "/" not in suffix and parts[-2] != "library"
                    return _as_guess(entry) if is_guess else entry
        return None


def _as_guess(entry: Image) -> Image:
    """Return what is likely of another repository's image with the same name, such as example.org/team/postgres.

    It is probably made of that image; nobody knows its programs, variables and releases.
    """
    return replace(
        entry,
        is_guess=True,
        programs=None,
        is_base=False,
        folders=None,
        shell=None,
        env={},
        requires=(),
        workdir="",
        volumes=(),
        releases=None,
        private=False,
        memory=Load(),
        cpu=Load(),
    )


def protocols_of(images: ImageTable, container: Mapping[str, Any]) -> set[str]:
    """Return the protocols, besides HTTP, that the server of a container's image speaks."""
    image = images.behavior_of(container)
    return set() if image is None else {port.speaks for port in image.ports.values() if port.speaks != HTTP}


def runs_server(images: ImageTable, container: Mapping[str, Any]) -> bool:
    """Return whether a container runs the server of its image: by the image's own command, by its name, or by options for it."""
    image = images.behavior_of(container)
    if image is None or not (image.ports or image.logs):
        return False
    command, arguments = without_entrypoint(container, image)
    argv = (*command, *arguments)
    program = argv[0].rpartition("/")[2] if argv else ""
    if program in image.servers and program not in image.scripts:
        return serves_with(image, argv[1:]) and (program not in _DAEMONS or len(argv) > 1)
    if command or image.entrypoint or image.arguments or image.exit_code is not None:
        return False
    if not argv or has_subcommand(image, argv):
        return True
    return image.takes_options and argv[0].startswith("-") and serves_with(image, argv)


def is_daemon(image: Image, argv: Sequence[str]) -> bool:
    """Return whether a command is a server of an image that goes to the background, which ends its container."""
    program = argv[0].rpartition("/")[2] if argv else ""
    return len(argv) == 1 and program in image.servers and program in _DAEMONS


def without_entrypoint(
    container: Mapping[str, Any], image: Image | None
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the command and the arguments of a container; a command that is the entrypoint's script gives its image the arguments.

    A file that the entrypoint gives to the server of the `image` is an argument of this server.
    """
    command, arguments = container.get("command") or (), container.get("args") or ()
    if command and command[0].rpartition("/")[2] == ENTRYPOINT:
        command, arguments = (), (*command[1:], *arguments)
    if not command and image is not None and arguments and arguments[0].endswith(image.takes_files):
        arguments = (image.servers[0], *arguments)
    return command, arguments


ENTRYPOINT: Final = "docker-entrypoint.sh"
"""The script with which most of Docker's official images start a program."""


def has_subcommand(image: Image, arguments: Sequence[str]) -> bool:
    """Return whether arguments begin with words that run the server of an image."""
    return any(
        list(arguments[: len(words)]) == words for words in (each.split() for each in image.subcommands)
    )


def serves_with(image: Image, options: Sequence[str]) -> bool:
    """Return whether the server of an image serves with some arguments, and does not only print something."""
    if not options or has_subcommand(image, options):
        return True
    is_option = options[0].startswith(("-", "/")) or options[0].endswith(image.takes_files)
    return is_option and tuple(options) not in _ENDING_OPTIONS


_DAEMONS: Final = frozenset({"nginx", "nginx-debug", "httpd", "apachectl", "apache2ctl"})
"""The servers that go to the background, so that their container ends, unless an option says otherwise."""
_ENDING_OPTIONS: Final = frozenset(
    (option,) for option in ("--help", "--version", "-?", "-h", "-t", "-T", "-v", "-V")
)
"""What makes servers print something, and end."""
