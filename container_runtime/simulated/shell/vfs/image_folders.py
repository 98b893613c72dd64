"""The folders of images: which an image has in any case, whose they are, and where its files may be. Pure."""

from typing import Final, NamedTuple

from .file_entry import FileEntry

EMPTY_FOLDERS: Final = ("/tmp/", "/run/secrets", "/var/run/secrets")  # noqa: S108 - of a simulated container
"""The beginnings of paths that images do not have: those of secrets exist only where something is mounted."""
_FOLDERS_OF_ROOT: Final = (
    "/bin/", "/boot/", "/lib/", "/lib64/", "/proc/", "/root/", "/sbin/", "/sys/", "/usr/bin/", "/usr/lib/", "/usr/local/bin/", "/usr/local/lib/",
    "/usr/sbin/", "/usr/share/",
)  # fmt: skip
"""Folders that are root's in every image, with all that is in them."""
_FOLDER_OF_ROOT: Final = frozenset(
    ["/", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/srv", "/usr", "/usr/local", "/var", "/var/cache", "/var/lib", "/var/log"]
)  # fmt: skip
"""Folders that are root's in every image, and may contain others that are not."""


class ImagePlaces(NamedTuple):
    """The beginnings of paths at which an image has files that are not known."""

    usual: tuple[str, ...] = ()
    """Where a test finds a file."""
    possible: tuple[str, ...] | None = None
    """Where a file can be read; None: anywhere."""
    volumes: tuple[str, ...] = ()
    """Where volumes are mounted, whose files may not be known."""
    folders: tuple[str, ...] = ()
    """The folders that are there in any case."""
    listed: tuple[tuple[str, frozenset[str]], ...] = ()
    """Folders, each with a slash at its end, with the names of all that the image may have in it."""

    def lacks(self, path: str) -> bool:
        """Return whether a folder of the image that contains a path has other names only."""
        return any(
            path.startswith(folder) and path[len(folder) :].partition("/")[0] not in names
            for folder, names in self.listed
        )


def guessed_folder(path: str) -> FileEntry:
    """Return the entry of a folder that an image has where nobody knows its owner and its mode."""
    is_of_root = path in _FOLDER_OF_ROOT or f"{path}/".startswith(_FOLDERS_OF_ROOT)
    mode = 0o700 if path == "/root" else 0o755
    return FileEntry(mode=mode, is_guess=not is_of_root)
