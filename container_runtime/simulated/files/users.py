"""The user that a container runs as, and the accounts that its image has. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.config.capabilities import DEFAULT_CAPABILITIES, capabilities_of
from mockube.container_runtime.config.environment import security_context
from mockube.container_runtime.images.table import ImageTable
from mockube.container_runtime.simulated.shell.access import ContainerUser
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileEntry

from .distributions import BUSYBOX, distribution_of

_ACCOUNTS: Final[Mapping[str, Mapping[str, int]]] = {
    "debian": {
        "root": 0, "daemon": 1, "bin": 2, "sys": 3, "sync": 4, "games": 5, "man": 6, "lp": 7, "mail": 8, "news": 9, "uucp": 10, "proxy": 13,
        "www-data": 33, "backup": 34, "list": 38, "irc": 39, "nobody": 65534,
    },
    "alpine": {
        "root": 0, "bin": 1, "daemon": 2, "lp": 4, "sync": 5, "shutdown": 6, "halt": 7, "mail": 8, "news": 9, "uucp": 10, "cron": 16, "ftp": 21,
        "sshd": 22, "games": 35, "ntp": 123, "guest": 405, "nobody": 65534,
    },
    BUSYBOX: {
        "root": 0, "daemon": 1, "bin": 2, "sys": 3, "sync": 4, "mail": 8, "www-data": 33, "operator": 37, "nobody": 65534,
    },
}  # fmt: skip
"""The accounts of base images, by distribution."""
_GROUPS: Final[Mapping[str, Mapping[str, int]]] = {
    "debian": {"root": 0, "daemon": 1, "adm": 4, "tty": 5, "disk": 6, "mail": 8, "www-data": 33, "shadow": 42, "staff": 50, "users": 100, "nogroup": 65534},
    "alpine": {
        "root": 0, "bin": 1, "daemon": 2, "sys": 3, "adm": 4, "tty": 5, "disk": 6, "wheel": 10, "floppy": 11, "dialout": 20, "tape": 26, "video": 27,
        "shadow": 42, "www-data": 82, "users": 100, "nobody": 65534,
    },
    BUSYBOX: {"root": 0, "daemon": 1, "bin": 2, "sys": 3, "tty": 5, "disk": 6, "wheel": 10, "www-data": 33, "users": 100, "nobody": 65534},
}  # fmt: skip
_GROUPS_OF_ROOT: Final[Mapping[str, tuple[int, ...]]] = {
    "debian": (), "alpine": (1, 2, 3, 4, 6, 10, 11, 20, 26, 27), BUSYBOX: (10,),
}  # fmt: skip
"""The groups of which /etc/group makes root a member, which a runtime adds."""
_SHADOW_MODES: Final[Mapping[str, int]] = {"debian": 0o640, "alpine": 0o640, BUSYBOX: 0o600}
_SHADOW_GROUPS: Final[Mapping[str, int]] = {"debian": 42, "alpine": 42, BUSYBOX: 0}
_SHELLS: Final = {"debian": "/bin/bash", "alpine": "/bin/sh", BUSYBOX: "/bin/sh"}
_NO_LOGIN: Final = {"debian": "/usr/sbin/nologin", "alpine": "/sbin/nologin", BUSYBOX: "/bin/false"}


def identity_of(images: ImageTable, pod: ReadOnlyTree, container: ReadOnlyTree) -> ContainerUser:
    """Return the user and the groups of a container: the pod's, else those of its image, else root.

    Without a group, it is that of the user's account in the image, or root's.
    """
    context = security_context(pod, container)
    user, group = context.get("runAsUser"), context.get("runAsGroup")
    if user is None:
        image = images.behavior_of(container)
        user = image.user if image is not None else None
    if group is None and user:
        image = images.behavior_of(container)
        own_group = image.group if image is not None and user == image.user else None
        group = own_group or (user if user in _own_accounts(images, container).values() else 0)
    groups = (context.get("fsGroup"), *(context.get("supplementalGroups") or ()))
    others = tuple(number for number in groups if number is not None)
    if not user and context.get("supplementalGroupsPolicy") != "Strict":
        others += tuple(
            number
            for number in _GROUPS_OF_ROOT[distribution_of(images, container).family]
            if number not in others
        )
    names = DEFAULT_CAPABILITIES if user else capabilities_of(context)
    return ContainerUser(user or 0, group or 0, others, None if names == DEFAULT_CAPABILITIES else names)


def _own_accounts(images: ImageTable, container: ReadOnlyTree) -> Mapping[str, int]:
    """Return the accounts that the image adds to those of its base; each has a group of the same name and number."""
    image = images.behavior_of(container)
    return {} if image is None else image.accounts


def user_names(images: ImageTable, container: ReadOnlyTree) -> dict[int, str]:
    """Return the names of the accounts of a container's image by their numbers."""
    base = _ACCOUNTS[distribution_of(images, container).family]
    return {number: name for name, number in {**base, **_own_accounts(images, container)}.items()}


def group_names(images: ImageTable, container: ReadOnlyTree) -> dict[int, str]:
    base = _GROUPS[distribution_of(images, container).family]
    return {number: name for name, number in {**base, **_own_accounts(images, container)}.items()}


def account_files(images: ImageTable, container: ReadOnlyTree) -> Iterator[tuple[str, FileEntry]]:
    """Yield /etc/passwd, /etc/shadow and /etc/group. A user whom the pod names needs no account, as with containerd."""
    family = distribution_of(images, container).family
    users = sorted(user_names(images, container).items())
    lines = [_account_line(number, name, family) for number, name in users]
    yield "/etc/passwd", FileEntry(data="".join(lines).encode())
    passwords = "".join(f"{name}:*:20000:0:99999:7:::\n" for _, name in users)
    yield (
        "/etc/shadow",
        FileEntry(data=passwords.encode(), mode=_SHADOW_MODES[family], group=_SHADOW_GROUPS[family]),
    )
    of_root = _GROUPS_OF_ROOT[family]
    lines = [
        f"{name}:x:{number}:{'root' if number in of_root else ''}\n"
        for number, name in sorted(group_names(images, container).items())
    ]
    yield "/etc/group", FileEntry(data="".join(lines).encode())


def _account_line(number: int, name: str, family: str) -> str:
    if number == 0:
        return f"root:x:0:0:root:/root:{_SHELLS[family]}\n"
    folder = "/nonexistent" if name == "nobody" else f"/home/{name}"
    return f"{name}:x:{number}:{number}:{name}:{folder}:{_NO_LOGIN[family]}\n"
