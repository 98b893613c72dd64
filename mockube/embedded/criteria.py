"""The criteria of `calls` and `inject`: keyword arguments that select requests."""

from collections.abc import Collection
from typing import TypedDict

from mockube.apiserver.control.matching import Match, Verb


class Criteria(TypedDict, total=False):
    """Criteria that all have to match. Without `user`, requests of mockube's own controllers do not match."""

    user: str
    agent: str
    """A prefix of the User-Agent, or a pattern."""
    verb: Verb | Collection[Verb]
    """One or several verbs of Kubernetes."""
    resource: str
    """Its name in URLs, such as `pods` or `pods/status`, or with its group, which a resource that is not installed yet needs."""
    namespace: str
    name: str
    path: str
    """The path of the URL without the query, for non-resource requests such as /version."""


def match_of(criteria: Criteria) -> Match:
    """Return criteria as data; raise ValueError for an empty one or an unknown verb, TypeError for an unknown criterion."""
    __tracebackhide__ = True
    for name, value in criteria.items():
        if name not in Criteria.__annotations__:
            raise TypeError(
                f'unknown criterion "{name}", must be one of {", ".join(Criteria.__annotations__)}'
            )
        if name != "verb" and not isinstance(value, str):
            raise TypeError(f"{name} must be a str, not {value!r}")
        if name != "namespace" and not value:  # "" is the namespace of requests to objects without one
            raise ValueError(f"{name} must not be empty: leave it out if it does not matter")
    verb = criteria.get("verb", ())
    if not isinstance(verb, str | Collection):
        raise TypeError(f"verb must be a str or a list of str, not {verb!r}")
    match = Match(
        user=criteria.get("user", ""),
        agent=criteria.get("agent", ""),
        verbs=(verb,) if isinstance(verb, str) else tuple(verb),
        resource=criteria.get("resource", ""),
        namespace=criteria.get("namespace"),
        name=criteria.get("name", ""),
        path=criteria.get("path", ""),
    )
    match.check()
    return match
