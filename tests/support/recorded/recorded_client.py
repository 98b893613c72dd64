"""A fake client that records requests and returns scripted responses, for code that writes with a client."""

from dataclasses import dataclass, field

from mockube.apimachinery import meta
from mockube.client.resources import Key
from mockube.client.verbs import ObjectList


@dataclass
class RecordedClient:
    calls: list = field(default_factory=list)
    """Verb, plural, name, and the body."""
    refusals: dict = field(default_factory=dict)
    """By verb and name, the error to raise instead of a response; the name * matches any."""
    objects: dict = field(default_factory=dict)
    """Objects that `get` returns, by key."""
    revision: int = 100

    async def get(self, resource, key, *, subresource=""):
        self._note("get", resource, key.name, subresource)
        return self.objects[key]

    async def list(self, resource, namespace="", *, field_selector=""):
        self._note("list", resource, namespace, field_selector)
        return ObjectList([*self.objects.values()], str(self.revision), "")

    async def create(self, resource, body):
        name = meta.name(body) or f"{meta.generate_name(body)}{len(self.calls)}"
        self._note("create", resource, name, body)
        return self._with_new_version(meta.with_metadata(body, name=name))

    async def update(self, resource, body, *, subresource=""):
        self._note("update", resource, meta.name(body), subresource)
        return self._with_new_version(body)

    async def patch(self, resource, key, body, *, kind="merge", subresource=""):
        self._note("patch", resource, key.name, (kind, subresource, body))
        return self._with_new_version({"metadata": {"namespace": key.namespace, "name": key.name}})

    async def delete(self, resource, key, *, uid="", propagation=""):
        self._note("delete", resource, key.name, (uid, propagation))
        return self._with_new_version({"metadata": {"namespace": key.namespace, "name": key.name}})

    def _note(self, verb, resource, name, sent):
        self.calls.append((verb, resource.plural, name, sent))
        refusal = self.refusals.get((verb, name)) or self.refusals.get((verb, "*"))
        if refusal is not None:
            raise refusal

    def _with_new_version(self, body):
        self.revision += 1
        return meta.with_metadata(body, resourceVersion=str(self.revision))

    def summary(self):
        """Return the calls in short."""
        return [f"{verb} {plural} {name}" for verb, plural, name, _ in self.calls]


@dataclass
class FakeEventRecorder:
    events: list = field(default_factory=list)

    def record(self, about, type_, reason, message):
        self.events.append((meta.name(about), type_, reason, message))


def key(name):
    return Key("default", name)
