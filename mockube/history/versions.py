"""The versions of one object, from its Changes: each is the one before with a patch."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from msgspec import Struct, field

from mockube.apimachinery import meta
from mockube.apimachinery.patch.json_difference import patched
from mockube.apimachinery.secrets import masked
from mockube.apimachinery.status import ApiError, Expired
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.discovery import DiscoveredResource
from mockube.client.resources import Key
from mockube.client.verbs import Client
from mockube.control_objects import list_changes

from .field_values import FieldChange, changes_of


class Version(Struct, frozen=True, kw_only=True):
    """What one write made of an object."""

    revision: int
    type: str
    """ADDED, MODIFIED or DELETED."""
    time: str = ""
    author: Mapping[str, str] = field(default_factory=dict)
    before: ReadOnlyTree | None
    after: ReadOnlyTree | None
    """Without managed fields; None if there is no object."""
    problem: str = ""
    """Why the object is not known as it was; "" if it is."""

    def changes(self) -> list[FieldChange]:
        return [] if self.problem else changes_of(self.before, self.after)


async def read_versions(client: Client, found: DiscoveredResource, key: Key) -> Sequence[Version]:
    """Return the versions of an object in the history, the oldest first."""
    resource = found.resource
    selector = {"resource": str(resource.group_resource), "namespace": key.namespace, "name": key.name}
    specs = [change["spec"] for change in await list_changes(client, selector)]
    reader = ExactReader(client, found, key)
    versions: list[Version] = []
    tree: ReadOnlyTree | None = None
    problem = ""
    if specs and specs[0]["type"] != "ADDED":
        tree, problem = await reader.read(specs[0]["revision"] - 1)
    for spec in specs:
        before, problem_before = tree, problem
        tree, problem = await _after(spec, before, problem_before, reader)
        versions.append(
            Version(
                revision=spec["revision"],
                type=spec["type"],
                time=spec.get("time", ""),
                author=spec.get("author", {}),
                before=before,
                after=tree,
                problem=problem_before or problem,
            )
        )
    return versions


async def _after(
    spec: ReadOnlyTree, before: ReadOnlyTree | None, problem: str, reader: "ExactReader"
) -> tuple[ReadOnlyTree | None, str]:
    """Return the object after a change, and why it is not known."""
    if spec["type"] == "DELETED":
        return None, ""
    patch = spec.get("patch")
    if patch is not None and (not problem or spec["type"] == "ADDED"):
        return patched(before, patch), ""
    return await reader.read(spec["revision"])


class ExactReader:
    """Reads an object at revisions, by lists at an exact resourceVersion."""

    def __init__(self, client: Client, found: DiscoveredResource, key: Key) -> None:
        self._client, self._found, self._key = client, found, key

    async def read(self, revision: int) -> tuple[ReadOnlyTree | None, str]:
        resource = self._found.resource
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        namespace = f"/namespaces/{self._key.namespace}" if self._key.namespace else ""
        query = {
            "fieldSelector": f"metadata.name={self._key.name}",
            "resourceVersion": str(revision),
            "resourceVersionMatch": "Exact",
        }
        path = f"{root}{namespace}/{resource.plural}?{urlencode(query)}"
        try:
            items = (await self._client.raw("GET", path))["items"]
        except Expired:
            return None, "the history begins later"
        except ApiError as error:
            return None, error.message
        if not items:
            return None, ""
        head = {"kind": resource.kind, "apiVersion": resource.api_version}
        return without_own_fields({**head, **items[0]}), ""


def without_own_fields(tree: ReadOnlyTree) -> ReadOnlyTree:
    """Return an object as Changes have it: without the fields that each write changes, and the values of Secrets."""
    metadata = {
        name: value
        for name, value in tree["metadata"].items()
        if name not in ("managedFields", "resourceVersion")
    }
    clean = {**tree, "metadata": metadata}
    is_secret = (meta.api_version(tree), meta.kind(tree)) == ("v1", "Secret")
    return masked(clean) if is_secret else clean
