"""Measure RBAC decisions per second, with upstream's roles and 1,000 roles and bindings of users.

    python benchmarks/authorizer.py

`remembered` are repeated requests of users in namespaces, with cached decisions; `anew`, the same after a
change of a role, with an empty cache; `administrator` is a member of system:masters.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import orjson

from mockube.apiserver.authz.chain import Attributes, Authorization
from mockube.apiserver.authz.rights import Rights
from mockube.apiserver.bootstrap import rbac
from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.storage.recent_changes import Change, ChangeKind
from mockube.apiserver.storage.stored_object import StoredObject
from mockube.apiserver.user import User

STORED: Final = frozenset(row.group_resource for group in GROUPS for row in group.resources)
NAMESPACES, USERS, SECONDS = 500, 50, 2.0
RULES = [
    {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "configmaps"]},
    {"verbs": ["*"], "apiGroups": ["apps"], "resources": ["deployments"], "resourceNames": ["web"]},
]
QUESTIONS = (
    ("get", "", "pods"),
    ("list", "", "configmaps"),
    ("create", "", "secrets"),
    ("update", "apps", "deployments"),
)


def put(rights: Rights, resource: str, tree: dict[str, object]) -> None:
    metadata = tree["metadata"]
    key = f"{resource}/{orjson.dumps(metadata).decode()}".encode()
    rights.rbac.change(
        resource, Change(ChangeKind.ADDED, StoredObject(key, orjson.dumps(tree), 1), None, 0.0)
    )


def make_rights() -> Rights:
    rights = Rights(("Node", "RBAC"), rbac.rules_of_nodes(), STORED)
    for required in rbac.policy():
        tree = required.tree()
        put(
            rights,
            required.resource[2],
            tree | {"metadata": tree["metadata"] | {"namespace": required.namespace}},
        )
    for number in range(NAMESPACES):
        metadata = {"name": "own", "namespace": f"ns{number}"}
        put(rights, "roles", {"metadata": metadata, "rules": RULES})
        subjects = [{"kind": "User", "name": f"user{number % USERS}"}]
        role = {"kind": "Role", "name": "own"}
        put(rights, "rolebindings", {"metadata": metadata, "roleRef": role, "subjects": subjects})
    return rights


def questions(groups: Sequence[str]) -> list[Attributes]:
    return [
        Attributes(
            user=User(name=f"user{number % USERS}", groups=groups),
            verb=verb,
            group=group,
            resource=resource,
            namespace=f"ns{number}",
            name="web",
        )
        for number in range(NAMESPACES)
        for verb, group, resource in QUESTIONS
    ]


def measure(
    name: str, authorization: Authorization, questions: list[Attributes], before: Callable[[], None]
) -> None:
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        before()
        for question in questions:
            authorization.decide(question)
        count += len(questions)
    print(f"{name:<14} {count / (time.perf_counter() - started):>12,.0f} decisions/s")


def main() -> None:
    rights = make_rights()
    users, masters = questions(("dev", "system:authenticated")), questions(("system:masters",))
    role: dict[str, object] = {"metadata": {"name": "own", "namespace": "ns0"}, "rules": RULES}
    measure("remembered", rights.authorization, users, lambda: None)
    measure("anew", rights.authorization, users, lambda: put(rights, "roles", role))
    measure("administrator", rights.authorization, masters, lambda: None)


if __name__ == "__main__":
    main()
