"""A user who writes a policy or a binding needs the permission to read the parameter objects that it names.

Upstream checks this in the storage of these kinds, as the last validation. So it cannot be disabled.
"""

from typing import Final

from msgspec import Struct

from mockube.apimachinery import errors, status
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.admission.plugin import WRITE, Plugin
from mockube.apiserver.admission.rules import Equivalents, rows_of_kind
from mockube.apiserver.authz.chain import Attributes, AuthorizerFailed, Decision
from mockube.apiserver.registry.registry import Backend, Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes, Operation
from mockube.apiserver.user import MASTERS, User

_GROUP: Final = "admissionregistration.k8s.io"
_POLICIES: Final = frozenset({"validatingadmissionpolicies", "mutatingadmissionpolicies"})
_POLICIES_OF: Final = {
    "validatingadmissionpolicybindings": "validatingadmissionpolicies",
    "mutatingadmissionpolicybindings": "mutatingadmissionpolicies",
}
"""By resource of bindings."""


class _Params(Struct, frozen=True):
    """The resource of parameters; `*` for what is not known, with the reason."""

    group: str = "*"
    version: str = "*"
    resource: str = "*"
    unknown: str = ""


class PolicyParamAccess(Plugin):
    operations = WRITE
    targets = frozenset((_GROUP, resource, "") for resource in (*_POLICIES, *_POLICIES_OF))

    def __init__(self, equivalents: Equivalents) -> None:
        self._equivalents = equivalents

    async def authorize(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        tree = attributes.object
        assert tree is not None
        field = "paramKind" if attributes.resource.name in _POLICIES else "paramRef"
        spec = tree.get("spec") or {}
        if spec.get(field) is None or MASTERS in attributes.context.user.groups:
            return
        if field == "paramKind":
            # A binding has pointers, which upstream compares: so the same paramRef is authorized at each update.
            old = (attributes.old or {}).get("spec") or {}
            if old.get(field) == spec[field] or _is_invalid(registry, attributes, tree):
                return
            problem = await self._policy_problem(registry, attributes.context.user, spec[field])
        else:
            if _is_invalid(registry, attributes, tree):
                return
            problem = await self._binding_problem(registry, attributes, spec)
        if problem:
            wrong = errors.forbidden(ROOT.child("spec", field), problem)
            raise status.invalid(attributes.resource.group_kind, tree["metadata"].get("name", ""), [wrong])

    async def _policy_problem(self, registry: Registry, user: User, kind: ReadOnlyTree) -> str:
        params = self._params(registry, kind)
        question = _question(user, "get", params, "*", "*")
        try:
            decision, _ = await registry.authorization.authorize(question)
        except AuthorizerFailed as error:
            return str(error)
        if decision is Decision.ALLOW:
            return ""
        named = f"(kind={kind.get('kind', '')}, apiVersion={kind.get('apiVersion', '')})"
        required = f'must have "get" permission on all objects of the referenced paramKind {named}'
        return f"user {_go_user(user)} {required}"

    async def _binding_problem(self, registry: Registry, attributes: AdmissionAttributes, spec: Tree) -> str:
        user, reference, policy_name = attributes.context.user, spec["paramRef"], spec.get("policyName", "")
        is_validating = attributes.resource.name.startswith("validating")
        resource = GroupResource(_GROUP, _POLICIES_OF[attributes.resource.name])
        stored = await registry.find(registry.rows[resource], "", policy_name)
        if stored is None:
            params = _Params(unknown=f"get policy {policy_name}")
        else:
            kind = stored.tree()["spec"].get("paramKind")
            params = _Params() if kind is None else self._params(registry, kind)
        verb = "get" if reference.get("name") else "list"
        name, namespace = reference.get("name", ""), reference.get("namespace", "")
        try:
            decision, _ = await registry.authorization.authorize(
                _question(user, verb, params, namespace, name)
            )
        except AuthorizerFailed as error:
            return f"failed to authorize request: {error}" if is_validating else str(error)
        if decision is Decision.ALLOW:
            return ""
        if params.unknown:
            lacks = f'user {_go_user(user)} does not have "{verb}" permission for all groups, versions and resources'
            return f"unable to {params.unknown} to determine minimum required permissions and {lacks}"
        # Upstream swaps the two for mutating ones.
        parts = (_go_user(user), verb) if is_validating else (verb, _go_user(user))
        return f'user {parts[0]} does not have "{parts[1]}" permission on the object referenced by paramRef'

    def _params(self, backend: Backend, kind: ReadOnlyTree) -> _Params:
        """Return the resource of a paramKind."""
        api_version, name = kind.get("apiVersion", ""), kind.get("kind", "")
        kind_text = f"paramKind &{{{api_version} {name}}}"
        if api_version.count("/") > 1:
            return _Params(unknown=f"parse {kind_text}")
        group, _, version = api_version.rpartition("/")
        rows = rows_of_kind(backend, self._equivalents, api_version, name)
        if not rows:
            return _Params(group, version, unknown=f"resolve {kind_text}")
        return _Params(group, version, rows[0].name)


def _is_invalid(registry: Registry, attributes: AdmissionAttributes, tree: Tree) -> bool:
    """Return whether validation refuses the object: only a valid one is authorized."""
    rules, resource = registry.scheme.rules, attributes.resource
    if attributes.operation is Operation.CREATE:
        return bool(rules.check_create(resource, tree))
    assert attributes.old is not None
    return bool(rules.check_update(resource, "", tree, attributes.old))


def _question(user: User, verb: str, params: _Params, namespace: str, name: str) -> Attributes:
    return Attributes(
        user=user,
        verb=verb,
        group=params.group,
        version=params.version,
        resource=params.resource,
        namespace=namespace,
        name=name,
    )


def _go_user(user: User) -> str:
    """Format a user as Go prints its struct."""
    extra = " ".join(f"{key}:[{' '.join(values)}]" for key, values in sorted(user.extra.items()))
    return f"&{{{user.name} {user.uid} [{' '.join(user.groups)}] map[{extra}]}}"
