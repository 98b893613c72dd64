"""Validation of a pod's spec, in upstream's order, and the cache of results for recent specs.

Most pods differ from the previous one in their metadata only. Admission gives the volume with the pod's token a random
name; the key of the cache has a fixed name in its place.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Final, TypeAlias, TypeVar

import orjson

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import (
    Check,
    all_of,
    between,
    each_item,
    field,
    one_of,
    optional,
    pointer,
    report,
    require,
    required_one_of,
)
from mockube.apiserver.kinds.common.objectmeta import check_label_name, check_labels
from mockube.apiserver.kinds.common.validation_context import forbids_privileged, is_before

from . import containers, context, network, resources
from .context import PodContext, PodValidationOptions
from .env import check_file_volumes
from .eviction_responders import check_eviction_responders
from .scheduling import check_affinity, check_spread_constraints, check_tolerations
from .security import check_pod_security_context
from .volumes import check_volumes
from .windows import check_host_processes, check_linux_pod, check_windows_pod

Part: TypeAlias = Callable[[PodContext, Path], Iterable[FieldError]]
"""Checks a part of a spec, at the spec's path."""

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"

_LABEL: Final = report(names.check_dns1123_label)
_SUBDOMAIN: Final = report(names.check_dns1123_subdomain)


def without_context(*checks: Check) -> Part:
    """Return a part that checks fields without the pod's context."""
    check = all_of(*checks)
    return lambda pod_context, path: check(pod_context.spec, path)


# --- other parts


def _check_affinity(pod_context: PodContext, path: Path) -> Iterable[FieldError]:
    affinity = pod_context.spec.get("affinity")
    return () if affinity is None else check_affinity(affinity, path.child("affinity"), pod_context.options)


def _check_spreading(pod_context: PodContext, path: Path) -> Iterable[FieldError]:
    constraints = pod_context.spec.get("topologySpreadConstraints", ())
    return check_spread_constraints(constraints, path.child("topologySpreadConstraints"), pod_context.options)


def _check_tolerations(pod_context: PodContext, path: Path) -> Iterable[FieldError]:
    tolerations = pod_context.spec.get("tolerations", ())
    return check_tolerations(tolerations, path.child("tolerations"), compared=pod_context.options.comparisons)


def _check_overhead(pod_context: PodContext, path: Path) -> Iterable[FieldError]:
    """Check the overhead of a pod like limits."""
    overhead = pod_context.spec.get("overhead")
    return (
        resources.check_requirements({"limits": overhead}, path.child("overhead"), pod_context)
        if overhead
        else ()
    )


def _check_gates(gates: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates or ()):
        name = gate.get("name", "")
        yield from check_label_name(name, path.index(index))
        if name in seen:
            yield errors.duplicate(path.index(index), name)
        seen.add(name)


def _check_os(pod_context: PodContext, path: Path) -> Iterable[FieldError]:
    os = pod_context.spec.get("os")
    if os is None:
        return ()
    if not os.get("name"):
        return (errors.required(path.child("os", "name")),)
    check = {context.LINUX: check_linux_pod, context.WINDOWS: check_windows_pod}.get(os["name"])
    if check is None:
        return (errors.not_supported(path.child("os"), os["name"], (context.LINUX, context.WINDOWS)),)
    return check(pod_context.spec, path)


def _check_file_variables(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    volumes = {volume.get("name", ""): volume for volume in pod_context.spec.get("volumes", ())}
    for container, container_path in context.containers_of(pod_context.spec, path):
        yield from check_file_volumes(volumes, container.get("env", ()), container_path.child("env"))


# --- all of it

_PARTS: Final[tuple[Part, ...]] = (
    containers.check_containers,
    containers.check_init_containers,
    containers.check_ephemeral_containers,
    resources.check_pod_resources,
    containers.check_host_network_ports,
    without_context(
        require("restartPolicy", one_of(ALWAYS, ON_FAILURE, NEVER)),
        network.check_dns_policy,
        field("nodeSelector", check_labels),
    ),
    check_pod_security_context,
    _check_affinity,
    without_context(
        network.check_dns_config,
        field("readinessGates", each_item(field("conditionType", check_label_name, absent=""))),
        field("schedulingGates", _check_gates),
    ),
    _check_spreading,
    check_host_processes,
    network.check_host_users,
    without_context(
        network.check_hostname_override,
        optional("serviceAccountName", _SUBDOMAIN),
        optional("nodeName", _SUBDOMAIN),
        pointer("activeDeadlineSeconds", between(1, 2**31 - 1)),
        optional("hostname", _LABEL),
        optional("subdomain", _LABEL),
    ),
    _check_tolerations,
    without_context(
        field("hostAliases", network.check_host_aliases),
        optional("priorityClassName", _SUBDOMAIN),
        pointer("runtimeClassName", _SUBDOMAIN),
        pointer("preemptionPolicy", required_one_of("PreemptLowerPriority", NEVER)),
    ),
    _check_overhead,
    _check_os,
    _check_file_variables,
    check_eviction_responders,
)


# --- the cache of results

Answer = TypeVar("Answer")

_MAX_SPECS: Final = 40
_MAX_SPEC_BYTES: Final = 16 * 1024
"""The size of the largest spec that is cached."""
_MAX_ITEMS: Final = 256
"""The maximum length of a list in a spec that is cached: with more items, the spec is larger than `_MAX_SPEC_BYTES`."""

_PREFIX: Final = b"kube-api-access-"
_TOKEN: Final = re.compile(_PREFIX + rb"[a-z0-9]{5}")
_ANY_TOKEN: Final = b"kube-api-access-00000"


def is_large(spec: ReadOnlyTree) -> bool:
    """Return whether a spec has too many items to be cached: encoding and parsing it would take long."""
    return len(spec.get("containers") or ()) > _MAX_ITEMS or len(spec.get("volumes") or ()) > _MAX_ITEMS


def spec_cache_key(spec: ReadOnlyTree) -> bytes:
    """Return the spec's JSON with a fixed name, of the same length, for the volume of its token.

    Specs with the same key differ in that name only, so they are either all valid or all invalid.
    """
    text = orjson.dumps(spec)
    start = text.find(_PREFIX)  # much faster than a search for the pattern
    named = None if start < 0 else _TOKEN.search(text, start)
    if named is None or text.find(_ANY_TOKEN) >= 0:
        return text
    return text.replace(named[0], _ANY_TOKEN)


def cached_by_spec(function: Callable[[ReadOnlyTree], Answer]) -> Callable[[bytes], Answer]:
    """Cache a function of a spec by `spec_cache_key`. The function gets a tree of its own."""
    return memoize(_MAX_SPECS, max_length=_MAX_SPEC_BYTES)(lambda text: function(orjson.loads(text)))


_BY_METADATA: Final = (b'"ephemeral":', b'"resourceClaims":')
"""Fields in the text of a spec whose validity depends on the pod's metadata."""


def _is_valid(metadata: ReadOnlyTree | None, spec: ReadOnlyTree) -> bool:
    """Return whether a spec is valid with any metadata of its pod."""
    text = orjson.dumps(spec)
    return not any(part in text for part in _BY_METADATA) and not any(
        _check_all(spec, metadata, ROOT, context.STRICT)
    )


_CHANGED_IN: Final = ("1.36", "1.37")
"""The minors in which other specs are valid than before."""
_CACHES: Final = {
    key: cached_by_spec(partial(_is_valid, {} if key[0] else None))
    for key in product((True, False), range(len(_CHANGED_IN) + 1), (True, False))
}
"""By whether a spec is of a pod, by the number of changes since its minor, and by whether the cluster forbids privileged containers:
other specs are valid in each.
"""


def check_pod_spec(
    spec: ReadOnlyTree, metadata: ReadOnlyTree | None, path: Path, options: PodValidationOptions
) -> Iterable[FieldError]:
    """Check a pod spec. `metadata` is a pod's; None in a template. Recent valid specs are cached."""
    if options == context.STRICT and not is_large(spec):
        changes = sum(map(is_before, _CHANGED_IN))
        is_valid = _CACHES[metadata is not None, changes, forbids_privileged()]
        if is_valid(spec_cache_key(spec)):
            return ()
    return _check_all(spec, metadata, path, options)


def _check_all(
    spec: ReadOnlyTree, metadata: ReadOnlyTree | None, path: Path, options: PodValidationOptions
) -> Iterator[FieldError]:
    if spec.get("terminationGracePeriodSeconds") is None:
        yield errors.required(path.child("terminationGracePeriodSeconds"))
    volumes, volume_errors = check_volumes(spec, metadata, path, options)
    yield from volume_errors
    yield from resources.check_resource_claims(spec, metadata, path)
    pod_context = PodContext(
        spec=spec, metadata=metadata, volumes=volumes, claims=resources.claim_names(spec), options=options
    )
    for part in _PARTS:
        yield from part(pod_context, path)
