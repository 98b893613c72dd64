"""A server for tests of what a report reads: its answers are those of a test."""

import asyncio
from contextlib import asynccontextmanager

from mockube.apimachinery import meta
from mockube.client.verbs import ObjectList
from mockube.report.collection import collect
from mockube.report.recording import NO_SUBJECT

ROW = {"responseKind": {"version": "v1"}, "scope": "Namespaced", "verbs": ["get", "list"], "subresources": []}
TIME = "2026-01-01T00:00:00Z"


def discovery_of(**kinds):
    """Return a document of discovery with kinds of the first group, by their resources."""
    rows = [
        {**ROW, "resource": resource, "responseKind": {"group": "", "version": "v1", "kind": kind}}
        for resource, kind in kinds.items()
    ]
    return {"items": [{"metadata": {}, "versions": [{"version": "v1", "resources": rows}]}]}


class ReportServer:
    """A client and its server: it has objects by resource, and raises errors by resource, by `watch`, by `pods page 2`, or by name for Explanations."""

    def __init__(self, *, objects=None, errors=None, changes=()):
        self.objects = {"pods": [], "secrets": [], **(objects or {})}
        self.errors = errors or {}
        self.changes = [{"metadata": {}, "spec": change} for change in changes]
        self.sent = []
        """The kinds and the names of what was read, created and deleted, in their order."""

    def with_timeout(self, _):
        return self

    async def list(self, kind, **_):
        self._send("list", kind.plural)
        return ObjectList(
            self.changes if kind.plural == "changes" else self.objects.get(kind.plural, []), "9", ""
        )

    async def get(self, kind, key):
        self._send("get", f"{kind.plural}/{key.name}")
        return {"status": {"time": TIME}}

    async def delete(self, kind, key):
        self._send("delete", f"{kind.plural}/{key.name}")
        fault = next(each for each in self.objects["faults"] if meta.name(each) == key.name)
        self.errors.pop(fault["spec"]["match"]["resource"], None)

    async def create(self, kind, body):
        about = body["spec"].get("object") or body["spec"]["request"]
        self._send("create", f"{kind.plural}/{about['name']}")
        subject = {name: about.get(name, "") for name in ("apiVersion", "kind", "namespace", "name")}
        return {
            "status": {"state": "Explained", "cause": "a cause", "object": {**subject, "uid": about["name"]}}
        }

    async def raw(self, method, path, **_):
        self._send(method, path.partition("?")[0])
        if path == "/version":
            return {"gitVersion": "v1.37.2"}
        if path == "/mockube/at/oldest":
            return {"moment": "oldest", "revision": 1}
        if path in ("/api", "/apis"):
            return discovery_of(pods="Pod", secrets="Secret") if path == "/api" else {"items": []}
        resource = path.partition("?")[0].rpartition("/")[2]
        second = f"{resource} page 2"
        if "continue=" in path:
            raise self.errors[second]
        token = "2" if second in self.errors else ""
        return {
            "metadata": {"resourceVersion": "9", "continue": token},
            "items": self.objects.get(resource, []),
        }

    @asynccontextmanager
    async def watch(self, kind, _query, *, timeout_seconds):
        assert timeout_seconds
        self._send("watch", f"{kind.plural}/watch")
        yield

    def _send(self, verb, what):
        self.sent.append(f"{verb} {what}")
        error = self.errors.get(what.rpartition("/")[2])
        if error is not None:
            raise error


def collected(server, subject=NO_SUBJECT, **options):
    return asyncio.run(collect(server, subject, seconds=1.0, **options))
