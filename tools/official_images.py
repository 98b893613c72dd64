"""Write which official images Docker Hub has, and which tags of them can exist, from a checkout of docker-library/official-images.

    python -m tools.official_images CHECKOUT

The checkout has the whole history: each tag that an image ever had is in a version of its file in `library/`.
"""

import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from mockube.container_runtime.images.releases import Releases

OUTPUT: Final = Path(__file__).parent.parent / "container_runtime/images/official_images.json"
_FILE: Final = "+++ b/library/"
_TAGS: Final = re.compile(r"\+(?:Shared)?Tags:(.*)")
_OLD_TAG: Final = re.compile(r"\+(\w[\w.-]*):\s*(?:git|https?)://\S+@")
"""A tag in the format that the files had until 2016."""
_TAG: Final = re.compile(r"\w[\w.-]*")
_VERSION: Final = re.compile(r"v?\d+(?:\.\d+)*")
_MINOR: Final = re.compile(r"v?\d+\.(\d+)")
_NOT_LIBRARIES: Final = frozenset(
    {"lightstreamer-server", "mosquitto", "notary-server", "notary-signer", "zend-php", "couchdb-nouveau"}
)
"""Files that were renamed before Docker Hub had them."""

_WITHOUT_LATEST: Final = ("consul", "elasticsearch", "jenkins", "kibana", "logstash", "vault")
"""Images whose tag `latest` Docker Hub has no longer."""
_DATE: Final = 10_000


def main() -> None:
    history = subprocess.run(
        ["git", "-C", sys.argv[1], "log", "-p", "-U0", "--no-color", "--no-renames", "--format=", "HEAD", "--", "library"],
        check=True, capture_output=True, text=True, errors="replace",
    ).stdout  # fmt: skip
    tags: dict[str, set[str]] = defaultdict(set)
    for image, tag in _tags(history.splitlines()):
        tags[image].add(tag)
    for image in _WITHOUT_LATEST:
        tags[image].discard("latest")
    images = {image: _releases(tags[image]) for image in sorted(tags.keys() - _NOT_LIBRARIES)}
    lines = ",\n".join(
        f" {msgspec.json.encode(image).decode()}: {msgspec.json.encode(releases).decode()}"
        for image, releases in images.items()
    )
    OUTPUT.write_text(f"{{\n{lines}\n}}\n")


def _tags(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each tag that a change added, with its image."""
    image = ""
    for line in lines:
        if line.startswith(_FILE):
            image = line.removeprefix(_FILE)
        elif line.startswith("diff "):
            image = ""
        elif image and (match := _TAGS.match(line) or _OLD_TAG.match(line)):
            yield from ((image, tag) for tag in map(str.strip, match[1].split(",")) if _TAG.fullmatch(tag))
        elif (
            image and re.fullmatch(r"\+\s+\w[\w.,\s-]*", line) and "," in line
        ):  # the tags of a line before it
            yield from ((image, tag) for tag in map(str.strip, line[1:].split(",")) if _TAG.fullmatch(tag))


def _releases(tags: Iterable[str]) -> Releases:
    newest: dict[tuple[str, int], list[int]] = {}
    words = set()
    for tag in tags:
        first, *others = tag.split("-")
        if _VERSION.fullmatch(first):
            prefix, numbers = (
                first[: first.startswith("v")],
                [int(part) for part in first.removeprefix("v").split(".")],
            )
            major = min(numbers[0], _DATE)  # the numbers of dates and of builds have no order that counts
            known = newest.setdefault((prefix, major), [])
            newest[prefix, major] = [
                max(pair) for pair in zip(*_same_length(known, numbers[1:]), strict=True)
            ]
        else:
            others.append(first)
        words.update(re.sub(r"\d+", "#", other) for other in others)
    minors = {match[1] for tag in tags if (match := _MINOR.match(tag))}
    has_zeros = any(len(minor) > 1 and minor.startswith("0") for minor in minors)
    texts = (
        ".".join(
            [
                f"{prefix}{major}",
                *(
                    f"{number:02}" if has_zeros and not place else str(number)
                    for place, number in enumerate(rest)
                ),
            ]
        )
        for (prefix, major), rest in sorted(newest.items())
    )
    has_months = has_zeros and all(len(minor) == 2 for minor in minors)
    return Releases(versions=tuple(texts), words=tuple(sorted(words)), has_months=has_months)


def _same_length(first: list[int], second: list[int]) -> tuple[list[int], list[int]]:
    length = max(len(first), len(second))
    return first + [0] * (length - len(first)), second + [0] * (length - len(second))


if __name__ == "__main__":
    main()
