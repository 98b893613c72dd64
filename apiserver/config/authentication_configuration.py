"""`--authentication-config`: an AuthenticationConfiguration, of which what it says of anonymous requests is built."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mockube.apiserver.config.files import FileProblem, Tree, check_fields, from_flag, list_of, read_tree

_FILES: Final = frozenset(
    (f"apiserver.config.k8s.io/{version}", "AuthenticationConfiguration")
    for version in ("v1", "v1beta1", "v1alpha1")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnonymousRequests:
    """None: the file says nothing. `paths` are the only ones; none: any."""

    enabled: bool | None = None
    paths: Collection[str] = ()


UNSAID: Final = AnonymousRequests()


def authentication_configuration(text: str) -> AnonymousRequests:
    """Read the file that a flag names."""
    return from_flag(read, text)


def read(path: Path) -> AnonymousRequests:
    tree = read_tree(path)
    if (tree.get("apiVersion"), tree.get("kind")) not in _FILES:
        given = f"{tree.get('apiVersion')}, Kind={tree.get('kind')}"
        raise FileProblem(f"it is no AuthenticationConfiguration of apiserver.config.k8s.io/v1, but {given}")
    check_fields(tree, {"apiVersion", "kind", "jwt", "anonymous"}, "the file")
    if tree.get("jwt"):
        raise FileProblem("jwt: authenticators of tokens of other issuers are not built")
    anonymous = tree.get("anonymous")
    return UNSAID if anonymous is None else _anonymous(anonymous)


def _anonymous(tree: Tree) -> AnonymousRequests:
    if not isinstance(tree, dict):
        raise FileProblem("anonymous is no object")
    check_fields(tree, {"enabled", "conditions"}, "anonymous")
    enabled, conditions = tree.get("enabled", False), list_of(tree, "conditions")
    if not isinstance(enabled, bool):
        raise FileProblem("anonymous.enabled is neither true nor false")
    if conditions and not enabled:
        raise FileProblem("anonymous.conditions: enabled should be set to true when conditions are defined")
    for condition in conditions:
        check_fields(condition, {"path"}, "a condition of anonymous")
    if not all(isinstance(one.get("path"), str) and one["path"] for one in conditions):
        raise FileProblem("anonymous.conditions: each has a path")
    return AnonymousRequests(enabled=enabled, paths=frozenset(one["path"] for one in conditions))
