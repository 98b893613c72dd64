"""Permissions for ResourceClaims besides those of their requests.

Admin access to devices in use is allowed only in namespaces with a label. A change of the status needs permissions for the
parts that it changes: `resourceclaims/binding` for the allocation, and `resourceclaims/driver` for each driver's devices.
Upstream checks this in the storage of claims, and reports it before the errors of validation. So it cannot be disabled.
"""

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import errors, meta, names, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import NAMESPACES
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.serviceaccount.claims import split_username
from mockube.apiserver.authz.chain import Attributes, AuthorizerFailed, Decision, forbidden
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.user import User

from .plugin import WRITE, Plugin, wait_for_earlier_writes

_GROUP: Final = "resource.k8s.io"
_NODE_NAME: Final = "authentication.kubernetes.io/node-name"
_CLAIMS, _TEMPLATES = "resourceclaims", "resourceclaimtemplates"
_LABEL: Final = "resource.kubernetes.io/admin-access"
_ADMIN: Final = "adminAccess"
_PROBLEM: Final = f"admin access to devices requires the `{_LABEL}: true` label on the containing namespace"
_ALLOCATION, _DEVICES = ROOT.child("status", "allocation"), ROOT.child("status", "devices")


class ResourceClaimAccess(Plugin):
    """`authorizes_status` is whether changes of the status need permissions for their parts, as from 1.36 on."""

    operations = WRITE
    targets = frozenset({(_GROUP, _CLAIMS, ""), (_GROUP, _CLAIMS, "status"), (_GROUP, _TEMPLATES, "")})

    def __init__(self, *, authorizes_status: bool) -> None:
        self._authorizes_status = authorizes_status

    async def authorize(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        tree, resource = attributes.object, attributes.resource
        assert tree is not None
        wrong = [error async for error in _admin_access_errors(registry, attributes, tree)]
        if self._authorizes_status and attributes.subresource == "status":
            wrong += [error async for error in _status_errors(registry, attributes, tree)]
        if not wrong:
            return
        rules = registry.scheme.rules
        if attributes.operation is Operation.CREATE:
            wrong += rules.check_create(resource, tree)
        else:
            assert attributes.old is not None
            wrong += rules.check_update(resource, attributes.subresource, tree, attributes.old)
        raise status.invalid(resource.group_kind, meta.name(tree), wrong)


async def _admin_access_errors(
    registry: Registry, attributes: AdmissionAttributes, tree: Tree
) -> AsyncIterator[FieldError]:
    path = _admin_access_path(attributes, tree)
    if path is None:
        return
    await wait_for_earlier_writes(registry, attributes)
    namespace = registry.find_cached(NAMESPACES, "", attributes.namespace)
    if namespace is None or meta.labels(namespace.tree()).get(_LABEL) != "true":
        yield errors.forbidden(path, _PROBLEM)


def _admin_access_path(attributes: AdmissionAttributes, tree: Tree) -> Path | None:
    """Return the path of admin access in a new spec or a first allocation; None if there is none."""
    if attributes.operation is Operation.CREATE:
        spec = tree.get("spec") or {}
        spec = spec if attributes.resource.name == _CLAIMS else spec.get("spec") or {}
        requests = (spec.get("devices") or {}).get("requests") or ()
        first = _first_with_access(request.get("exactly") or {} for request in requests)
        return None if first is None else ROOT.child("spec", "devices", "requests").index(first).child(_ADMIN)
    if attributes.subresource != "status" or _first_with_access(_results(attributes.old or {})) is not None:
        return None
    first = _first_with_access(_results(tree))
    results_path = _ALLOCATION.child("devices", "results")
    return None if first is None else results_path.index(first).child(_ADMIN)


def _results(claim: Tree) -> list[Tree]:
    allocation: Any = (claim.get("status") or {}).get("allocation") or {}
    return (allocation.get("devices") or {}).get("results") or []


def _first_with_access(members: Iterable[Tree]) -> int | None:
    return next((index for index, member in enumerate(members) if member.get(_ADMIN)), None)


async def _status_errors(
    registry: Registry, attributes: AdmissionAttributes, tree: Tree
) -> AsyncIterator[FieldError]:
    """Yield the errors of changes of the status that the user may not make."""
    new, old = tree.get("status") or {}, (attributes.old or {}).get("status") or {}
    context = attributes.context
    question = Attributes(
        user=context.user,
        verb=context.verb,
        group=_GROUP,
        version=context.resource.version,
        resource=_CLAIMS,
        subresource="binding",
    )
    if _binding(new) != _binding(old) and (problem := await _refusal(registry, question)):
        required = f'resource="resourceclaims/binding", verb="{context.verb}" permission'
        changing = "changing status.allocation or status.reservedFor requires"
        yield errors.forbidden(_ALLOCATION, f"{changing} {required}: {problem}")
    if new.get("allocation") is None:
        return  # the devices of a claim without an allocation are dropped
    verbs = _driver_verbs(context.user, new["allocation"], context.verb)
    for driver in sorted(_changed_drivers(new, old)):
        of_driver = replace(question, subresource="driver", namespace=attributes.namespace, name=driver)
        problems = [await _refusal(registry, replace(of_driver, verb=verb)) for verb in verbs]
        if all(problems):
            required = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
            yield errors.forbidden(_DEVICES, f"changing status.devices requires {required}: {problems[0]}")


def _binding(claim_status: Tree) -> tuple[Any, Any]:
    return claim_status.get("allocation"), claim_status.get("reservedFor") or []


async def _refusal(registry: Registry, question: Attributes) -> str:
    """Return why a permission is refused; "" if it is granted."""
    try:
        decision, reason = await registry.authorization.authorize(question)
    except AuthorizerFailed as error:
        decision, reason = error.decision, f"{error}: {error.reason}" if error.reason else str(error)
    return "" if decision is Decision.ALLOW else str(forbidden(question, reason))


def _driver_verbs(user: User, allocation: Tree, verb: str) -> list[str]:
    """Return the verbs, one of which is required: an account whose token is bound to the allocated node has one more."""
    node = _allocated_node(allocation)
    is_on_node = bool(node) and not names.check_dns1123_subdomain(node)
    is_on_node = is_on_node and split_username(user.name) is not None
    if is_on_node and list(user.extra.get(_NODE_NAME, ())) == [node]:
        return [f"associated-node:{verb}", f"arbitrary-node:{verb}"]
    return [f"arbitrary-node:{verb}"]


def _allocated_node(allocation: Tree) -> str:
    """Return the node for which an allocation is; "" if it is not for exactly one."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or ()) != 1:
        return ""
    (field,) = terms[0]["matchFields"]
    values: list[str] = field.get("values") or []
    is_name = field.get("key") == "metadata.name" and field.get("operator") == "In"
    return values[0] if is_name and len(values) == 1 else ""


def _changed_drivers(new: Tree, old: Tree) -> Iterator[str]:
    """Yield the drivers of devices that were added, changed or removed."""
    before = {_key(device): device for device in old.get("devices") or ()}
    drivers = set()
    for device in new.get("devices") or ():
        if before.pop(_key(device), None) != device:
            drivers.add(device.get("driver", ""))
    yield from drivers | {device.get("driver", "") for device in before.values()}


def _key(device: Tree) -> tuple[str, ...]:
    return tuple(device.get(name) or "" for name in ("driver", "pool", "device", "shareID"))
