"""Reads what a report contains from a server: first the requests, to which those of the report are added."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar
from urllib.parse import urlencode

from msgspec.structs import replace

from mockube import control_objects
from mockube.apimachinery import conditions, meta
from mockube.apimachinery.pods import assumption_of
from mockube.apimachinery.status import ApiError, Forbidden, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import ACCEPT, ROOTS, DiscoveredResource, parse
from mockube.client.kinds import PODS
from mockube.client.resources import AnyResource, Key
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.counted import counted
from mockube.control_objects import CHANGES, CLOCK, CLOCKS, FAULTS, MARKS, REQUESTS
from mockube.explanations.commands import why_object
from mockube.failure import Failure, Missing
from mockube.history.all_changes import AllChanges, read_all_changes

from .candidates import Candidate, candidates, unhealthy_containers
from .masking import SECRETS, ValueMask, masked_secrets
from .recording import ContainerLog, Recording, Subject
from .refusals import is_own_call, refusals

T = TypeVar("T")
S = TypeVar("S")

SECONDS: Final = 300.0
"""How long a list or the history may take."""
MAX_EXPLANATIONS: Final = 200
"""The objects that are explained: more have the same causes."""
MAX_REFUSALS: Final = 20
"""The refused requests that are explained, the newest ones."""
MAX_LOGS: Final = 60
LOG_LINES: Final = 40
MAX_LOG: Final = 256 * 1024
"""The bytes that are read of a log."""
MAX_LOG_LINE: Final = 2_000
"""The characters of a line."""
_LOG_SECONDS: Final = 20.0
_AT_ONCE: Final = 8
_PAGE: Final = 500
_NOT_LISTED: Final = frozenset({"events", "leases", "componentstatuses"})
_GROUPS_NOT_LISTED: Final = frozenset({"control.mockube.dev", "metrics.k8s.io"})
_EVENTS: Final = "/api/v1/events"
_NO_PROBLEM: Final = "NoProblem"


async def collect(
    client: Client, subject: Subject, seconds: float, *, ends_faults: bool = False
) -> Recording:
    """Return what a report of the cluster of a server contains. If `ends_faults`, faults are deleted, as they could refuse its requests."""
    problems: dict[str, ApiError] = {}
    """Why a resource could not be listed."""
    all_requests = await _list_control(client, REQUESTS, problems)
    requests = [each for each in all_requests if not is_own_call(each)]
    begin = await _time_of(client)
    marks, faults = [
        sorted(await _list_control(client, kind, problems), key=meta.name) for kind in (MARKS, FAULTS)
    ]
    if ends_faults:
        await _delete_faults(client, faults)
    documents = [await client.raw("GET", root, accept=ACCEPT) for root in ROOTS]
    history = await _read_changes(client, seconds, problems)
    objects = await _list_objects(client, parse(documents).resources, problems)
    _check_secrets(problems)
    events = await _list(client, _EVENTS, "events", problems)
    chosen = candidates(objects)
    explained = [
        (candidate, status)
        for candidate, status in await _explain(client, chosen[:MAX_EXPLANATIONS])
        if status["state"] != _NO_PROBLEM
    ]
    logs, omitted_logs = await _read_logs(client, [candidate for candidate, _ in explained])
    created = {change["object"].get("uid") for change in history.changes if change["type"] == "ADDED"}
    older = sum(meta.uid(tree) not in created for trees in objects.values() for tree in trees)
    refused = {resource: error.message for resource, error in problems.items()}
    if begin and begin == await _time_of(client):
        requests = [*map(_without_duration, requests)]
    counts = {resource: len(trees) for resource, trees in objects.items()} | {"events": len(events)}
    recording = Recording(
        version=(await client.raw("GET", "/version"))["gitVersion"],
        revision=history.revision,
        discovery=documents,
        objects=_without_managers(objects, created),
        refused=refused,
        events=sorted(events, key=_event_place),
        changes=[*history.changes],
        requests=requests,
        marks=marks,
        faults=faults,
        logs=logs,
        explanations=[status for _, status in explained],
        similar={candidate.identity: candidate.similar for candidate, _ in explained if candidate.similar},
        refusals=await _explain_refusals(client, requests),
        subject=_encodable(subject),
        notes=[
            *_assumed(objects.get("pods", ())),
            *_notes(history, refused, counts, older, omitted_logs, len(chosen)),
            *_own_calls(len(all_requests) - len(requests)),
        ],
    )
    return without_secrets(recording)


def _encodable(subject: Subject) -> Subject:
    """Return a subject whose texts are valid in UTF-8: an argument of a command, or a message, may be made of other bytes."""
    title, text = (part.encode(errors="backslashreplace").decode() for part in (subject.title, subject.text))
    return Subject(title=title, result=subject.result, text=text)


async def _delete_faults(client: Client, faults: Sequence[ReadOnlyTree]) -> None:
    for fault in faults:
        with suppress(NotFound):
            await client.delete(FAULTS, Key.of(fault))


async def _time_of(client: Client) -> str:
    """Return the time of the cluster's clock; "" if it is not known."""
    try:
        clock = await client.get(CLOCKS, CLOCK)
    except ApiError:
        return ""
    return str(clock["status"]["time"])


def _without_duration(request: ReadOnlyTree) -> ReadOnlyTree:
    """Return a request without its duration, which is the machine's: where time stands still, as with a seed, it means nothing."""
    status = {name: value for name, value in (request.get("status") or {}).items() if name != "seconds"}
    return {**request, "status": status}


def without_secrets(recording: Recording) -> Recording:
    """Return a recording without the values of Secrets, also where a text quotes one."""
    mask = ValueMask(recording.objects.get(SECRETS, ()), _names(recording))
    objects = {
        resource: mask.trees(masked_secrets(trees) if resource == SECRETS else trees)
        for resource, trees in recording.objects.items()
    }
    subject = recording.subject
    return replace(
        recording,
        objects=objects,
        refused=mask.tree(recording.refused),
        events=mask.trees(recording.events),
        changes=mask.trees(recording.changes),
        requests=mask.trees(recording.requests),
        marks=mask.trees(recording.marks),
        faults=mask.trees(recording.faults),
        logs=[
            replace(
                log,
                # A part of a value, at the end of a line that is cut before, would not be found.
                lines=[mask.text(line)[:MAX_LOG_LINE] for line in log.lines],
                problem=mask.text(log.problem),
            )
            for log in recording.logs
        ],
        explanations=mask.trees(recording.explanations),
        refusals={name: mask.tree(status) for name, status in recording.refusals.items()},
        subject=Subject(title=mask.text(subject.title), result=subject.result, text=mask.text(subject.text)),
        notes=[*map(mask.text, recording.notes)],
    )


def _names(recording: Recording) -> Collection[str]:
    """Return the names and namespaces of objects, also of those that are deleted."""
    trees = [tree for trees in recording.objects.values() for tree in trees]
    subjects = [change["object"] for change in recording.changes]
    return {
        *map(meta.name, trees),
        *map(meta.namespace, trees),
        *(subject["name"] for subject in subjects),
        *(subject.get("namespace", "") for subject in subjects),
    }


def _assumed(pods: Sequence[ReadOnlyTree]) -> Iterator[str]:
    """Yield which pods are ready by assumption: nothing of them is among what is not healthy."""
    assumed = [pod for pod in pods if conditions.is_true(pod, "Ready") and assumption_of(pod)]
    if assumed:
        first = assumed[0]
        subject = f"{counted(len(assumed), 'pod is', 'pods are')} ready by assumption"
        yield f"{subject}, such as {meta.namespace(first)}/{meta.name(first)}: {assumption_of(first)}: `{why_object(first)}`."


def _notes(
    history: AllChanges,
    refused: Mapping[str, str],
    counts: Mapping[str, int],
    older: int,
    omitted_logs: int,
    candidate_count: int,
) -> Iterable[str]:
    if history.ignored:
        yield f"{history.ignored} writes of Leases and Events are left out."
    yield from history.omitted()
    if older and history.revision:
        yield f"The history begins after the creation of {older} objects: `mockube up --history=all` keeps all of it."
    for resource, problem in sorted(refused.items()):
        count = counts.get(resource, 0)
        yield f"{resource} could not be listed{f', apart from {count}' if count else ''}: {problem}"
    if SECRETS in refused:
        yield "The values of Secrets are not masked where other texts quote them."
    if candidate_count > MAX_EXPLANATIONS:
        yield f"{candidate_count - MAX_EXPLANATIONS} objects that may have a problem are not explained."
    if omitted_logs:
        yield f"The logs of {omitted_logs} containers that are not healthy are left out."


def _own_calls(count: int) -> Iterable[str]:
    if count:
        yield f"{count} requests with which mockube looked at the cluster are left out."


# --- lists


async def _list_control(
    client: Client, kind: AnyResource, problems: dict[str, ApiError]
) -> Sequence[ReadOnlyTree]:
    """Return the objects of a kind of control; none, and the problem, if the user may not list them."""
    try:
        with control_objects.needs_control():
            return (await client.list(kind)).items
    except Forbidden as error:
        problems[str(kind.group_resource)] = error
        return ()


async def _read_changes(client: Client, seconds: float, problems: dict[str, ApiError]) -> AllChanges:
    try:
        return await read_all_changes(client, seconds)
    except Forbidden as error:
        problems[str(CHANGES.group_resource)] = error
        return AllChanges()


def _check_secrets(problems: Mapping[str, ApiError]) -> None:
    """Refuse a report whose masks would lack values of Secrets that the user may read, and that other texts may quote."""
    error = problems.get(SECRETS)
    if error is not None and not isinstance(error, Forbidden):
        raise Failure(f"Secrets could not be listed, so that their values cannot be masked: {error.message}")


async def _list_objects(
    client: Client, resources: Sequence[DiscoveredResource], problems: dict[str, ApiError]
) -> dict[str, Sequence[ReadOnlyTree]]:
    """Return the objects of all kinds by resource."""
    rows = {
        str(found.resource.group_resource): found.resource
        for found in resources
        if "list" in found.verbs
        and found.resource.plural not in _NOT_LISTED
        and found.resource.group not in _GROUPS_NOT_LISTED
    }

    async def read(name: str) -> tuple[str, Sequence[ReadOnlyTree]]:
        row = rows[name]
        items = await _list(client, row.path("", ""), name, problems)
        head = {"kind": row.kind, "apiVersion": row.api_version}
        trees = [{**head, **item} for item in items]
        return name, sorted(trees, key=lambda tree: (meta.namespace(tree), meta.name(tree)))

    return {name: trees for name, trees in await _gather(read, sorted(rows)) if trees}


async def _list(
    client: Client, path: str, name: str, problems: dict[str, ApiError]
) -> Sequence[ReadOnlyTree]:
    """Return all objects of a path; if there is a problem, those before it."""
    items: list[ReadOnlyTree] = []
    token = ""
    while True:
        query = urlencode({"limit": _PAGE, **({"continue": token} if token else {})})
        try:
            page = await client.raw("GET", f"{path}?{query}")
        except ApiError as error:
            problems[name] = error
            return items
        items += page.get("items") or ()
        token = page["metadata"].get("continue") or ""
        if not token:
            return items


async def _gather(work: Callable[[S], Awaitable[T]], values: Iterable[S]) -> list[T]:
    """Return the results of work for some values, in their order; a few run at a time."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def run(value: S) -> T:
        async with places:
            return await work(value)

    return await asyncio.gather(*map(run, values))


def _event_place(event: ReadOnlyTree) -> tuple[str, str, str]:
    time = (
        event.get("lastTimestamp") or event.get("eventTime") or meta.metadata(event).get("creationTimestamp")
    )
    return time or "", meta.namespace(event), meta.name(event)


def _without_managers(
    objects: Mapping[str, Sequence[ReadOnlyTree]], created: Collection[str]
) -> Mapping[str, Sequence[ReadOnlyTree]]:
    """Return objects without their managed fields, if the changes have the authors of all fields: since their creation."""
    return {
        resource: [_without_managed_fields(tree) if meta.uid(tree) in created else tree for tree in trees]
        for resource, trees in objects.items()
    }


def _without_managed_fields(tree: ReadOnlyTree) -> ReadOnlyTree:
    metadata = {name: value for name, value in tree["metadata"].items() if name != "managedFields"}
    return {**tree, "metadata": metadata}


# --- explanations and logs


async def _explain(client: Client, chosen: Sequence[Candidate]) -> Sequence[tuple[Candidate, ReadOnlyTree]]:
    """Return the candidates that are still there, with the statuses of their Explanations."""

    async def explain(candidate: Candidate) -> tuple[Candidate, ReadOnlyTree | None]:
        following: Candidate | None = candidate
        while following is not None:
            try:
                return following, await _explanation_of(client, following.tree)
            except Missing:  # it was deleted meanwhile, and the others have the same cause
                following = following.without_first()
        return candidate, None

    return [(candidate, status) for candidate, status in await _gather(explain, chosen) if status is not None]


async def _explanation_of(client: Client, tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return the status of an object's Explanation; raise Missing if the object does not exist any more."""
    named = {
        "apiVersion": meta.api_version(tree),
        "kind": meta.kind(tree),
        "name": meta.name(tree),
        "namespace": meta.namespace(tree),
        "uid": meta.uid(tree),
    }
    try:
        explanation = await control_objects.explain_object(
            client, meta.api_version(tree), meta.kind(tree), Key.of(tree)
        )
    except (control_objects.NoControl, ApiError, NoResponse) as error:
        cause = f"the server does not explain it: {error}"
        return {"state": "Unknown", "cause": cause, "object": named}
    status: ReadOnlyTree = explanation["status"]
    return status


async def _explain_refusals(client: Client, requests: Sequence[ReadOnlyTree]) -> Mapping[str, ReadOnlyTree]:
    async def explain(name: str) -> tuple[str, ReadOnlyTree | None]:
        try:
            return name, (await control_objects.explain(client, {"request": {"name": name}}))["status"]
        except (Missing, ApiError, NoResponse):
            return name, None

    names = [refusal.name for refusal in refusals(requests)[:MAX_REFUSALS]]
    return {name: status for name, status in await _gather(explain, names) if status is not None}


async def _read_logs(client: Client, chosen: Sequence[Candidate]) -> tuple[Sequence[ContainerLog], int]:
    """Return the last lines of the containers that are not healthy, and of how many there are none."""
    places = [
        ContainerLog(
            namespace=candidate.identity.namespace,
            pod=candidate.identity.name,
            container=container,
            is_previous=is_previous,
        )
        for candidate in chosen
        if candidate.identity.resource == PODS.plural
        for container, is_previous in unhealthy_containers(candidate.tree)
    ]

    async def read(log: ContainerLog) -> ContainerLog:
        previous = {"previous": "true"} if log.is_previous else {}
        query = urlencode(
            {"container": log.container, "tailLines": LOG_LINES, "limitBytes": MAX_LOG, **previous}
        )
        path = f"{PODS.path(log.namespace, log.pod, 'log')}?{query}"
        try:
            async with client.download(path, timeout_seconds=_LOG_SECONDS) as stream:
                content = await stream.read()
        except (ApiError, NoResponse) as error:
            return replace(log, problem=str(error))
        lines = content.decode(errors="replace").splitlines()
        if len(content) < MAX_LOG:
            return replace(log, lines=lines)
        # The last line may be cut within a value of a Secret, which is not found then.
        return replace(log, lines=lines[:-1], problem="" if lines[1:] else "its line is too long")

    return await _gather(read, places[:MAX_LOGS]), max(0, len(places) - MAX_LOGS)
