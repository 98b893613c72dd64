"""The distribution that an image is based on, as its name and tag say, and the file that describes it. Pure."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from mockube.container_runtime.images.table import Image, ImageTable

BUSYBOX: Final = "busybox"
_DEBIAN: Final = "debian"


class Distribution(NamedTuple):
    family: str
    """debian, alpine or busybox: whose programs and accounts the image has."""
    os_release: str
    """The content of /etc/os-release; "" if there is none."""


def _os_release(name: str, identifier: str, version: str, title: str, url: str) -> str:
    return (
        f'PRETTY_NAME="{title}"\nNAME="{name}"\nVERSION_ID="{version}"\nID={identifier}\nHOME_URL="{url}"\n'
    )


_ALPINE: Final = Distribution(
    "alpine",
    'NAME="Alpine Linux"\nID=alpine\nVERSION_ID=3.22.1\nPRETTY_NAME="Alpine Linux v3.22"\nHOME_URL="https://alpinelinux.org/"\n'
    'BUG_REPORT_URL="https://gitlab.alpinelinux.org/alpine/aports/-/issues"\n',
)
_BUSYBOX: Final = Distribution(BUSYBOX, "")
_UBUNTU: Final = Distribution(
    _DEBIAN, _os_release("Ubuntu", "ubuntu", "24.04", "Ubuntu 24.04 LTS", "https://www.ubuntu.com/")
)
_DEBIAN_RELEASE: Final = Distribution(
    _DEBIAN,
    _os_release(
        "Debian GNU/Linux", _DEBIAN, "12", "Debian GNU/Linux 12 (bookworm)", "https://www.debian.org/"
    ),
)
_UNKNOWN: Final = Distribution(_DEBIAN, "")


@lru_cache(maxsize=4096)
def _distribution_of_image(image: str, entry: Image | None) -> Distribution:
    repository, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    if repository == "alpine" or "alpine" in tag.split("-") or tag.startswith("alpine"):
        return _ALPINE
    if repository == BUSYBOX:
        return _BUSYBOX
    if repository == "ubuntu":
        return _UBUNTU
    if entry is None:
        return _UNKNOWN
    return _ALPINE if "alpine" in (entry.programs or ()) else _DEBIAN_RELEASE


def distribution_of(images: ImageTable, container: Mapping[str, Any]) -> Distribution:
    return _distribution_of_image(container.get("image") or "", images.behavior_of(container))
