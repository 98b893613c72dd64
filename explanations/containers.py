"""Why a container does not run, or is not ready: its image, its configuration, how it ended, its probes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from signal import Signals
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.groups import SECRETS
from mockube.apimachinery.quantity import parse as parse_quantity
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree

from .assumptions import image_remedies
from .commands import command, kubectl
from .explanation import Evidence, Origin, Remedy, writes_question
from .facts import Facts, Member, event_time
from .files import files_in_log
from .logs import UNPRIVILEGED, reason_in_log
from .owners import changed_in, template_change, template_origin
from .records import event_evidence, find_events
from .remedies import created, patched
from .volumes import environment_problems, sub_path_problems, volume_problems

MAX_SIGNAL: Final = 64
EVENTS_LIVE: Final = timedelta(hours=1)
"""How long a server keeps Events by default."""
_UNREPORTED: Final = ("Unknown", "ContainerStatusUnknown")
"""The reasons of an end that the container runtime has not reported."""
_NOT_STARTED: Final = ("StartError", "ContainerCannotRun")
"""The reasons of an end before the program has run."""
_SIGNALED: Final = 128
"""Exit codes above are 128 and the number of a signal, if a shell or a run-time has made them."""
_STOPPED: Final = (0, _SIGNALED + Signals.SIGKILL, _SIGNALED + Signals.SIGTERM)
"""The exit codes of programs that a kubelet stops."""
_GRACE: Final = 30
"""The seconds that a pod has to end, if it does not say how many."""
_SECONDS: Final = len("2026-01-31T12:00:00")
"""The characters of a time without fractions."""
_DENIED: Final = ("unauthorized", "denied", "authorization failed", "forbidden", "authentication required")
_UNREACHABLE: Final = (
    "no such host",
    "dial tcp",
    "connection refused",
    "i/o timeout",
    "deadline exceeded",
)
_PULL_PROBLEMS: Final = (
    (
        ("does not exist or may require",),
        "does not exist, or needs credentials: its registry does not tell which",
        True,
    ),
    (("x509",), "cannot be pulled: the certificate of its registry is not trusted", False),
    (
        _DENIED,
        "cannot be pulled: its registry refuses access, as many do also if the image does not exist",
        True,
    ),
    (_UNREACHABLE, "cannot be pulled: its registry cannot be reached", False),
    (("no match for platform",), "has no variant for the platform of the node", False),
    (
        ("not found", "notfound", "manifest unknown", "does not exist"),
        "does not exist in its registry",
        False,
    ),
)
"""The texts by which a failure of a pull is known, what it means, and whether credentials may help. The first one counts."""
_OWN_FAILURE: Final = "its own program failed"
_ROOT: Final = "container has runAsNonRoot and "
IMAGE: Final = "IMAGE"
"""In place of an image that only the user knows."""
SIMULATION: Final = ("NotSimulated", "EndsAtOnce")
"""The Events by which mockube says what it does not know of an image."""


class Finding(Struct, frozen=True, kw_only=True):
    """Why one container is not ready."""

    cause: str
    evidence: Sequence[Evidence] = ()
    remedies: Sequence[Remedy] = ()
    origins: Sequence[Origin] = ()
    is_known: bool = True


class Container(Struct, frozen=True, kw_only=True):
    """A container of a pod, with its status."""

    pod: ReadOnlyTree
    spec: ReadOnlyTree
    status: ReadOnlyTree
    is_init: bool = False

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def waiting(self) -> ReadOnlyTree | None:
        return (self.status.get("state") or {}).get("waiting")

    @property
    def running(self) -> ReadOnlyTree | None:
        return (self.status.get("state") or {}).get("running")

    @property
    def terminated(self) -> ReadOnlyTree | None:
        return (self.status.get("state") or {}).get("terminated")

    @property
    def last_end(self) -> ReadOnlyTree | None:
        """How the container ended last."""
        return self.terminated or (self.status.get("lastState") or {}).get("terminated")

    @property
    def restarts(self) -> int:
        return self.status.get("restartCount") or 0

    @property
    def is_sidecar(self) -> bool:
        return self.is_init and self.spec.get("restartPolicy") == "Always"

    @property
    def is_restarted(self) -> bool:
        """Whether it is started again also after it ended with exit code 0."""
        policy = self.spec.get("restartPolicy") or self.pod["spec"].get("restartPolicy") or "Always"
        return policy == "Always" and (self.is_sidecar or not self.is_init)

    @property
    def place(self) -> str:
        """The list of a pod's spec that has it."""
        return "initContainers" if self.is_init else "containers"

    def change(self, **fields: Any) -> Mapping[str, Any]:
        """Return the patch of a pod's spec that changes fields of the container."""
        return {self.place: [{"name": self.name, **fields}]}

    @property
    def field(self) -> str:
        return f"status.{'initContainerStatuses' if self.is_init else 'containerStatuses'}[{self.name}]"


def containers_of(pod: ReadOnlyTree, *, init: bool = False) -> Sequence[Container]:
    specs, statuses = (
        ("initContainers", "initContainerStatuses") if init else ("containers", "containerStatuses")
    )
    by_name = {each["name"]: each for each in (pod.get("status") or {}).get(statuses) or ()}
    return [
        Container(pod=pod, spec=spec, status=by_name.get(spec["name"], {}), is_init=init)
        for spec in pod["spec"].get(specs) or ()
    ]


def explain_container(container: Container, facts: Facts) -> Finding:
    """Explain a container that is not ready."""
    waiting = container.waiting
    if waiting is not None:
        explain = _BY_REASON.get(waiting.get("reason") or "")
        return _other_waiting(container, waiting) if explain is None else explain(container, facts)
    if container.terminated is not None:
        return explain_end(container, facts)
    if container.running is not None:
        return _not_ready(container, facts)
    return Finding(
        cause=f"the kubelet has not reported the container {container.name}",
        evidence=[Evidence(text="there is no state", source=container.field)],
        is_known=False,
    )


# --- waiting


def _waiting_evidence(container: Container) -> Evidence:
    waiting = container.waiting or {}
    reason, message = waiting.get("reason") or "", waiting.get("message") or ""
    return Evidence(
        text=f"waits: {reason}{': ' if message else ''}{message}", source=f"{container.field}.state.waiting"
    )


def _image(container: Container, facts: Facts) -> Finding:
    pod, image = container.pod, container.spec.get("image") or ""
    reasons = ("Failed", "ErrImageNeverPull", "InspectFailed")
    failures = find_events(pod, facts, reasons, text=f'"{image}"', limit=1)
    text = " ".join([*(each.text for each in failures), (container.waiting or {}).get("message") or ""])
    problem, is_known, remedies = _image_problem(container, facts, text)
    return Finding(
        cause=f"the image {image} of the container {container.name} {problem}",
        evidence=[_waiting_evidence(container), *failures],
        remedies=[
            *remedies,
            Remedy(
                text="What mockube knows of the image:",
                command=command("mockube", "images", "resolve", image),
            ),
        ],
        origins=[_origin(container, facts, "image")],
        is_known=is_known,
    )


def _image_problem(container: Container, facts: Facts, text: str) -> tuple[str, bool, Sequence[Remedy]]:
    """Return what is wrong with an image, whether that is known, and what would help."""
    pod, reason = container.pod, (container.waiting or {}).get("reason")
    image = container.spec.get("image") or ""
    another = template_change(
        pod,
        facts,
        "Set another image",
        container.change(image=IMAGE),
        is_mutable=True,
        command=("set image", f"{container.name}={IMAGE}"),
    )
    lower = text.lower()
    if reason == "InvalidImageName":
        return "has an invalid name", True, [another]
    if reason == "ErrImageNeverPull":
        rule = Remedy(
            text="Or set imagePullPolicy IfNotPresent, or load the image onto the nodes:",
            command=command("mockube", "images", "load", image),
        )
        return "is not on the node, and imagePullPolicy Never forbids to pull it", True, [another, rule]
    for words, problem, needs_credentials in _PULL_PROBLEMS:
        if any(word in lower for word in words):
            return problem, True, [*(_credentials(pod, facts) if needs_credentials else ()), another]
    return "cannot be pulled; mockube does not know why beyond the message", False, [another]


def _credentials(pod: ReadOnlyTree, facts: Facts) -> Sequence[Remedy]:
    namespace = meta.namespace(pod)
    names = [each["name"] for each in pod["spec"].get("imagePullSecrets") or () if each.get("name")]
    missing = [name for name in names if facts.is_missing(SECRETS, namespace, name)]
    if names and not missing:
        return [Remedy(text=f"Check the credentials in the Secret {names[0]}.")]
    name = missing[0] if missing else "registry"
    flags = ["--docker-server=REGISTRY", "--docker-username=USER", "--docker-password=PASSWORD"]
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": '{"auths":{}}'},
    }
    if missing:
        text = f"The pod names the Secret {name} in spec.imagePullSecrets, which does not exist. Create it:"
    else:
        text = "The pod has no spec.imagePullSecrets. Create a Secret, and name it there:"
    return [created(text, secret, "secret", "docker-registry", name, *flags)]


def _configuration(container: Container, facts: Facts) -> Finding:
    problems = [*environment_problems(container.pod, facts, container.spec, container.place)]
    message = (container.waiting or {}).get("message") or ""
    if problems:
        return Finding(
            cause=problems[0].cause,
            evidence=[_waiting_evidence(container), *(Evidence(text=each.cause) for each in problems[1:])],
            remedies=[remedy for each in problems for remedy in each.remedies],
            origins=[origin for each in problems for origin in each.origins],
        )
    is_root = _ROOT in message
    return Finding(
        cause=f"the container {container.name} cannot be created: {message or 'its status has no message'}",
        evidence=[_waiting_evidence(container)],
        remedies=[
            Remedy(text=f"{UNPRIVILEGED}. runAsUser alone helps only a program that needs no rights of root.")
        ]
        if is_root
        else (),
        origins=[
            _origin(container, facts, *(("securityContext",) if is_root else ())),
            *([template_origin(container.pod, facts, "securityContext")] if is_root else ()),
        ],
        is_known=bool(message),
    )


def _not_simulated(container: Container, _: Facts) -> Finding:
    message = (container.waiting or {}).get("message") or "a program is not simulated"
    return Finding(
        cause=f"the container {container.name} waits: {message}",
        evidence=[_waiting_evidence(container)],
        remedies=[*image_remedies(container.spec.get("image") or "")],
    )


def _creating(container: Container, facts: Facts) -> Finding:
    problems = [*volume_problems(container.pod, facts)]
    mounts = find_events(container.pod, facts, ("FailedMount", "FailedAttachVolume"))
    if problems:
        return Finding(
            cause=problems[0].cause,
            evidence=[
                _waiting_evidence(container),
                *(Evidence(text=each.cause) for each in problems[1:]),
                *mounts,
            ],
            remedies=[remedy for each in problems for remedy in each.remedies],
            origins=[origin for each in problems for origin in each.origins],
        )
    if mounts:
        name = mounts[0].text.partition('for volume "')[2].partition('"')[0]
        return Finding(
            cause=f"a volume cannot be mounted: {mounts[0].text}",
            evidence=[_waiting_evidence(container), *mounts],
            remedies=[
                Remedy(
                    text=f"Change the volume {name} in {changed_in(container.pod)}, or make what it names."
                )
            ],
            origins=[template_origin(container.pod, facts, "volumes", *([Member(name)] if name else []))],
        )
    others = find_events(
        container.pod, facts, ("Pulling", "FailedCreatePodSandBox", "FailedPostStartHook", *SIMULATION)
    )
    return Finding(
        cause=f"the container {container.name} is being created; what it waits for is not recorded",
        evidence=[_waiting_evidence(container), *others],
        is_known=False,
    )


def _other_waiting(container: Container, waiting: ReadOnlyTree) -> Finding:
    message = waiting.get("message") or ""
    return Finding(
        cause=f"the container {container.name} waits: {waiting.get('reason') or 'without a reason'}"
        f"{': ' if message else ''}{message}",
        evidence=[_waiting_evidence(container)],
        is_known=bool(message),
    )


# --- ended


def explain_end(container: Container, facts: Facts) -> Finding:
    """Explain a container that ended, and that may be restarted."""
    end = container.last_end
    message = (container.waiting or {}).get("message") or ""
    if end is None and (container.waiting or {}).get("reason") == "RunContainerError" and message:
        return Finding(
            cause=f"the container {container.name} cannot be started: {message}",
            evidence=[_waiting_evidence(container)],
        )
    if end is None:
        return Finding(
            cause=f"the container {container.name} is restarted after a back-off; how it ended is not recorded",
            evidence=[_waiting_evidence(container)],
            is_known=False,
        )
    pod, place = container.pod, container.place
    problem = next(sub_path_problems(pod, facts, container.spec, place), None)
    if end.get("exitCode") and problem:
        return Finding(
            cause=f"the container {container.name} ended with exit code {end['exitCode']}: {problem.cause}",
            evidence=[_end_evidence(container, end)],
            remedies=problem.remedies,
            origins=problem.origins,
        )
    text, remedies, is_known = _ending(container, end, facts)
    has_not_run = end.get("reason") in _NOT_STARTED
    lines = facts.log(container.pod, container.name, previous=container.terminated is None)
    files = files_in_log(container.pod, container.spec, lines, facts) if end.get("exitCode") else ()
    is_own = text.endswith(_OWN_FAILURE)
    reason = reason_in_log(pod, container.spec, place, lines, facts) if is_own else None
    named = f"; its log names {files[0].text}" if files else ""
    restarts = f", and has been restarted {container.restarts} times" if container.restarts else ""
    evidence = [_end_evidence(container, end)]
    if container.waiting:
        evidence.append(_waiting_evidence(container))
    evidence += find_events(container.pod, facts, ("Killing", "OOMKilling", *SIMULATION), limit=2)
    evidence += reason.evidence if reason else ()
    evidence += [Evidence(text=each.text, source="spec.volumes") for each in files[1:]]
    evidence += [Evidence(text=line, source=f"log of {container.name}") for line in lines]
    return Finding(
        cause=f"the container {container.name} {text}{restarts}{reason or ''}{named}",
        evidence=evidence,
        remedies=[
            *(reason.remedies if reason else ()),
            *remedies,
            *([] if has_not_run else [_log_remedy(container)]),
        ],
        origins=[
            *(reason.origins if reason else ()),
            *_end_origins(container, end, [each.origin for each in files], facts),
        ],
        is_known=is_known,
    )


def _end_origins(
    container: Container, end: ReadOnlyTree, files: Sequence[Origin], facts: Facts
) -> Iterator[Origin]:
    """Yield the fields that made a container end: its limit, the probe that ended it, or else the files that it names and what it runs."""
    if end.get("reason") == "OOMKilled":
        yield replace(_origin(container, facts, "resources"), is_undone=not _is_raised(container, facts))
    elif end.get("reason") in _NOT_STARTED and container.spec.get("command"):
        yield _origin(container, facts, "command")
    elif _killed_by_hook(container, end, facts):
        yield _origin(container, facts, "lifecycle", "postStart")
    elif probe := _killing_probe(container, facts):
        yield _origin(container, facts, f"{probe}Probe")
    else:
        yield from files
        yield _origin(container, facts)


def _is_raised(container: Container, facts: Facts) -> bool:
    """Return whether the last change of a container's memory gave it more, so that the value before it would not help."""
    last = next(iter(facts.writes_of(writes_question(_origin(container, facts, "resources")))), {})
    before, after = _memory_limit(last.get("before")), _memory_limit(last.get("after"))
    return bool(before and after) and parse_quantity(before) <= parse_quantity(after)


def _log_remedy(container: Container) -> Remedy:
    previous = () if container.terminated else ("--previous",)
    arguments = ("logs", meta.name(container.pod), "-c", container.name, *previous)
    return Remedy(
        text="All it has printed:", command=kubectl(*arguments, namespace=meta.namespace(container.pod))
    )


def _end_evidence(container: Container, end: ReadOnlyTree) -> Evidence:
    signal = f", signal {end['signal']}" if end.get("signal") else ""
    message = f": {end['message']}" if end.get("message") else ""
    state = "state" if container.terminated else "lastState"
    return Evidence(
        text=f"ended with exit code {end.get('exitCode')}{signal}, reason {end.get('reason') or 'none'}{message}",
        source=f"{container.field}.{state}.terminated",
        time=end.get("finishedAt") or "",
    )


def _ending(container: Container, end: ReadOnlyTree, facts: Facts) -> tuple[str, Sequence[Remedy], bool]:
    """Return how a container ended, what would help, and whether the cause is known."""
    code = end.get("exitCode")
    if end.get("reason") == "OOMKilled":
        return _out_of_memory(container, facts)
    if killed := _killed_by_hook(container, end, facts) or _killed_by_probe(container, facts):
        return killed
    if end.get("reason") in _NOT_STARTED:
        remedy = Remedy(text=f"Correct command and args in {changed_in(container.pod)}, or the image.")
        text = f"cannot be started: {end.get('message') or 'without a message'}"
        return text, [remedy], bool(end.get("message"))
    if end.get("reason") in _UNREPORTED:
        text = f"ended with exit code {code}, reason {end['reason']}: its node or container runtime lost it, as after a restart"
        return text, (), False
    if isinstance(code, int) and _SIGNALED < code <= _SIGNALED + MAX_SIGNAL:
        name = _signal_name(end.get("signal") or code - _SIGNALED)
        text = f"ended with exit code {code}, as after {name}; who sent the signal is not recorded"
        return text, (), False
    if unread := _unread_probes(container, end, facts):
        return f"ended with exit code {code}; {unread}", (), False
    if code == 0:
        return _completed(container)
    return f"ended with exit code {code}: {_OWN_FAILURE}", (), True


def _unread_probes(container: Container, end: ReadOnlyTree, facts: Facts) -> str:
    """Return why it is not known whether a probe ended the container; "" if no probe did."""
    probes = [probe for probe in ("liveness", "startup") if container.spec.get(f"{probe}Probe")]
    if not probes:
        return ""
    names = " or ".join(probes)
    if not facts.may_read_events(container.pod):
        return f"whether its {names} probe failed is not known without the right to list Events"
    finished = end.get("finishedAt")
    if finished and facts.now - parse_time(finished) > EVENTS_LIVE:
        return f"whether its {names} probe failed is not known, because Events of that time have expired"
    return ""


def _signal_name(number: int) -> str:
    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _memory_limit(resources: Any) -> str:
    return ((resources or {}).get("limits") or {}).get("memory") or ""


def _out_of_memory(container: Container, facts: Facts) -> tuple[str, Sequence[Remedy], bool]:
    limit = _memory_limit(container.spec.get("resources"))
    if not limit:
        return "was killed because memory ran out (OOMKilled), without a limit of its own", (), True
    actual = _memory_limit(container.status.get("resources")) or limit
    resized_from = _limit_before_resize(container, facts)
    killed = "was killed because it used more memory than its limit of"
    if parse_quantity(actual) != parse_quantity(limit):
        return f"{killed} {actual} (OOMKilled); its resize to {limit} is not carried out", (), True
    if resized_from:
        return f"{killed} {resized_from} (OOMKilled), which was changed to {limit} since then", (), True
    return f"{killed} {limit} (OOMKilled)", [*_more_memory(container, limit, facts)], True


def _limit_before_resize(container: Container, facts: Facts) -> str:
    """Return the limit of memory that a container had when it ended, if the pod was resized since then; "" if it was not."""
    origin = Origin.of(container.pod, "spec", container.place, Member(container.name), "resources")
    resized = next(iter(facts.writes_of(writes_question(origin))), {})
    ended = str((container.last_end or {}).get("finishedAt") or "")[:_SECONDS]
    before = _memory_limit(resized.get("before"))
    is_later = str(resized.get("time") or "")[:_SECONDS] > ended
    return before if is_later and before != _memory_limit(resized.get("after")) else ""


def _more_memory(container: Container, limit: str, facts: Facts) -> Iterator[Remedy]:
    """Yield how a container gets twice its memory: a pod without a controller is resized, if its container is started again."""
    doubled = parse_quantity(limit)
    more = str(doubled + doubled)
    resources = {"limits": {"memory": more}}
    arguments = [f"--containers={container.name}", f"--limits=memory={more}"]
    requested = ((container.spec.get("resources") or {}).get("requests") or {}).get("memory")
    if requested == limit:  # its quality of service stays
        resources["requests"] = {"memory": more}
        arguments.append(f"--requests=memory={more}")
    change = container.change(resources=resources)
    if meta.controller_of(container.pod) is None and container.is_restarted:
        yield patched("Raise the limit of the pod:", container.pod, {"spec": change}, subresource="resize")
    yield template_change(
        container.pod,
        facts,
        f"Raise the limit, such as to {more}",
        change,
        command=("set resources", *arguments),
    )


def _origin(container: Container, facts: Facts, *field: str) -> Origin:
    """Return a field of the container where its pod is made of."""
    return template_origin(container.pod, facts, container.place, Member(container.name), *field)


def _killing_probe(container: Container, facts: Facts) -> str:
    """Return the probe that ended the container, if the last Event about its end says so; "" if none did."""
    killings = find_events(container.pod, facts, ("Killing",), text=f"Container {container.name} ", limit=1)
    end = container.last_end or {}
    for killing in killings:
        for probe in ("liveness", "startup"):
            # An older Event is about an earlier end.
            is_of_this_end = killing.time[:_SECONDS] >= (end.get("startedAt") or "")[:_SECONDS]
            if f"failed {probe} probe" in killing.text and is_of_this_end:
                return probe
    # Of a container that restarts often, not each end has an Event: their number is limited.
    is_stopped = end.get("exitCode") in _STOPPED and end.get("startedAt") and end.get("finishedAt")
    for probe in ("liveness", "startup") if is_stopped else ():
        failures = _probe_failures(container, facts, probe, since=end["startedAt"])
        if failures and _is_within_grace(failures[0].time, end["finishedAt"], container.pod):
            return probe
    return ""


def _is_within_grace(failed: str, finished: str, pod: ReadOnlyTree) -> bool:
    """Return whether a container ended after the failure of a probe in the time that the kubelet gives it."""
    grace = timedelta(seconds=pod["spec"].get("terminationGracePeriodSeconds", _GRACE) + 1)
    return bool(failed) and parse_time(finished) - parse_time(failed) <= grace


def _killed_by_probe(container: Container, facts: Facts) -> tuple[str, Sequence[Remedy], bool] | None:
    """Return how a probe ended the container."""
    probe = _killing_probe(container, facts)
    if not probe:
        return None
    end = container.last_end or {}
    failures = _probe_failures(container, facts, probe, since=end.get("startedAt") or "")
    failure = f": {failures[0].text}" if failures else ""
    remedy = Remedy(
        text=f"Correct {probe}Probe of the container {container.name}, or what it asks for: "
        f"{probe_text(container.spec.get(f'{probe}Probe'))}."
    )
    return f"is killed because its {probe} probe fails{failure}", [remedy], True


def _killed_by_hook(
    container: Container, end: ReadOnlyTree, facts: Facts
) -> tuple[str, Sequence[Remedy], bool] | None:
    """Return how the failure of a postStart hook ended the container."""
    hook = (container.spec.get("lifecycle") or {}).get("postStart")
    failures = find_events(container.pod, facts, ("FailedPostStartHook",), limit=1) if hook else ()
    if not failures or failures[0].time[:_SECONDS] < (end.get("startedAt") or "")[:_SECONDS]:
        return None
    action = probe_text(hook)
    remedy = Remedy(
        text=f"Correct lifecycle.postStart of the container {container.name} in {changed_in(container.pod)}: {action}."
    )
    return f"is killed because its postStart hook fails: {action}", [remedy], True


def _probe_failures(container: Container, facts: Facts, probe: str, *, since: str) -> Sequence[Evidence]:
    """Return the newest Events about a failure of a probe of this container, and none about an earlier run of it."""
    field = f"spec.{'initContainers' if container.is_init else 'containers'}{{{container.name}}}"
    return [
        event_evidence(event)
        for event in facts.events_of(container.pod)
        if event.get("reason") == "Unhealthy"
        and (event.get("involvedObject") or {}).get("fieldPath") == field
        and f"{probe.title()} probe" in (event.get("message") or "")
        and event_time(event)[:_SECONDS] >= since[:_SECONDS]
    ][:2]


def _completed(container: Container) -> tuple[str, Sequence[Remedy], bool]:
    if not container.is_restarted:
        return "has ended by itself with exit code 0", (), True
    remedy = Remedy(
        text="Give it a command that runs until it is stopped, or run it as a Job if it has to end."
    )
    return "ends by itself with exit code 0, and restartPolicy Always starts it again", [remedy], True


# --- running


def probe_text(probe: Any) -> str:
    """Return what a probe asks for."""
    probe = probe or {}
    if get := probe.get("httpGet"):
        return f"GET {get.get('path') or '/'} at port {get.get('port')}"
    if socket := probe.get("tcpSocket"):
        return f"a connection to port {socket.get('port')}"
    if grpc := probe.get("grpc"):
        return f"gRPC at port {grpc.get('port')}"
    if execute := probe.get("exec"):
        return f"the command {' '.join(execute.get('command') or ())}"
    return "nothing"


def _not_ready(container: Container, facts: Facts) -> Finding:
    kind = (
        "startup"
        if container.spec.get("startupProbe") and not container.status.get("started")
        else "readiness"
    )
    probe = container.spec.get(f"{kind}Probe")
    running = Evidence(
        text=f"runs, ready is {str(bool(container.status.get('ready'))).lower()}",
        source=container.field,
        time=(container.running or {}).get("startedAt") or "",
    )
    if probe is None:
        if container.restarts:
            end = explain_end(container, facts)
            return replace(end, evidence=[running, *end.evidence])
        return Finding(
            cause=f"the container {container.name} runs and is not ready, but has no probe that would say why",
            evidence=[running],
            is_known=False,
        )
    failures = _probe_failures(container, facts, kind, since=(container.running or {}).get("startedAt") or "")
    target = probe_text(probe)
    if not failures:
        delay = probe.get("initialDelaySeconds") or 0
        return Finding(
            cause=f"the {kind} probe of the container {container.name} ({target}) has not succeeded, and no failure is recorded",
            evidence=[
                running,
                Evidence(
                    text=f"it begins after {delay} s, and repeats after {probe.get('periodSeconds') or 10} s",
                    source=f"{kind}Probe",
                ),
            ],
            is_known=False,
        )
    return Finding(
        cause=f"the {kind} probe of the container {container.name} ({target}) fails",
        evidence=[running, *failures],
        remedies=[
            Remedy(
                text=f"Correct {kind}Probe in {changed_in(container.pod)}, or what the container answers. To look inside:",
                command=kubectl(
                    "exec",
                    "-it",
                    meta.name(container.pod),
                    "-c",
                    container.name,
                    "--",
                    "sh",
                    namespace=meta.namespace(container.pod),
                ),
            )
        ],
        origins=[_origin(container, facts, f"{kind}Probe")],
    )


_BY_REASON: Final[Mapping[str, Callable[[Container, Facts], Finding]]] = {
    **dict.fromkeys(
        (
            "ErrImagePull",
            "ImagePullBackOff",
            "ErrImageNeverPull",
            "InvalidImageName",
            "ImageInspectError",
            "RegistryUnavailable",
        ),
        _image,
    ),
    **dict.fromkeys(("CreateContainerConfigError", "CreateContainerError"), _configuration),
    **dict.fromkeys(("CrashLoopBackOff", "RunContainerError"), explain_end),
    "ContainerCreating": _creating,
    "NotSimulated": _not_simulated,
}
