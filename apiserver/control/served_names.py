"""Whether requests that a user selects are possible: those to a misspelt resource would never match, and a test would pass for no reason."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from mockube.apimachinery.groups import NAMESPACES
from mockube.apiserver.kinds.api_resource import Resource
from mockube.component_base.suggestions import did_you_mean, nearest

from .matching import Match
from .patterns import Pattern

_LATER_SUBRESOURCES: Final = ("", "status", "scale")
"""The subresources that a custom resource may have."""
_SIMILAR_GROUP: Final = 0.9
"""The similarity from which a group is a misspelt one of Kubernetes: `autoscaling.k8s.io` is another than `autoscaling`."""


def check_requests(match: Match, served: Iterable[Resource]) -> None:
    """Raise ValueError if no request can match: the resource is not served, or not with the verbs or in the namespace."""
    __tracebackhide__ = True
    rows = [*served] if match.resource else []
    check_resource(match.resource, rows)
    pattern = Pattern(match.resource)
    found = {  # no entries for a resource that may be installed later
        (row, verbs)
        for row in rows
        for subresource, verbs in _verbs(row)
        if any(map(pattern.matches, _with_group(row, subresource)))
    }
    verbs = {verb for _, row_verbs in found for verb in row_verbs}
    if found and match.verbs and verbs.isdisjoint(match.verbs):
        unserved = ", ".join(f'"{verb}"' for verb in match.verbs)
        raise ValueError(f'"{match.resource}" has no verb {unserved}: it has {", ".join(sorted(verbs))}')
    selected = [
        row for row, row_verbs in found if not match.verbs or not set(match.verbs).isdisjoint(row_verbs)
    ]
    if selected and match.namespace and not any(map(_may_have_namespace, selected)):
        raise ValueError(f'"{match.resource}" is not namespaced: its requests have no namespace')


def _may_have_namespace(row: Resource) -> bool:
    """Return whether requests may have a namespace: those to a namespace have its name; a custom resource may be replaced."""
    return row.namespaced or row.custom or row.group_resource == NAMESPACES


def _verbs(row: Resource) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the suffixes of a resource and its subresources, with their verbs."""
    yield "", row.verbs
    for subresource in row.subresources:
        yield f"/{subresource.name}", subresource.verbs


def check_resource(pattern: str, served: Iterable[Resource]) -> None:
    """Raise ValueError if a pattern matches no served resource, unless a custom resource that is installed later may match it.

    Such a resource needs its group in the pattern, because a bare name may be a misspelt one.
    """
    __tracebackhide__ = True
    rows = [*served] if pattern else []
    compiled = Pattern(pattern)
    if not pattern or any(compiled.matches(name) for row in rows for name in _names(row)):
        return
    full_name, _, subresource = pattern.partition("/")
    name, _, group = full_name.partition(".")
    found = _nearest_resource(name.lower(), group.lower(), rows)
    if found is not None:
        candidate = f"{found.name}.{found.group}" if group and found.group else found.name
        is_named = Pattern(full_name).matches(candidate)
        if is_named and found.custom and subresource in _LATER_SUBRESOURCES:
            return
        candidate += _nearest_subresource(found, subresource)
        raise ValueError(f'"{pattern}" is not a resource: did you mean "{candidate}"?')
    if _may_be_installed(group, subresource, rows):
        return
    example = f"{name}.{group if '.' in group else 'example.com'}"
    raise ValueError(
        f'"{pattern}" is not a resource: one that is installed later is named with its group, as "{example}"'
    )


def check_served_kind(kind: str, served: Iterable[Resource]) -> None:
    """Raise ValueError for a kind that is not served."""
    kinds = {row.kind for row in served if row.kind}
    if kind not in kinds:
        raise ValueError(f'no kind "{kind}" is served{did_you_mean(kind, kinds)}')


def check_served_group(group: str, served: Iterable[Resource]) -> None:
    """Raise ValueError for a group of which no resource is served."""
    groups = {row.group for row in served if row.group}
    if group not in groups:
        raise ValueError(f'no group "{group}" is served{did_you_mean(group, groups)}')


def check_served_subresource(name: str, served: Iterable[Resource]) -> None:
    """Raise ValueError for a subresource that no resource has."""
    names = {subresource.name for row in served for subresource in row.subresources}
    if name not in names:
        raise ValueError(f'no resource has a subresource "{name}"{did_you_mean(name, names)}')


def check_served_resource(name: str, served: Collection[Resource], *, with_group: bool) -> None:
    """Raise ValueError for a resource that is not served, which is named with its group or without."""
    if any(name == _named(row, with_group=with_group) for row in served):
        return
    full_name, _, subresource = name.partition("/")
    plural, _, group = full_name.partition(".")
    found = _nearest_resource(plural.lower(), group.lower(), served)
    candidate = "" if found is None else _named(found, with_group=with_group)
    if candidate and subresource:
        candidate += f",subresource={subresource}"
    suggestion = f": did you mean resource={candidate}?" if candidate else ""
    raise ValueError(f'no resource "{name}" is served{suggestion}')


def _named(row: Resource, *, with_group: bool) -> str:
    return str(row.group_resource) if with_group else row.name


def _names(row: Resource) -> Iterator[str]:
    """Yield the names of a resource and of its subresources, as in rules of RBAC."""
    for suffix, _ in _verbs(row):
        yield from _with_group(row, suffix)


def _with_group(row: Resource, suffix: str) -> tuple[str, str]:
    return row.name + suffix, f"{row.name}.{row.group}{suffix}"


def _nearest_resource(name: str, group: str, rows: Collection[Resource]) -> Resource | None:
    """Return the resource that a user may have meant; None if it may be one that is installed later."""
    if group:
        group = _nearest_group(group, rows)
        rows = [row for row in rows if row.group == group]
    for row in rows:
        if name in (row.name, row.singular_name, row.kind.lower(), *row.short_names):
            return row
    if group and all(row.custom for row in rows):
        return None
    candidate = nearest(name, [text for row in rows for text in (row.name, row.singular_name)])
    return (
        next((row for row in rows if candidate in (row.name, row.singular_name)), None) if candidate else None
    )


def _nearest_group(group: str, rows: Iterable[Resource]) -> str:
    built_in = {row.group for row in rows if not row.custom}
    return nearest(group, built_in, min_similarity=_SIMILAR_GROUP if "." in group else None) or group


def _nearest_subresource(row: Resource, name: str) -> str:
    candidate = nearest(name, [subresource.name for subresource in row.subresources]) if name else ""
    return f"/{candidate}" if candidate else ""


def _may_be_installed(group: str, subresource: str, rows: Iterable[Resource]) -> bool:
    """Return whether a definition may add a resource of a group: the groups of definitions have a dot."""
    has_wildcards = "*" in group or "?" in group
    is_later_group = ("." in group or has_wildcards) and not any(
        row.group == group and not row.custom for row in rows
    )
    return is_later_group and any(map(Pattern(subresource).matches, _LATER_SUBRESOURCES))
