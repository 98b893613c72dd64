"""Packs: what makes a process serve and control kinds of a project besides Kubernetes' own.

A pack is one `Pack` object, which an entry point of the group `mockube.packs` names. The packs that come with mockube are
the folders of `mockube.packs`: they are found without the entry points, because reading those of all installed
distributions takes longer than the import of a pack.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from traceback import extract_tb
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from mockube.apimachinery.tree import Tree

from .flags import comma_separated, flags_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "mockube.packs"
"""The group of the entry points, and the package with mockube's own packs."""
LABEL: Final = "mockube.dev/pack"
"""The label of the CustomResourceDefinitions of a pack, which a manager follows that no flag tells its packs."""
_MODULE, _NAME = "pack", "PACK"
"""The module and the name of the object in the folder of one of mockube's own packs."""


class PackError(ValueError):
    """A pack does not exist, or cannot be used."""


def _same(definition: Tree) -> Tree:
    return definition


def _no_parts(*_: object) -> tuple[()]:
    return ()


class Pack(Struct, frozen=True, kw_only=True):
    """Everything of a project's own kinds.

    The functions import what they return: each process calls only those that it needs, so that an API server does not
    import controllers, nor a controller manager webhooks.
    """

    definitions: Callable[[], Iterable[str | bytes]]
    """Returns the CustomResourceDefinitions, each a document in YAML."""
    add_versions: Callable[[Tree], Tree] = _same
    """Returns a definition with the versions that only a server with the pack has, because the pack converts them."""
    webhooks: Callable[[], Iterable[object]] = _no_parts
    """Returns what the API server calls for each write: a `KindWebhook` for each kind, and admission plugins."""
    controllers: Callable[[Any], Iterable[object]] = _no_parts
    """Returns the controllers and runnables that the controller manager runs, for the values of `flags`."""
    flags: type[Any] | None = None
    """A record of flags, as those in `config/settings.py`, which the controller manager has while the pack is on."""
    roles: Sequence[Mapping[str, Any]] = ()
    """The rules of RBAC that the controllers need."""
    images: Mapping[str, Any] = MappingProxyType({})
    """The behaviours of images in simulated containers, as in a file of `--images`."""

    def options(self) -> Any:
        """Return the values of `flags` that no command line has changed; None if the pack has no flags."""
        return None if self.flags is None else self.flags()


# --- finding packs


@cache
def own_pack_names() -> tuple[str, ...]:
    """Return the names of the packs that come with mockube."""
    package = find_spec(GROUP)
    folders = package.submodule_search_locations if package else None
    return tuple(sorted(module.name for module in iter_modules(folders or ()) if module.ispkg))


def pack_names() -> tuple[str, ...]:
    """Return the names of all packs that are installed."""
    return tuple(sorted({*own_pack_names(), *(entry.name for entry in _entry_points())}))


def load_packs(names: Iterable[str]) -> Mapping[str, Pack]:
    """Return packs by name; raise PackError if one does not exist or cannot be imported."""
    return {name: load_pack(name) for name in names}


@cache
def load_pack(name: str) -> Pack:
    if name in own_pack_names():
        reference = f"{GROUP}.{name}.{_MODULE}:{_NAME}"
        found = _guarded(name, reference, lambda: getattr(import_module(f"{GROUP}.{name}.{_MODULE}"), _NAME))
    else:
        entry = _entry_point(name)
        reference, found = entry.value, _guarded(name, entry.value, entry.load)
    if not isinstance(found, Pack):
        raise PackError(f'pack "{name}": {reference} is a {type(found).__name__}, not a {__name__}.Pack')
    return found


def _entry_points() -> "Sequence[EntryPoint]":
    from importlib.metadata import entry_points  # noqa: PLC0415 - the manager with mockube's own packs needs no such module

    return tuple(entry_points(group=GROUP))


def _entry_point(name: str) -> "EntryPoint":
    found = {entry.value: entry for entry in _entry_points() if entry.name == name}
    if not found:
        raise PackError(
            f'unknown pack "{name}", must be one of {", ".join(pack_names()) or "none: none is installed"}'
        )
    if len(found) > 1:
        origins = " and ".join(sorted(f"{entry.value}{_origin(entry)}" for entry in found.values()))
        raise PackError(f'two packs are named "{name}": {origins}')
    (entry,) = found.values()
    return entry


def _origin(entry: "EntryPoint") -> str:
    return f" (of {entry.dist.name} {entry.dist.version})" if entry.dist else ""


# --- what the functions of packs return

T = TypeVar("T")


def parts_of(name: str, kind: str, function: Callable[..., Iterable[T]], *arguments: object) -> Sequence[T]:
    """Return what a function of a pack returns; raise PackError for any error of it. `kind` names it in the message."""
    return _guarded(name, kind, lambda: tuple(function(*arguments)))


def _guarded(name: str, subject: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except PackError:
        raise
    except Exception as error:
        place = _place(error)
        raise PackError(f'pack "{name}": {subject} failed: {type(error).__name__}: {error}{place}') from error


def _place(error: Exception) -> str:
    """Return where the author of a pack finds the error."""
    frames = [frame for frame in extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen ")]
    return f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""


# --- the command line


def selected_packs(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    prefix: str,
    default: Callable[[], tuple[str, ...]] = tuple,
) -> tuple[str, ...]:
    """Return the packs that a command line selects, before it is parsed: the flags that it may have depend on them.

    `default` returns the packs if it selects none, not even by `--packs=`.
    """
    variable = environment.get(f"{prefix}_PACKS")
    texts = [*([] if variable is None else [variable]), *_values("--packs", arguments)]
    return (
        tuple(dict.fromkeys(name for text in texts for name in comma_separated(text))) if texts else default()
    )


def flags_of_packs(
    records: Iterable[type[Any]], packs: Iterable[str], *, other_flags: Iterable[str] = ()
) -> Mapping[str, type[Any]]:
    """Return the records of the flags of packs; raise PackError if one of these flags exists already.

    The flags of the records, the `other_flags` and those of an earlier pack exist.
    """
    own_flags = (name for record in records for name in flags_of(record))
    owners = {_flag_name(name): "the process" for name in (*own_flags, *other_flags)}
    found = {name: pack.flags for name, pack in load_packs(packs).items() if pack.flags is not None}
    for pack, record in found.items():
        for name in map(_flag_name, flags_of(record)):
            if name in owners:
                raise PackError(f'pack "{pack}": its flag --{name} is one of {owners[name]}')
            owners[name] = f'pack "{pack}"'
    return found


def _flag_name(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def _values(flag: str, arguments: Sequence[str]) -> Iterator[str]:
    for index, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == flag:
            yield value if equals else "".join(arguments[index + 1 : index + 2])
