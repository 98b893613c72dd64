"""The profile with which a store was made: it is kept beside the objects, so that a later start continues with the same cluster."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.apiserver.pki.private import write_private
from mockube.apiserver.stored_release import last_minor
from mockube.kubelet.installation import MAX_CONTROL_PLANES
from mockube.launch import KUBEADM, MINIMAL, PROFILES

FILE: Final = "profile"


class Profile(Struct, frozen=True):
    """What a cluster contains besides nodes for pods."""

    name: str
    control_planes: int = 1


def stored_profile(data_dir: Path) -> Profile | None:
    """Return the profile of a store; None if there are no objects. One that an earlier release has made is minimal."""
    try:
        name, _, count = (data_dir / FILE).read_text().strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return Profile(MINIMAL) if last_minor(data_dir) else None
    number = int(count) if count.isascii() and count.isdigit() else 1
    return Profile(name if name in PROFILES else MINIMAL, min(max(number, 1), MAX_CONTROL_PLANES))


def record_profile(data_dir: Path, profile: Profile) -> None:
    """Record the profile of a store."""
    count = f" {profile.control_planes}" if profile.name == KUBEADM else ""
    write_private(data_dir / FILE, f"{profile.name}{count}\n".encode())
