"""Which requests are those of clients, and which of these were refused or failed, those that are alike as one."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.command_client import AGENT
from mockube.explanations.facts import is_component

_USUAL: Final = (404, 409, 410)
"""What is not there, conflicts and expired versions belong to the usual course."""
_ERRORS_FROM: Final = 400
_CONTROL: Final = "control.mockube.dev"
_READS: Final = ("get", "list", "watch")


def is_own_call(request: ReadOnlyTree) -> bool:
    """Return whether with a request mockube's own commands looked at a cluster, or controlled it: it is no client's work."""
    spec, status = request["spec"], request.get("status") or {}
    is_read = spec.get("verb") in _READS and (status.get("code") or 0) < _ERRORS_FROM
    return spec.get("agent") == AGENT and (spec.get("group") == _CONTROL or is_read)


class Refusal(Struct, frozen=True, kw_only=True):
    """A request that was refused, and how many were alike."""

    name: str
    """That of the newest one."""
    request: ReadOnlyTree
    count: int = 1


def refusals(requests: Sequence[ReadOnlyTree]) -> Sequence[Refusal]:
    """Return the requests that were refused, the newest ones first."""
    found: dict[tuple[object, ...], Refusal] = {}
    for request in requests:
        if not _is_refused(request):
            continue
        spec, status = request["spec"], request["status"]
        fields = ("user", "verb", "group", "resource", "subresource", "namespace")
        key = (*map(spec.get, fields), status.get("code"), status.get("message"), status.get("fault"))
        before = found.pop(key, None)
        refusal = Refusal(name=meta.name(request), request=request)
        found[key] = refusal if before is None else replace(refusal, count=before.count + 1)
    return [*found.values()][::-1]


def _is_refused(request: ReadOnlyTree) -> bool:
    status = request.get("status") or {}
    code = status.get("code") or 0
    if status.get("isCut"):
        return True
    if code < _ERRORS_FROM:
        return False
    if status.get("fault"):
        return True
    return code not in _USUAL and not is_component(request["spec"].get("user", ""))
