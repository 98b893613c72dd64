"""Ingresses: the rule for a request, by its host and path and by the habits of the controller that serves it.

Upstream: the fields are those of the API (staging/src/k8s.io/api/networking/v1); how rules of several Ingresses are merged is the
controllers' choice. ingress-nginx has a server for each host, so that a host with rules of its own gets none of others; Traefik has one
list of all rules.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.memoize import memoize
from mockube.apimachinery.regexp.captures import CapturingPattern
from mockube.apimachinery.regexp.perl import PerlPatternError, perl_pattern
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_INGRESS_CLASS

from .request_paths import escaped_for_nginx, nginx_path, normal_path
from .view import ClusterView

NGINX: Final = "k8s.io/ingress-nginx"
TRAEFIK: Final = "traefik.io/ingress-controller"
ANNOTATIONS: Final = "nginx.ingress.kubernetes.io/"
EXACT: Final = "Exact"
PREFIX: Final = "Prefix"
DEFAULT: Final = "default backend"
"""In place of the type of a path: what gets the requests that no path matches."""
_MAX_PATH: Final = 8192
"""The part of a path that patterns are compared with."""
Backend = tuple[str, str, int | str]
"""The namespace, name and port of a Service; the port may be a name."""


class IngressRule(Struct, frozen=True, kw_only=True):
    """A path of an Ingress, or its default backend."""

    ingress: ReadOnlyTree
    host: str
    path: str
    path_type: str
    backend: Backend

    @property
    def key(self) -> tuple[str, str, str]:
        """What may be in one Ingress only."""
        return self.host, self.path, self.path_type

    @property
    def created(self) -> str:
        return (self.ingress.get("metadata") or {}).get("creationTimestamp") or ""

    def is_before(self, other: "IngressRule") -> bool:
        """Return whether the rule's Ingress is served in the place of another one: the older, or of the same second the last by name."""
        names = meta.namespaced_name(self.ingress), meta.namespaced_name(other.ingress)
        return self.created < other.created or (self.created == other.created and names[0] > names[1])


def sort_rules(rules: list[IngressRule]) -> None:
    """Sort the rules of a host: those of the oldest Ingress go first, as `IngressRule.is_before` says."""
    rules.sort(key=lambda rule: meta.namespaced_name(rule.ingress), reverse=True)
    rules.sort(key=lambda rule: rule.created)


RulesOf = Callable[[str], Sequence[IngressRule]]
"""Returns the rules of a host, the oldest first."""


def backend_of(view: ClusterView, controller: str, host: str, path: str) -> Backend | None:
    """Return the backend that a controller serves for a request; None if there is none."""
    rule = rule_in(view, controller, host, path)
    return None if rule is None else rule.backend


def matched_path(controller: str, path: str) -> str | None:
    """Return the path of a request as a controller compares it with its rules; None if it refuses the request."""
    return nginx_path(path) if controller == NGINX else normal_path(path)


def rule_in(view: ClusterView, controller: str, host: str, path: str) -> IngressRule | None:
    """Return the rule of a controller for a request with a `matched_path`; None if there is none."""
    rules: dict[str, list[IngressRule]] = {}
    for ingress in view.ingresses():
        if controller_of(view, ingress) == controller:
            for rule in rules_of(ingress):
                rules.setdefault(rule.host, []).append(rule)
    for each in rules.values():
        sort_rules(each)
    return find_rule(lambda name: rules.get(name, ()), controller, host, path)


def controller_of(view: ClusterView, ingress: ReadOnlyTree) -> str:
    """Return the controller of an Ingress's class."""
    return view.ingress_controller(class_of(ingress))


def class_of(ingress: ReadOnlyTree) -> str:
    """Return the class of an Ingress; "" for the default one."""
    name = (ingress.get("spec") or {}).get("ingressClassName")
    return name or meta.annotations(ingress).get(ANNOTATION_INGRESS_CLASS) or ""


def rules_of(ingress: ReadOnlyTree) -> Iterator[IngressRule]:
    """Yield the rules of an Ingress. Its default backend is one for each of its hosts, or for all if it has no rules."""
    namespace, spec = meta.namespace(ingress), ingress.get("spec") or {}
    default = _backend(namespace, spec.get("defaultBackend"))
    hosts = dict.fromkeys((rule.get("host") or "").lower() for rule in spec.get("rules") or ())
    for host in hosts or ("",):
        if default is not None:
            yield IngressRule(ingress=ingress, host=host, path="", path_type=DEFAULT, backend=default)
    for rule in spec.get("rules") or ():
        for entry in (rule.get("http") or {}).get("paths") or ():
            backend = _backend(namespace, entry.get("backend"))
            if backend is not None:
                yield IngressRule(
                    ingress=ingress,
                    host=(rule.get("host") or "").lower(),
                    path=entry.get("path") or "/",
                    path_type=entry.get("pathType") or "",
                    backend=backend,
                )


def _backend(namespace: str, backend: Any) -> Backend | None:
    service = (backend or {}).get("service")
    if not service:
        return None
    port = service.get("port") or {}
    return namespace, service["name"], port.get("number") or port.get("name") or 0


def find_rule(rules_of_host: RulesOf, controller: str, host: str, path: str) -> IngressRule | None:
    """Return the rule for a request with a `matched_path` among those of a controller."""
    host = host.lower()
    _, dot, rest = host.partition(".")
    servers = [host, *([f"*.{rest}"] if dot and host.partition(".")[0] else []), ""]
    if controller != NGINX:
        by_rank = [
            ((-position, *rank), -index, rule)
            for position, server in enumerate(servers)
            for index, rule in enumerate(rules_of_host(server))
            if (rank := _path_rank(rule, path)) is not None
        ]
        return max(by_rank, key=lambda entry: entry[:2])[2] if by_rank else None
    for server in servers:
        rules = rules_of_host(server)
        if rules:
            return _location(rules, path) or _default(rules) or _default(rules_of_host(""), of_all=True)
    return None


def _default(rules: Iterable[IngressRule], *, of_all: bool = False) -> IngressRule | None:
    return next(
        (
            rule
            for rule in rules
            if rule.path_type == DEFAULT and not (of_all and (rule.ingress.get("spec") or {}).get("rules"))
        ),
        None,
    )


def _location(rules: Sequence[IngressRule], path: str) -> IngressRule | None:
    """Return the location of a server of nginx for a path."""
    paths = [rule for rule in rules if rule.path_type != DEFAULT and not is_canary(rule.ingress)]
    if any(uses_patterns(rule) for rule in paths):
        # One Ingress with a pattern makes patterns of all paths of its host; the longest is compared first.
        by_length = sorted(paths, key=lambda rule: -len(rule.path))
        return next((rule for rule in by_length if match_pattern(rule.path, path) is not None), None)
    ranks = [
        (rank, -index, rule)
        for index, rule in enumerate(paths)
        if (rank := _path_rank(rule, path)) is not None
    ]
    return max(ranks, key=lambda entry: entry[:2])[2] if ranks else None


def uses_patterns(rule: IngressRule) -> bool:
    """Return whether a rule's path is a regular expression for ingress-nginx."""
    annotations = meta.annotations(rule.ingress)
    target = annotations.get(f"{ANNOTATIONS}rewrite-target")
    return annotations.get(f"{ANNOTATIONS}use-regex") == "true" or bool(target and target != rule.path)


def is_canary(ingress: ReadOnlyTree) -> bool:
    return meta.annotations(ingress).get(f"{ANNOTATIONS}canary") == "true"


def match_pattern(pattern: str, path: str) -> tuple[str, ...] | None:
    """Return the match and its groups if a pattern matches the beginning of a path, without regard to case; None if not.

    Both are bytes for nginx, whatever they mean: each is a character here.
    """
    compiled = _path_pattern(pattern)
    match = None if compiled is None else compiled.match(_bytes_as_characters(path)[:_MAX_PATH])
    if match is None:
        return None
    return tuple(text.encode("latin-1").decode("utf-8", "surrogateescape") for text in match.texts)


def _bytes_as_characters(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


@memoize(512, max_length=300)
def _path_pattern(pattern: str) -> CapturingPattern | None:
    """Return a pattern of a path; None if it is invalid."""
    try:
        return perl_pattern(_bytes_as_characters(pattern), ignores_case=True)
    except PerlPatternError:
        return None


def rewritten_path(rule: IngressRule, path: str) -> str:
    """Return the path of `rewrite-target` with the groups of the rule's path in a `matched_path`; "" if it is not rewritten."""
    target = meta.annotations(rule.ingress).get(f"{ANNOTATIONS}rewrite-target")
    if not target or target == rule.path:
        return ""
    groups = match_pattern(rule.path, path)
    if groups is None:
        return ""
    parts, rest = list[str](), target
    while rest:
        before, dollar, rest = rest.partition("$")
        parts.append(before)
        if dollar and rest[:1].isdigit():
            number, rest = int(rest[0]), rest[1:]
            parts.append(escaped_for_nginx(groups[number]) if number < len(groups) else "")
        elif dollar:
            parts.append(dollar)
    return "".join(parts) or "/"


def _path_rank(rule: IngressRule, path: str) -> tuple[int, int] | None:
    """Return how well a rule's path matches; None if it does not."""
    if rule.path_type == DEFAULT:
        return -1, 0
    if rule.path_type == EXACT:
        return (2, len(rule.path)) if rule.path == path else None
    prefix = rule.path.rstrip("/")
    if rule.path_type == PREFIX:
        if path == prefix and prefix:
            return 1, len(prefix) + 1
        return (0, len(prefix) + 1) if path.startswith(f"{prefix}/") else None
    # What ImplementationSpecific means is the controller's choice; those of NGINX and Traefik match any beginning.
    return (0, len(rule.path)) if path.startswith(rule.path) else None
