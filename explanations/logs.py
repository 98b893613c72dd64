"""What the log of a container says about why its program failed, and which object of the cluster that is about."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import NAMESPACES, PODS, SERVICES, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.network.policies import named_ports, refusing_policies
from mockube.network.view import Peer, peer_of

from .commands import explanation_command, kubectl
from .explanation import Evidence, ObjectName, Origin, Remedy
from .facts import Allowed, Facts, Member
from .nearest import nearest
from .owners import template_change, template_origin
from .rights import action_text, bindings_of_user, granting

MAX_LINE: Final = 300
"""The characters of a line that a cause quotes."""
POLICIES: Final = GroupResource("networking.k8s.io", "networkpolicies")
_DNS: Final = ("kube-system", "k8s-app", "kube-dns")
_DNS_PORT: Final = 53
_TIME: Final = re.compile(r"^\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d\S*\s+(?!$)")
_PROBLEM: Final = re.compile(
    r"error|emerg|fatal|panic|fail|denied|refused|forbidden|cannot|can't|could not|not found|no such|unable|invalid|timed? ?out"
    r"|\bbad\b|unknown",
    re.IGNORECASE,
)
_RIGHT: Final = re.compile(
    r'User "(?P<user>[^"]+)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)
_HOST: Final = re.compile(
    r"(?:bad address '|lookup |resolve host:? |ENOTFOUND |EAI_AGAIN |host name \"|can't find |UnknownHostException: |upstream \"|host '"
    r"|at |getaddrinfo for )(?P<host>[a-z0-9][a-z0-9.-]*)"
)
_UNKNOWN_HOST: Final = re.compile(
    r"bad address|no such host|could not resolve|ENOTFOUND|EAI_AGAIN|could not translate|NXDOMAIN|UnknownHost|unknown (?:mysql server )?host"
    r"|name or service not known|host not found|name resolution|nodename nor servname|can't resolve",
    re.IGNORECASE,
)
_NO_ANSWER: Final = re.compile(
    r"timed? ?out|ETIMEDOUT|deadline exceeded|refused|ECONNREFUSED|no route to host|unreachable|n['o]t connect|failed to connect",
    re.IGNORECASE,
)
_TIME_OUT: Final = re.compile(r"timed? ?out|ETIMEDOUT|deadline exceeded", re.IGNORECASE)
_REFUSED_FILE: Final = re.compile(r"Permission denied|Read-only file system|Operation not permitted")
_PATH: Final = re.compile(r"/[\w./-]+")
_PORT_IN_USE: Final = re.compile(r"address already in use|EADDRINUSE", re.IGNORECASE)


class Reason(Struct, frozen=True, kw_only=True):
    """Why a program failed, as far as its log says."""

    line: str
    """What it printed."""
    text: str = ""
    """What that is about in the cluster; "" if that is not known."""
    evidence: Sequence[Evidence] = ()
    remedies: Sequence[Remedy] = ()
    origins: Sequence[Origin] = ()

    def __str__(self) -> str:
        return f"; it printed: {self.line}{f'; {self.text}' if self.text else ''}"


class _Failure(Struct, frozen=True, kw_only=True):
    """A line of a container's log, and whose it is."""

    pod: ReadOnlyTree
    container: ReadOnlyTree
    place: str
    """The list of the pod's spec that has the container."""
    line: str

    @property
    def namespace(self) -> str:
        return meta.namespace(self.pod)

    def reason(self, text: str, **parts: Any) -> Reason:
        return Reason(line=self.line, text=text, **parts)


def reason_in_log(
    pod: ReadOnlyTree, container: ReadOnlyTree, place: str, lines: Sequence[str], facts: Facts
) -> Reason | None:
    """Return the newest line whose meaning is known, else the newest one about a problem, else the last one; None of an empty log."""
    printed = [_TIME.sub("", line).strip()[:MAX_LINE] for line in reversed(lines) if line.strip()]
    for line in printed:
        failure = _Failure(pod=pod, container=container, place=place, line=line)
        for pattern, explain in _MEANINGS:
            found = pattern.search(line)
            reason = None if found is None else explain(failure, found, facts)
            if reason is not None:
                return reason
    problems = [line for line in printed if _PROBLEM.search(line)]
    return Reason(line=(problems or printed)[0]) if printed else None


# --- rights


def _lacks_right(failure: _Failure, found: re.Match[str], facts: Facts) -> Reason:
    spec: dict[str, str] = {name: value for name, value in found.groupdict().items() if value}
    spec["resource"], _, spec["subresource"] = spec["resource"].partition("/")
    names = ("user", "verb", "group", "resource", "subresource", "namespace")
    account = spec["user"].removeprefix("system:serviceaccount:").partition(":")[0]
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{account}", "system:authenticated")
    question = Allowed(groups=groups, **{name: spec.get(name, "") for name in names})
    if facts.is_allowed(question):
        return failure.reason(f"no rule let {spec['user']} {action_text(spec)} then; a rule does now")
    return failure.reason(
        f"no rule lets {spec['user']} {action_text(spec)}",
        evidence=[*bindings_of_user(spec, facts)],
        remedies=[*granting(spec)],
        origins=[template_origin(failure.pod, facts, "serviceAccountName")],
    )


# --- the network


class _Policies:
    """The policies of a cluster, as facts have them."""

    def __init__(self, facts: Facts) -> None:
        self._facts = facts

    def policies(self, namespace: str) -> Sequence[ReadOnlyTree]:
        return self._facts.list(POLICIES, namespace)

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        namespace = self._facts.find(NAMESPACES, "", name)
        return None if namespace is None else meta.labels(namespace)


def _unknown_host(failure: _Failure, _: re.Match[str], facts: Facts) -> Reason | None:
    """Explain a name that has no address: DNS is refused to the pod, or there is no such Service."""
    named = _HOST.search(failure.line)
    if named is None:
        return None
    namespace, key, label = _DNS
    servers = [pod for pod in facts.list(PODS, namespace) if meta.labels(pod).get(key) == label]
    peers = [*map(peer_of, servers)] or [Peer(address="")]
    source = peer_of(failure.pod)
    if refusing := refusing_policies(_Policies(facts), source, peers[0], _DNS_PORT, "UDP"):
        return _refused(failure, refusing, "the pod asks for addresses at port 53 of the DNS")
    name, domain = named["host"].rstrip(".").partition(".")[::2]
    place = domain.partition(".")[0] if domain else failure.namespace
    zone = domain.partition(".")[2]
    is_elsewhere = zone not in ("", "svc", "svc.cluster.local")
    if is_elsewhere or (domain and not zone and facts.is_missing(NAMESPACES, "", place)):
        return None
    if not facts.is_missing(SERVICES, place, name):
        return None
    existing = [meta.name(each) for each in facts.list(SERVICES, place)]
    similar = nearest(name, existing)
    alternative = f", but {similar}" if similar else ""
    instead = f"Ask for {similar}, or create" if similar else "Create"
    return failure.reason(
        f"there is no Service {name} in the namespace {place}{alternative}",
        remedies=[
            Remedy(text=f"{instead} the Service {name} in {place}."),
            Remedy(text="Those that exist:", command=kubectl("get", "services", namespace=place)),
        ],
        origins=[
            Origin.named("v1", "Service", place, name),
            template_origin(failure.pod, facts, failure.place, Member(failure.container["name"])),
        ],
    )


def _no_answer(failure: _Failure, _: re.Match[str], facts: Facts) -> Reason | None:
    """Explain a connection to a Service that the container names: policies refuse it, or the Service has no ready pod."""
    if _UNKNOWN_HOST.search(failure.line):
        return None
    source = peer_of(failure.pod)
    for service in _named_services(failure, facts):
        selector = service["spec"].get("selector") or {}
        pods = [
            pod
            for pod in facts.list(PODS, failure.namespace)
            if selector and selector.items() <= meta.labels(pod).items() and conditions.is_true(pod, "Ready")
        ]
        subject = f"it connects to the Service {meta.name(service)}"
        if not pods:
            return failure.reason(
                f"{subject}, which has no ready pod",
                remedies=[
                    Remedy(
                        text="Why:",
                        command=explanation_command("service", failure.namespace, meta.name(service)),
                    )
                ],
                origins=[Origin.of({"apiVersion": "v1", "kind": "Service", **service})],
            )
        for pod in pods:
            for port in _target_ports(service, pod):
                if refusing := refusing_policies(_Policies(facts), source, peer_of(pod), port):
                    return _refused(failure, refusing, subject)
        ports = ", ".join(map(str, _target_ports(service, pods[0])))
        if ports and not _TIME_OUT.search(failure.line):
            return failure.reason(
                f"{subject}, which leads to the port {ports} of {meta.name(pods[0])}: no program listened there",
                remedies=[
                    Remedy(
                        text=f"Change targetPort of the Service {meta.name(service)}, if its program listens at another port, or let this program try again."
                    )
                ],
                origins=[Origin.of({"apiVersion": "v1", "kind": "Service", **service}, "spec", "ports")],
            )
    return None


def _named_services(failure: _Failure, facts: Facts) -> Iterator[ReadOnlyTree]:
    """Yield the Services of the namespace whose names the container's command, arguments, variables or log have."""
    container = failure.container
    texts = [*(container.get("command") or ()), *(container.get("args") or ()), failure.line]
    texts += [str(each.get("value") or "") for each in container.get("env") or ()]
    words = {word for text in texts for word in re.findall(r"[a-z0-9-]+", text)}
    for service in facts.list(SERVICES, failure.namespace):
        if meta.name(service) in words:
            yield service


def _target_ports(service: ReadOnlyTree, pod: ReadOnlyTree) -> Iterator[int]:
    for port in service["spec"].get("ports") or ():
        target = port.get("targetPort") or port["port"]
        yield from named_ports(pod, target) if isinstance(target, str) else (target,)


def _refused(failure: _Failure, policies: Sequence[ReadOnlyTree], subject: str) -> Reason:
    names = ", ".join(map(meta.name, policies))
    return failure.reason(
        f"{subject}, which no rule of the NetworkPolicy {names} allows",
        remedies=[
            Remedy(
                text="Allow it in a rule, or leave the pod out of podSelector:",
                command=kubectl("edit", "networkpolicy", meta.name(each), namespace=meta.namespace(each)),
            )
            for each in policies
        ],
        origins=[
            Origin(
                object=ObjectName(
                    kind="NetworkPolicy",
                    api_version="networking.k8s.io/v1",
                    namespace=meta.namespace(each),
                    name=meta.name(each),
                ),
                path=("spec",),
            )
            for each in policies
        ],
    )


# --- the security context


def _refused_file(failure: _Failure, found: re.Match[str], facts: Facts) -> Reason | None:
    """Explain a program to which its security context refuses files or rights."""
    field, remedy = _CONTEXTS[found[0]]
    own, of_pod = (each.get("securityContext") or {} for each in (failure.container, failure.pod["spec"]))
    if own.get(field):
        path: tuple[str | Member, ...] = (failure.place, Member(failure.container["name"]), "securityContext")
        change: Mapping[str, Any] = {
            failure.place: [{"name": failure.container["name"], "securityContext": {field: None}}]
        }
        value = own[field]
    elif of_pod.get(field):
        path, change, value = ("securityContext",), {"securityContext": {field: None}}, of_pod[field]
    else:
        return None
    directory = next(iter(_PATH.findall(failure.line, 0, found.start())[-1:]), "").rpartition("/")[0] or "/"
    return failure.reason(
        f"its securityContext has {field} {_value_text(value)}",
        remedies=[
            Remedy(text=remedy.format(directory)),
            template_change(failure.pod, facts, f"Or leave {field} out", change),
        ],
        origins=[template_origin(failure.pod, facts, *path, field)],
    )


def _value_text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {' '.join(map(str, each))}" for name, each in value.items())
    return str(value).lower()


UNPRIVILEGED: Final = (
    "Take an image that is made for another user than root, such as nginxinc/nginx-unprivileged for nginx"
)
_CONTEXTS: Final = {
    "Permission denied": (
        "runAsUser",
        f"{UNPRIVILEGED}, or mount an emptyDir at {{}}, and wherever else the program writes.",
    ),
    "Read-only file system": (
        "readOnlyRootFilesystem",
        "Mount an emptyDir at {}, and wherever else the program writes.",
    ),
    "Operation not permitted": (
        "capabilities",
        "Add the capabilities that the program needs, such as CHOWN, SETGID and SETUID, or take an image that needs none.",
    ),
}
"""The field of a security context that is the reason for a failure, and what would help."""


# --- ports


def _port_in_use(failure: _Failure, _: re.Match[str], facts: Facts) -> Reason | None:
    others = [
        each["name"]
        for each in failure.pod["spec"]["containers"]
        if each["name"] != failure.container["name"]
    ]
    if not others:
        return None
    return failure.reason(
        f"the containers of a pod share its ports: {' or '.join(others)} has it",
        remedies=[Remedy(text="Let one of them listen at another port, or run in a pod of its own.")],
        origins=[template_origin(failure.pod, facts, "containers")],
    )


_MEANINGS: Final[
    Sequence[tuple[re.Pattern[str], Callable[[_Failure, re.Match[str], Facts], Reason | None]]]
] = (
    (_RIGHT, _lacks_right),
    (_UNKNOWN_HOST, _unknown_host),
    (_PORT_IN_USE, _port_in_use),
    (_REFUSED_FILE, _refused_file),
    (_NO_ANSWER, _no_answer),
)
