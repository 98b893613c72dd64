"""Defaults of rbac.authorization.k8s.io: the groups of what bindings name."""

from typing import Final

from apiserver.defaults.table import Tree, of

_GROUP: Final = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS: Final = {"User": _GROUP, "Group": _GROUP}


def _subject(subject: Tree) -> None:
    group = _SUBJECT_GROUPS.get(subject["kind"])
    if group:
        subject.setdefault("apiGroup", group)


DEFAULTS: Final = of("io.k8s.api.rbac.v1", {"RoleRef": {"apiGroup": _GROUP}, "Subject": _subject})
