"""Who owns what was made: the references that objects had elsewhere, with the uids that their owners have here."""

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.client import Client
from mockube.controller_manager.client.resources import Key
from mockube.importing.kinds import Kinds, NotServed


class Owners:
    """Those that were made, and those that are met in the cluster."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._uids: dict[str, str] = {}
        """Those of here by those of there; "" for one that is not here."""

    def note(self, there: str, here: str) -> None:
        if there:
            self._uids[there] = here

    async def references(self, tree: ReadOnlyTree, kinds: Kinds) -> tuple[list[ReadOnlyTree], list[str]]:
        """An object's, as they are to be; and the names of owners that are not here, who are left out."""
        found: list[ReadOnlyTree] = []
        absent: list[str] = []
        for reference in meta.owner_references(tree):
            uid = await self._uid(reference, meta.namespace(tree), kinds)
            if uid:
                found.append({**reference, "uid": uid})
            else:
                absent.append(f"{reference.get('kind')} {reference.get('name')}")
        return found, absent

    async def _uid(self, reference: ReadOnlyTree, namespace: str, kinds: Kinds) -> str:
        uid = str(reference.get("uid") or "")
        if uid not in self._uids:
            self._uids[uid] = await self._look_up(reference, namespace, kinds)
        return self._uids[uid]

    async def _look_up(self, reference: ReadOnlyTree, namespace: str, kinds: Kinds) -> str:
        """By name: one that is not among what was read may be here all the same."""
        try:
            owner = await self._client.get(kinds.resource_of(reference), Key(namespace, reference["name"]))
        except (NotFound, NotServed):
            return ""
        return meta.uid(owner)
