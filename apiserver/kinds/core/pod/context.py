"""The context of the rules for a part of a pod's spec: the pod around it, and the options of the old pod.

Also the key by which the result for a spec is cached. Most pods are like the one before, but for their metadata. In
each, admission names one volume at random, which holds the pod's token; the key has a fixed name in its place.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeVar

import orjson
from msgspec import Struct

from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree


class PodValidationOptions(Struct, frozen=True, kw_only=True):
    """Each is true if the old pod already has the fault of that name."""

    deletion_cost: bool = False
    """Had a cost of its deletion that is no number."""
    huge_pages: bool = False
    """Asked for parts of huge pages."""
    selector_values: bool = False
    """Selected pods, for affinity, by values that no label can have."""
    node_affinity_values: bool = False
    """Selected nodes so."""
    spread_selectors: bool = False
    """Selected pods so, for spreading."""
    spread_label_keys: bool = False
    """Named keys of labels for spreading that its selector names too."""
    token_paths: bool = False
    """Had the file of a token lie outside its volume."""
    host_sysctls: bool = False
    """Set kernel parameters of the host."""
    selinux_policy: bool = False
    """Said how SELinux labels change."""
    comparisons: bool = False
    """Compared the values of taints as numbers."""
    host_network_users: bool = False
    """Had its own users in the host's network."""
    volume_devices: bool = False
    """Had its own users and devices."""
    restarting_resizes: bool = False
    """Had an init container, no sidecar, be restarted by a resize."""


STRICT = PodValidationOptions()


WINDOWS, LINUX = "windows", "linux"


class PodContext(Struct, frozen=True, kw_only=True):
    spec: ReadOnlyTree
    metadata: ReadOnlyTree | None
    """The metadata of a pod; None in a template."""
    volumes: Mapping[str, ReadOnlyTree]
    """The valid volumes by name."""
    claims: frozenset[str]
    """Names of claims to other resources than volumes."""
    options: PodValidationOptions

    @property
    def in_pod(self) -> bool:
        return self.metadata is not None

    @property
    def grace_period(self) -> int | None:
        return self.spec.get("terminationGracePeriodSeconds")

    @property
    def restart_policy(self) -> str:
        return self.spec.get("restartPolicy") or ""

    @property
    def host_users(self) -> bool:
        return self.spec.get("hostUsers") is not False

    @property
    def host_network(self) -> bool:
        return bool(self.spec.get("hostNetwork"))

    @property
    def os(self) -> str:
        return os_of(self.spec)


def os_of(spec: ReadOnlyTree) -> str:
    return (spec.get("os") or {}).get("name") or ""


def containers_of(spec: ReadOnlyTree, path: Path) -> Iterator[tuple[ReadOnlyTree, Path]]:
    """Yield every container and its path, in upstream's order."""
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for index, container in enumerate(spec.get(field) or ()):
            yield container, path.child(field).index(index)


Answer = TypeVar("Answer")

_MAX_SPECS: Final = 40
_MAX_SPEC_BYTES: Final = 16 * 1024
"""The size of the largest spec that is cached."""
_MAX_ITEMS: Final = 256
"""Of one list: a spec with more of them is larger than that."""

_PREFIX: Final = b"kube-api-access-"
_TOKEN: Final = re.compile(_PREFIX + rb"[a-z0-9]{5}")
_ANY_TOKEN: Final = b"kube-api-access-00000"


def is_large(spec: ReadOnlyTree) -> bool:
    """Whether a spec has so many items that it is not cached: to encode and parse all of it would take long."""
    return len(spec.get("containers") or ()) > _MAX_ITEMS or len(spec.get("volumes") or ()) > _MAX_ITEMS


def spec_cache_key(spec: ReadOnlyTree) -> bytes:
    """Return the spec's JSON with a fixed name, of the same length, for the volume of its token.

    Specs with the same key differ in that name only, so they are either all valid or all invalid.
    """
    text = orjson.dumps(spec)
    at = text.find(_PREFIX)  # much sooner than the pattern would be
    named = None if at < 0 else _TOKEN.search(text, at)
    if named is None or text.find(_ANY_TOKEN) >= 0:
        return text
    return text.replace(named[0], _ANY_TOKEN)


def cached_by_spec(function: Callable[[ReadOnlyTree], Answer]) -> Callable[[bytes], Answer]:
    """Cache a function of a spec by `spec_cache_key`. The function gets a tree of its own."""
    return memoize(_MAX_SPECS, max_length=_MAX_SPEC_BYTES)(lambda text: function(orjson.loads(text)))
