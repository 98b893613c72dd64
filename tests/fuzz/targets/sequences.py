"""Concurrent writes of several clients, and watchers with selectors that start at different revisions.

One watcher that starts before all writes gets the history. It must be the writes' responses in order, each once;
every other watcher must get what its selector matches of it; the final list and the store must equal its end.
"""

import asyncio
from dataclasses import dataclass, field

import orjson

from mockube.apimachinery import labels
from mockube.client.wire import Request
from tests.fuzz.engine import Fault, Target
from tests.fuzz.server import session
from tests.support.event_loop import WAIT_TIMEOUT

PATHS = ("/api/v1/namespaces/default/configmaps", "/apis/coordination.k8s.io/v1/namespaces/default/leases")
MARKER = "zz-marker"
SELECTORS = ("", "l=1", "l in (1,2)", "l!=2", "!gone", "l,l notin (9)")
OPERATIONS = (
    "create",
    "create",
    "create",
    "label",
    "label",
    "put",
    "delete",
    "delete-collection",
    "apply",
    "finalize",
    "watch",
    "watch",
    "together",
)


def _operation(random, *, nested=False):
    name = random.choice([one for one in OPERATIONS if not nested or one not in ("watch", "together")])
    if name == "together":
        return {"do": name, "all": [_operation(random, nested=True) for _ in range(random.choice((2, 3, 6)))]}
    if name == "watch":
        return {
            "do": name,
            "selector": random.choice(SELECTORS),
            "from": random.choice(("", "0", "start", "now", "now")),
        }
    return {
        "do": name,
        "name": random.choice("abcd"),
        "label": random.choice("123"),
        "selector": random.choice(SELECTORS),
        "dry": random.random() < 0.1,
    }


def _make(random):
    return {
        "path": random.choice(PATHS),
        "steps": [_operation(random) for _ in range(random.choice((4, 10, 25)))],
    }


def _mutate(case, random):
    steps = [step for step in case["steps"] if random.random() < 0.9]
    return case | {"steps": [*steps, *(_operation(random) for _ in range(random.choice((1, 3))))][:60]}


@dataclass
class Watcher:
    selector: str
    start: int
    """Events after this revision are expected; with `initial`, after the existing objects."""
    initial: bool = False
    events: list = field(default_factory=list)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    begun: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, server, path, version):
        query = f"watch=1&timeoutSeconds=60&resourceVersion={version}&labelSelector={self.selector.replace(' ', '%20')}"
        request = Request(method="GET", target=f"{path}?{query}", headers={}, timeout=60)
        rest = b""
        async with server.transport.stream(request, {"Authorization": "Bearer admin"}) as stream:
            self.begun.set()
            async for chunk in stream.chunks():
                *complete, rest = (rest + chunk).split(b"\n")
                self.events += map(orjson.loads, complete)
                if self.events and self.events[-1]["object"].get("metadata", {}).get("name") == MARKER:
                    break
        self.ended.set()


class RequestSequence:
    """One running case."""

    def __init__(self, server, path):
        self.server = server
        self.path = path
        self.answers = []
        self.watchers = []
        self.revision = 0

    async def revision_now(self):
        return int(
            (await self.server.send("GET", f"{self.path}?limit=1")).tree["metadata"]["resourceVersion"]
        )

    async def step(self, group, step):
        match step.get("do"):
            case "together":
                await asyncio.gather(*(self.write(one) for one in step["all"]))
            case "watch":
                await self.watch(group, step["selector"], step["from"])
            case _:
                await self.write(step)

    async def watch(self, group, selector, where):
        now = await self.revision_now()
        start = self.revision if where == "start" else now
        watcher = Watcher(selector, start, initial=where in ("", "0"))
        version = {"start": start, "now": now}.get(where, where)
        self.watchers.append(watcher)
        group.create_task(watcher.run(self.server, self.path, version))
        await watcher.begun.wait()

    async def write(self, step):
        name, one = step["name"], f"{self.path}/{step['name']}"
        dry = "&dryRun=All" if step.get("dry") else ""
        tree = {"metadata": {"name": name, "labels": {"l": step["label"]}}}
        answer = await self._send(step["do"], step, one, tree, dry)
        if (
            answer.status in (200, 201)
            and not dry
            and answer.tree["kind"] not in ("Status", "ConfigMapList", "LeaseList")
        ):
            self.answers.append(answer.tree)

    async def _send(self, do, step, one, tree, dry):
        send, merge = self.server.send, "application/merge-patch+json"
        match do:
            case "create":
                return await send("POST", f"{self.path}?{dry}", orjson.dumps(tree))
            case "label":
                patch = {
                    "metadata": {
                        "labels": {"l": step["label"], "gone": None if step["label"] == "1" else "x"}
                    }
                }
                return await send("PATCH", f"{one}?{dry}", orjson.dumps(patch), Content_Type=merge)
            case "put":
                return await send("PUT", f"{one}?{dry}", orjson.dumps(tree))
            case "delete":
                return await send("DELETE", f"{one}?{dry}")
            case "delete-collection":
                return await send(
                    "DELETE", f"{self.path}?labelSelector={step['selector'].replace(' ', '%20')}{dry}"
                )
            case "apply":
                kind = (
                    ("v1", "ConfigMap") if "configmaps" in self.path else ("coordination.k8s.io/v1", "Lease")
                )
                tree |= {"apiVersion": kind[0], "kind": kind[1]}
                return await send(
                    "PATCH",
                    f"{one}?fieldManager=m&force=true{dry}",
                    orjson.dumps(tree),
                    Content_Type="application/apply-patch+yaml",
                )
            case _:
                finalizers = ["example.com/x"] if step["label"] == "1" else None
                return await send(
                    "PATCH",
                    f"{one}?{dry}",
                    orjson.dumps({"metadata": {"finalizers": finalizers}}),
                    Content_Type=merge,
                )


def _is_whole(step):
    """Whether a step is still valid after shrinking."""
    match step:
        case {"do": "together", "all": list(steps)}:
            return all(map(_is_whole, steps))
        case {"do": "watch", "selector": selector, "from": "" | "0" | "start" | "now"}:
            return selector in SELECTORS
        case {"do": str(), "name": str(name), "label": str(label), "selector": selector}:
            return bool(name and label) and selector in SELECTORS
    return False


async def _check(server, case):
    if (
        not {"path", "steps"} <= case.keys()
        or case["path"] not in PATHS
        or not all(map(_is_whole, case["steps"]))
    ):
        return "no case"
    sequence = RequestSequence(server, case["path"])
    sequence.revision = await sequence.revision_now()
    try:
        async with asyncio.TaskGroup() as group:
            await sequence.watch(group, "", "start")
            for step in case["steps"]:
                await sequence.step(group, step)
            marker = {"metadata": {"name": MARKER, "labels": {"l": "1"}}}
            sequence.answers.append((await server.send("POST", case["path"], orjson.dumps(marker))).tree)
            try:
                async with asyncio.timeout(WAIT_TIMEOUT):
                    await asyncio.gather(*(watcher.ended.wait() for watcher in sequence.watchers))
            except TimeoutError:
                raise Fault("a watcher does not see the last write") from None
        history = _check_history(sequence)
        await _check_end(server, sequence, history)
    finally:
        await _clear(server, case["path"])
    return f"seen: {len(history)} {len(sequence.watchers)}"


def _revision(tree):
    return int(tree["metadata"]["resourceVersion"])


def _check_history(sequence):
    """The first watcher's events, which must equal the writes' responses."""
    first, *others = sequence.watchers
    history = [(event["type"], event["object"]) for event in first.events]
    revisions = [_revision(tree) for _, tree in history]
    if revisions != sorted(set(revisions)):
        raise Fault("a watcher sees changes out of order, or twice")
    seen = {_revision(tree): (kind, tree) for kind, tree in history}
    for tree in sequence.answers:
        kind, event = seen.get(_revision(tree), ("", None))
        if event is None:
            raise Fault("a watcher does not see a write")
        if kind != "DELETED" and event != tree and not _is_last_step(tree):
            raise Fault(f"a watcher sees something else than a write answered\n{event}\n{tree}")
    names = set()
    for kind, tree in history:
        name = tree["metadata"]["name"]
        if (kind == "ADDED") == (name in names):
            raise Fault(f"a watcher sees {kind} of what is {'there' if name in names else 'not there'}")
        names = names - {name} if kind == "DELETED" else names | {name}
    for watcher in others:
        _check_watcher(watcher, history)
    return history


def _is_last_step(tree):
    """The response to a write that removed the last finalizer of a deleted object: it was never stored so."""
    metadata = tree["metadata"]
    return "deletionTimestamp" in metadata and not metadata.get("finalizers")


def _check_watcher(watcher, history):
    selector, state, initial, due = labels.parse(watcher.selector), {}, [], []
    for kind, tree in history:
        name, is_old = tree["metadata"]["name"], _revision(tree) <= watcher.start
        before = name in state and selector.matches(state[name]["metadata"].get("labels") or {})
        after = kind != "DELETED" and selector.matches(tree["metadata"].get("labels") or {})
        state.pop(name, None)
        if kind != "DELETED":
            state[name] = tree
        if not is_old and (before or after):
            due.append(("DELETED" if not after else "MODIFIED" if before else "ADDED", name, _revision(tree)))
        elif is_old:
            initial = [
                ("ADDED", name, _revision(one))
                for name, one in sorted(state.items())
                if selector.matches(one["metadata"].get("labels") or {})
            ]
    seen = [
        (event["type"], event["object"]["metadata"]["name"], _revision(event["object"]))
        for event in watcher.events
    ]
    first = len(initial) if watcher.initial else 0
    if watcher.initial and sorted(seen[:first]) != sorted(initial):
        raise Fault("a watcher does not begin with what is there")
    if seen[first:] != due:
        raise Fault(f"a watcher with a selector does not see its changes\n{seen[first:]}\n{due}")


async def _check_end(server, sequence, history):
    state = {}
    for kind, tree in history:
        state.pop(tree["metadata"]["name"], None)
        if kind != "DELETED":
            state[tree["metadata"]["name"]] = tree
    listed = (await server.send("GET", sequence.path)).tree["items"]
    if {tree["metadata"]["name"]: _revision(tree) for tree in listed} != {
        name: _revision(tree) for name, tree in state.items()
    }:
        raise Fault("a list is not where the watch ends")
    await server.check_cache()


async def _clear(server, path):
    for name in (*"abcd", MARKER):
        await server.send(
            "PATCH",
            f"{path}/{name}",
            b'{"metadata":{"finalizers":null}}',
            Content_Type="application/merge-patch+json",
        )
        await server.send("DELETE", f"{path}/{name}")
    left = (await server.send("GET", path)).tree["items"]
    if left:
        raise Fault("objects are left when all were deleted")


TARGETS = (
    Target(
        name="sequences", generate=_make, check=_check, session=session, weight=4, mutate=_mutate, examples=60
    ),
)
