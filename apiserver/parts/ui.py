"""The page of `mockube ui`, if the server has control."""

from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable

from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.request.ui import UserInterface

from .context import ApiServerContext


def make_ui(context: ApiServerContext, sessions: PageSessions | None) -> UserInterface | None:
    return None if sessions is None else UserInterface(read_page_files, sessions, context.clock.real)


def read_page_files() -> Mapping[str, bytes]:
    """Return the files of the page by their paths."""
    return dict(_read(files("mockube") / "ui", ""))


def _read(folder: Traversable, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _read(entry, f"{prefix}{entry.name}/")
        else:
            yield prefix + entry.name, entry.read_bytes()
