"""All roles and bindings of the watch cache, indexed by their subjects."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import orjson

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.tree import Tree
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import SERVICE_ACCOUNT, User

from .rules import RuleSet

GROUP: Final = "rbac.authorization.k8s.io"
ROLES, CLUSTER_ROLES = "roles", "clusterroles"
ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS = "rolebindings", "clusterrolebindings"
USER, GROUP_OF_USERS, ACCOUNT = "User", "Group", "ServiceAccount"
"""The kinds of subjects."""
ROLE_RESOURCES: Final = {"Role": ROLES, "ClusterRole": CLUSTER_ROLES}
"""By the kind in a binding's roleRef."""
RESOURCES: Final = (ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS)

Subject = tuple[str, str]
"""User or Group, and its name. A service account is a user."""


class NoRole(Exception):
    """The role that a binding refers to does not exist."""

    def __init__(self, resource: str, name: str) -> None:
        # Upstream's lister names the resource in the singular.
        super().__init__(f"{resource.removesuffix('s')}.{GROUP} {quote(name)} not found")
        self.name = name


class Binding:
    __slots__ = ("_subjects", "_trees", "name", "namespace", "role")

    def __init__(self, tree: Tree) -> None:
        metadata, role = tree["metadata"], tree["roleRef"]
        self.name: str = metadata["name"]
        self.namespace: str = metadata.get("namespace", "")
        self.role: Subject = role["kind"], role["name"]
        self._trees: Sequence[Tree] = tree.get("subjects") or ()
        self._subjects: dict[Subject, int] = {}
        """The index of the first entry for each subject."""
        for index, subject in enumerate(self._trees):
            key = self._key(subject)
            if key is not None:
                self._subjects.setdefault(key, index)

    def _key(self, subject: Tree) -> Subject | None:
        kind, name = subject.get("kind", ""), subject.get("name", "")
        if kind in (USER, GROUP_OF_USERS):
            return kind, name
        namespace = subject.get("namespace") or self.namespace
        is_account = kind == ACCOUNT and bool(namespace)
        return (USER, f"{SERVICE_ACCOUNT}{namespace}:{name}") if is_account else None

    @property
    def subjects(self) -> Mapping[Subject, int]:
        return self._subjects

    @property
    def accounts(self) -> Iterator[tuple[str, str]]:
        """The namespaces and names of the service accounts among the subjects."""
        for kind, name in self._subjects:
            if kind == USER and name.startswith(SERVICE_ACCOUNT):
                namespace, _, account = name.removeprefix(SERVICE_ACCOUNT).partition(":")
                yield namespace, account

    def reason(self, subjects: Sequence[Subject]) -> str:
        """Return the reason of a decision that allows a request by this binding."""
        first = self._trees[min(self._subjects[subject] for subject in subjects if subject in self._subjects)]
        kind, name = self.role
        if self.namespace:
            binding = f"RoleBinding {quote(f'{self.name}/{self.namespace}')}"
        else:
            binding = f"ClusterRoleBinding {quote(self.name)}"
        return f"RBAC: allowed by {binding} of {kind} {quote(name)} to {self._subject_text(first)}"

    def _subject_text(self, subject: Tree) -> str:
        kind, name = subject["kind"], subject["name"]
        if kind == ACCOUNT:
            name = f"{name}/{subject.get('namespace') or self.namespace}"
        return f"{kind} {quote(name)}"


def subjects_of(user: User) -> Sequence[Subject]:
    return [(USER, user.name), *((GROUP_OF_USERS, group) for group in dict.fromkeys(user.groups))]


class GrantedRole(NamedTuple):
    """A role that a binding grants to a user, or the error if the role does not exist."""

    binding: Binding
    rules: RuleSet | None
    error: str = ""


class RBACPolicy:
    """Roles and bindings by name. The cost of a change depends only on its own length."""

    def __init__(self) -> None:
        self._roles: dict[tuple[str, str, str], RuleSet] = {}
        """By resource, namespace and name."""
        self._bindings: dict[bytes, Binding] = {}
        self._by_subject: dict[tuple[str, Subject], dict[bytes, Binding]] = {}
        """By namespace and subject."""
        self.generation = 0
        """The number of changes, by which a caller sees that what it derived is outdated."""

    @property
    def bindings(self) -> Iterable[Binding]:
        return self._bindings.values()

    def clear(self) -> None:
        self.generation += 1
        self._roles.clear()
        self._bindings.clear()
        self._by_subject.clear()

    def put(self, resource: str, stored: StoredObject) -> str:
        """Add or replace a role or binding; return its namespace, "" for the whole cluster."""
        self.generation += 1
        tree = orjson.loads(stored.value)
        if resource in (ROLES, CLUSTER_ROLES):
            key = _role_key(resource, tree)
            self._roles[key] = RuleSet(tree.get("rules") or ())
            return key[1]
        self._remove_binding(stored.key)
        binding = self._bindings[stored.key] = Binding(tree)
        for subject in binding.subjects:
            self._by_subject.setdefault((binding.namespace, subject), {})[stored.key] = binding
        return binding.namespace

    def remove(self, resource: str, stored: StoredObject) -> str:
        """Remove a role or binding; return its namespace, "" for the whole cluster."""
        self.generation += 1
        if resource in (ROLES, CLUSTER_ROLES):
            key = _role_key(resource, orjson.loads(stored.value))
            self._roles.pop(key, None)
            return key[1]
        return self._remove_binding(stored.key)

    def _remove_binding(self, key: bytes) -> str:
        binding = self._bindings.pop(key, None)
        if binding is None:
            return ""
        for subject in binding.subjects:
            subject_key = binding.namespace, subject
            del self._by_subject[subject_key][key]
            if not self._by_subject[subject_key]:
                del self._by_subject[subject_key]
        return binding.namespace

    def rules_of(self, kind: str, name: str, namespace: str) -> RuleSet:
        """Return the rules of the role that a binding in a namespace refers to, or raise NoRole."""
        resource = ROLE_RESOURCES[kind]
        rules = self._roles.get((resource, namespace if resource == ROLES else "", name))
        if rules is None:
            raise NoRole(resource, name)
        return rules

    def granted_roles(self, user: User, namespace: str) -> Iterator[GrantedRole]:
        """Yield the roles of a user in the whole cluster, then those in the namespace, sorted by binding."""
        subjects = subjects_of(user)
        for binding_namespace in ("", namespace) if namespace else ("",):
            bindings: dict[bytes, Binding] = {}
            for subject in subjects:
                bindings |= self._by_subject.get((binding_namespace, subject), {})
            for key in sorted(bindings):
                yield self._role_of(bindings[key], binding_namespace)

    def bound_namespaces(self, user: User) -> Sequence[str]:
        """Return the namespaces in which bindings have a user as subject, sorted."""
        subjects = {*subjects_of(user)}
        return sorted(
            {namespace for namespace, subject in self._by_subject if namespace and subject in subjects}
        )

    def _role_of(self, binding: Binding, namespace: str) -> GrantedRole:
        try:
            return GrantedRole(binding, self.rules_of(*binding.role, namespace))
        except NoRole as error:
            return GrantedRole(binding, None, str(error))


def _role_key(resource: str, tree: Tree) -> tuple[str, str, str]:
    metadata = tree["metadata"]
    return resource, metadata.get("namespace", ""), metadata["name"]
