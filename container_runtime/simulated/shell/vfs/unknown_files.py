"""What an image may have and nobody knows: a path without an entry may be a file of the image, or one that its program has written."""

from collections.abc import Callable
from posixpath import dirname

from .image_folders import EMPTY_FOLDERS, ImagePlaces
from .mount_table import MountTable


class UnknownFiles:
    """The unknown files of a container.

    If `is_partial`, paths without an entry may be files of the unknown image: they are read as empty files. Paths in
    one of the `volumes` are known. Without `places`, the image may have files anywhere.
    """

    def __init__(
        self,
        mounts: MountTable,
        *,
        is_partial: bool = False,
        volumes: tuple[str, ...] = (),
        places: ImagePlaces | None = None,
    ) -> None:
        self.mounts = mounts
        self.is_partial = is_partial
        self.places = places
        self.guesses = 0
        """How often it was asked for a path whose file may be the image's or the run-time's, and is not here."""
        self.error_of: Callable[[str], Exception | None] = lambda _: None
        """Returns the error of a read of a path without a file, if what is not simulated may have written it."""
        self._volumes = tuple(f"{path.rstrip('/')}/" for path in volumes)

    @property
    def known_folders(self) -> tuple[str, ...]:
        """The folders of which all files are known: volumes with the files of API objects."""
        return tuple(path.rstrip("/") for path in self._volumes)

    @property
    def has_known_places(self) -> bool:
        """Whether it is known where the image has files."""
        return self.places is None or self.places.possible is not None

    def may_exist(self, path: str) -> bool:
        """Return whether a path without an entry may be in the image."""
        if not self.is_partial or path.startswith((*self._volumes, *EMPTY_FOLDERS)):
            return False
        self._note_guess(path)
        if path.startswith("/proc/") and path[6:7].isdigit() and not path.startswith("/proc/1/"):
            return False  # Images have no processes; the first one is the container's own.
        possible = None if self.places is None else self.places.possible
        if possible is not None and not f"{path}/".startswith(possible):
            return False
        if self.places is not None and self.places.lacks(path) and not self.is_mounted(path):
            return False
        whiteouts = self.mounts.inodes.whiteouts
        if whiteouts and any(path == removed or path.startswith(f"{removed}/") for removed in whiteouts):
            return False
        return not self.is_in_volume(path) and (not self.mounts.has_mounts or self.mounts.find(path) is None)

    def may_have_folder(self, path: str) -> bool:
        """Return whether a folder without an entry may be in the image, or is above one that may be."""
        possible = None if self.places is None else self.places.possible
        is_above = possible is not None and any(place.startswith(f"{path}/") for place in possible)
        return is_above or self.may_exist(path)

    def is_expected(self, path: str) -> bool:
        """Return whether a path without an entry counts as one in the image: who tests a file does not know that it exists."""
        is_usual = self.places is None or f"{path}/".startswith(self.places.usual)
        return is_usual and self.may_exist(path)

    def is_present(self, path: str) -> bool:
        """Return whether a path without an entry counts as one that has an entry."""
        del path
        return False

    def is_mounted(self, path: str) -> bool:
        """Return whether a path is in a volume."""
        volumes = () if self.places is None else self.places.volumes
        return path.startswith(volumes) or self.mounts.find(path) is not None

    def is_in_volume(self, path: str) -> bool:
        """Return whether a path is in a read-only volume, all of whose files are known."""
        assert path.startswith("/"), path  # A relative path has no folder that is known.
        entries = self.mounts.inodes.entries
        parent = dirname(path)
        while parent not in entries:
            parent = dirname(parent)
        return entries[parent].read_only

    def hides(self, path: str) -> bool:
        """Return whether a volume hides what the image has at a path, and no program that is not simulated may have written there."""
        is_hidden = f"{path}/".startswith(self._volumes) or (
            self.mounts.has_mounts and self.mounts.find(path) is not None
        )
        return is_hidden and self.error_of(path) is None

    def refuse(self, error_of: Callable[[str], Exception | None]) -> None:
        """Have a read of a path without a file raise the error of the path."""
        self.error_of = error_of

    def check_listing(self, path: str) -> None:
        """Raise an error if nobody knows the names in a folder, and the caller needs them all."""

    def note_listing(self, path: str) -> None:
        """Note that the names of a folder in no mount are listed, and the image may have more."""
        if self.is_partial and not f"{path}/".startswith((*self._volumes, *EMPTY_FOLDERS)):
            self._note_guess(path)

    def _note_guess(self, path: str) -> None:
        self.guesses += not path.startswith("/dev/")
