"""Which user may do what with a file: owners and modes, as Linux checks them. Pure."""

from typing import Final, NamedTuple

from mockube.container_runtime.config.capabilities import DEFAULT_CAPABILITIES

READ: Final = 4
WRITE: Final = 2
SEARCH: Final = 1
"""The right to use the entries of a directory, and to execute a file."""
SET_GROUP: Final = 0o2000
"""The bit of a directory whose new files belong to its group."""
STICKY: Final = 0o1000
"""The bit of a directory whose files only their owners remove."""
DEFAULT_UMASK: Final = 0o022


class ContainerUser(NamedTuple):
    """The user and the groups that a container runs as."""

    user: int = 0
    group: int = 0
    others: tuple[int, ...] = ()
    """The supplementary groups."""
    capabilities: frozenset[str] | None = None
    """What the container has instead of the default; only programs of root have it, because others start without any."""

    def has(self, capability: str) -> bool:
        """Return whether its programs have a capability, such as CHOWN."""
        if self.user:
            return False
        return capability in (DEFAULT_CAPABILITIES if self.capabilities is None else self.capabilities)


ROOT: Final = ContainerUser()


def is_allowed(identity: ContainerUser, owner: int, group: int, mode: int, rights: int) -> bool:
    """Return whether a user has the rights `rights` on a file; root has them all, but executes no file that nobody may.

    It has them by the capability DAC_OVERRIDE, without which it is a user like any other.
    """
    if identity.has("DAC_OVERRIDE"):
        return rights != SEARCH or bool(mode & 0o111)
    if rights == READ and identity.has("DAC_READ_SEARCH"):
        return True
    if identity.user == owner:
        granted = mode >> 6
    elif group == identity.group or group in identity.others:
        granted = mode >> 3
    else:
        granted = mode
    return granted & rights == rights
