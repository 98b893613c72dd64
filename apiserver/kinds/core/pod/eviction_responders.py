"""Validation of a pod's eviction responders, which react to an eviction before the pod is evicted."""

from collections.abc import Iterable, Iterator
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common.checks import max_items
from mockube.apiserver.kinds.common.declared import as_declared

from .context import PodContext

_MAX_RESPONDERS: Final = max_items(10)
_MAX_PRIORITY: Final = 100_000
_RESERVED_PRIORITIES: Final = range(1000)
_RESERVED_DOMAINS: Final = ("k8s.io", "kubernetes.io")


def check_eviction_responders(pod_context: PodContext, path: Path) -> Iterator[FieldError]:
    responders = pod_context.spec.get("evictionResponders") or ()
    if not responders:
        return
    if pod_context.spec.get("schedulingGroup") is not None:
        detail = "may not be set when evictionResponders is set"
        yield errors.forbidden(path.child("schedulingGroup"), detail)
    path = path.child("evictionResponders")
    too_many = [*_MAX_RESPONDERS(responders, path)]
    yield from as_declared(too_many or _check_all(responders, path))


def _check_all(responders: Iterable[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, responder in enumerate(responders):
        if responder.get("name", "") in seen:
            yield errors.duplicate(path.index(index), responder)
        seen.add(responder.get("name", ""))
    for index, responder in enumerate(responders):
        yield from _check_name(responder.get("name", ""), path.index(index).child("name"))
        yield from _check_priority(responder.get("priority"), path.index(index).child("priority"))


def _check_name(name: str, path: Path) -> Iterator[FieldError]:
    """Check a label key with a domain that is not Kubernetes' own."""
    if not name:
        yield errors.required(path)
        return
    domain = name.partition("/")[0].lower().strip().rstrip(".")
    if any(f".{domain}".endswith(f".{reserved}") for reserved in _RESERVED_DOMAINS):
        yield errors.invalid(path, name, "domain names *.k8s.io, *.kubernetes.io are reserved")
    problems = names.check_label_key(name)
    if not problems and "/" not in name:
        problems = ["must include a prefix (e.g. 'example.com/key')"]
    for problem in problems:
        yield errors.invalid(path, name, problem)


def _check_priority(priority: int | None, path: Path) -> Iterator[FieldError]:
    if priority is None:
        yield errors.required(path)
        return
    if priority in _RESERVED_PRIORITIES:
        problem = "priorities 0-999 are reserved for responders with *.k8s.io suffix"
        yield errors.invalid(path, priority, problem)
    if priority > _MAX_PRIORITY:
        yield errors.invalid(path, priority, f"must be less than or equal to {_MAX_PRIORITY}")
    if priority < 0:
        yield errors.invalid(path, priority, "must be greater than or equal to 0")
