"""The catalog of the served resources: the built-in groups, and the custom resources, which change at run time.

Callers get mappings of rows, strategies and conversions that always contain the current resources. Builders of documents
are notified of changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias, cast

from msgspec.structs import replace

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import Tree
from mockube.apiserver.event_loop import Worker
from mockube.apiserver.kinds.api_resource import GroupVersion, Resource
from mockube.apiserver.kinds.built_in_kinds import Kinds
from mockube.apiserver.kinds.kind import Conversion, Group
from mockube.apiserver.kinds.strategy import Strategy
from mockube.apiserver.storage.stored_object import Layout

from .compile import by_maturity
from .conversion_webhook import (
    ConversionWebhook,
    Converter,
    FunctionConverter,
    ReviewDependencies,
    WebhookConversion,
)
from .custom_version import CustomVersion

GroupVersionResource: TypeAlias = tuple[str, str, str]
"""The group, version and name of a resource."""

Conversions: TypeAlias = dict[tuple[GroupVersion, str], Conversion]


class Catalog:
    def __init__(
        self,
        groups: Sequence[Group],
        *,
        kinds: Kinds,
        functions: Mapping[GroupResource, Callable[[Tree, str], Tree]] | None = None,
    ) -> None:
        """`functions` convert objects of custom resources to an apiVersion, in place of the webhooks of their definitions."""
        self._built_in = tuple(groups)
        self.kinds = kinds
        """The built-in kinds."""
        self._built_in_names = frozenset(group.name for group in groups)
        self._functions = functions or {}
        self._custom: dict[GroupResource, Sequence[CustomVersion]] = {}
        self._reserved: set[str] = set()
        """Groups of custom resources of the server itself, to which no definition adds a resource."""
        self._unlisted: set[GroupResource] = set()
        """Custom resources that are served, but that neither discovery nor OpenAPI describes."""
        self.custom_kinds: dict[tuple[str, str], CustomVersion] = {}
        """By apiVersion and kind."""
        self.custom_definitions: dict[str, CustomVersion] = {}
        """By the name of the kind in OpenAPI."""
        self.rows: dict[GroupVersionResource, Resource] = {}
        self.stored_rows: dict[GroupResource, Resource] = {}
        """The rows of the storage versions."""
        self.version_strategies: dict[tuple[GroupVersion, str], Strategy] = {}
        """The strategies of custom resources."""
        self.conversions: Conversions = dict(kinds.conversions)
        self.on_change: list[Callable[[], None]] = []
        self.on_resource: list[Callable[[GroupResource], None]] = []
        """Callbacks with a resource whose versions have changed; called before `on_change`."""
        for group in groups:
            for row in group.resources:
                self._put(row)
        for row in kinds.hidden:
            self._put(row, served=False)

    @property
    def groups(self) -> Sequence[Group]:
        """The groups in the order of discovery: the built-in ones first."""
        rows_by_group: dict[str, list[Resource]] = {}
        for resource, custom_versions in sorted(self._custom.items()):
            for custom in custom_versions:
                if custom.served and self.is_listed(resource):
                    rows_by_group.setdefault(custom.row.group, []).append(custom.row)
        return (*self._built_in, *(_group(name, rows) for name, rows in sorted(rows_by_group.items())))

    @property
    def served_versions(self) -> Iterable[CustomVersion]:
        """The served versions of all custom resources."""
        return [
            custom for custom_versions in self._custom.values() for custom in custom_versions if custom.served
        ]

    @property
    def listed_versions(self) -> Iterable[CustomVersion]:
        """The versions of custom resources that discovery and OpenAPI describe."""
        return [custom for custom in self.served_versions if self.is_listed(custom.row.group_resource)]

    def is_listed(self, resource: GroupResource) -> bool:
        return resource not in self._unlisted

    def versions_of(self, resource: GroupResource) -> Sequence[CustomVersion]:
        """Return all versions of a custom resource; none of another resource."""
        return self._custom.get(resource, ())

    def api_versions(self, resource: GroupResource) -> Sequence[str]:
        """Return the versions in which objects of a custom resource may be stored, the current storage version first.

        A built-in resource has none here.
        """
        rows = [custom.row for custom in self._custom.get(resource, ())]
        rows.sort(key=lambda row: row.storage_version not in (None, row.group_version))
        return [row.api_version for row in rows]

    async def prepare(self, worker: Worker, row: Resource) -> None:
        """Build the functions that walk objects of a custom resource before they are needed, in the thread if it takes long."""
        needed = (row.version, row.storage_version and row.storage_version[1])
        for custom in self._custom.get(row.group_resource, ()):
            if custom.row.version in needed and not custom.is_prepared:
                await worker.run(custom.preparation, custom.prepare)

    def add(
        self,
        custom_versions: Sequence[CustomVersion],
        *,
        changed_at: int = 0,
        reviews: ReviewDependencies | None = None,
    ) -> None:
        """Serve a custom resource in all its versions, and stop serving its former versions.

        Objects that were stored until a revision, if one is given, may not match the present definition. A definition
        in a built-in or reserved group is not served, because all paths of the group belong to the resources of the server.
        Without `reviews`, no webhook converts its objects.
        """
        resource = custom_versions[0].row.group_resource
        if resource.group in self._built_in_names or resource.group in self._reserved:
            return
        self._add(resource, custom_versions, changed_at, self._converter(custom_versions, reviews))

    def add_reserved(self, custom_versions: Sequence[CustomVersion]) -> None:
        """Serve a resource of the server itself; no definition adds another one to its group."""
        resource = custom_versions[0].row.group_resource
        self._reserved.add(resource.group)
        self._add(resource, custom_versions, 0, None)

    def _add(
        self,
        resource: GroupResource,
        custom_versions: Sequence[CustomVersion],
        changed_at: int,
        converter: Converter | None,
    ) -> None:
        self._forget(resource)
        self._custom[resource] = custom_versions
        for custom in custom_versions:
            self._put_custom(custom)
            if converter is not None:
                conversion = _remote_conversion(converter, custom)
            elif len(custom_versions) > 1 or changed_at:
                conversion = _conversion(custom, custom_versions, changed_at)
            else:
                continue
            self.conversions[custom.row.group_version, custom.row.name] = conversion
        self._notify_change(resource)

    def set_terminating(self, resource: GroupResource, *, terminating: bool) -> None:
        """Refuse the creation of objects of a custom resource, or allow it again. Its watches and conversions stay."""
        if resource not in self._custom:
            return
        self._custom[resource] = [
            replace(custom, row=replace(custom.row, terminating=terminating))
            for custom in self._custom[resource]
        ]
        for custom in self._custom[resource]:
            self._put_custom(custom)
        self._notify_documents()

    def unlist(self, resource: GroupResource) -> None:
        """Omit a custom resource from discovery and OpenAPI from its next `add` until `list_resource`."""
        self._unlisted.add(resource)

    def list_resource(self, resource: GroupResource) -> None:
        """Describe a custom resource in discovery and OpenAPI."""
        if resource in self._unlisted:
            self._unlisted.discard(resource)
            self._notify_documents()

    def remove(self, resource: GroupResource) -> None:
        """Stop serving a custom resource."""
        self._unlisted.discard(resource)
        if resource in self._custom:
            self._forget(resource)
            self._notify_change(resource)

    def stored_row(self, resource: GroupResource) -> Resource | None:
        """Return the row of the version that objects of a custom resource are stored in."""
        return self.stored_rows.get(resource) if resource in self._custom else None

    def _converter(
        self, custom_versions: Sequence[CustomVersion], reviews: ReviewDependencies | None
    ) -> Converter | None:
        """Return the conversion of a definition's objects by a function or by its webhook, or None."""
        convert = self._functions.get(custom_versions[0].row.group_resource)
        if convert is not None and len(custom_versions) > 1:
            return FunctionConverter(convert, custom_versions)
        if custom_versions[0].webhook is not None and reviews is not None:
            return ConversionWebhook(reviews, custom_versions)
        return None

    def _put(self, row: Resource, *, served: bool = True) -> None:
        if served:
            self.rows[row.group, row.version, row.name] = row
        if row.storage_version in (None, row.group_version):
            self.stored_rows[row.group_resource] = row

    def _put_custom(self, custom: CustomVersion) -> None:
        self._put(custom.row, served=custom.served)
        self.custom_kinds[custom.row.api_version, custom.row.kind] = custom
        self.custom_definitions[custom.definition_name] = custom
        self.version_strategies[custom.row.group_version, custom.row.name] = custom.strategy

    def _forget(self, resource: GroupResource) -> None:
        for custom in self._custom.pop(resource, ()):
            row = custom.row
            self.rows.pop((row.group, row.version, row.name), None)
            self.stored_rows.pop(resource, None)
            self.custom_kinds.pop((row.api_version, row.kind))
            self.custom_definitions.pop(custom.definition_name)
            self.conversions.pop((row.group_version, row.name), None)
            self.version_strategies.pop((row.group_version, row.name), None)

    def _notify_change(self, resource: GroupResource) -> None:
        for notify in self.on_resource:
            notify(resource)
        self._notify_documents()

    def _notify_documents(self) -> None:
        for handler in self.on_change:
            handler()


def _group(name: str, rows: Sequence[Resource]) -> Group:
    versions = by_maturity({row.version for row in rows})
    return Group(name=name, versions=tuple(versions), resources=tuple(rows))


def _stored_version(custom_versions: Sequence[CustomVersion]) -> CustomVersion:
    """Return the storage version."""
    return next(
        custom for custom in custom_versions if custom.row.storage_version in (None, custom.row.group_version)
    )


def _remote_conversion(converter: Converter, custom: CustomVersion) -> Conversion:
    return Conversion(
        to_stored=_refuse_conversion,
        from_stored=_refuse_conversion,
        at_storage=True,
        remote=WebhookConversion(converter, custom),
    )


def _refuse_conversion(_tree: Tree) -> Tree:
    raise AssertionError("a webhook converts it")


def _conversion(
    custom: CustomVersion, custom_versions: Sequence[CustomVersion], changed_at: int
) -> Conversion:
    """Convert only the apiVersion between versions of a custom resource; each version has the fields of its schema."""
    stored = _stored_version(custom_versions)
    by_api_version = {each.row.api_version: each for each in custom_versions}

    def to_stored(tree: Tree) -> Tree:
        # Upstream sets the defaults of the stored version when the object is read; so only a later default is set.
        pruned: Tree = stored.prune({**tree, "apiVersion": stored.row.api_version}, [])
        stored.default(pruned)
        return pruned

    def from_stored(tree: Tree) -> Tree:
        """Return an object with the fields and the defaults of the version in which it was stored."""
        own = by_api_version.get(tree["apiVersion"])
        if own is None:
            raise ValueError(f"request to convert CR from an invalid group/version: {tree['apiVersion']}")
        pruned: Tree = own.prune(tree, [])
        own.default(pruned)
        if own is custom:
            return pruned
        return cast(Tree, custom.prune({**pruned, "apiVersion": custom.row.api_version}, []))

    return Conversion(
        to_stored=to_stored,
        from_stored=from_stored,
        at_storage=True,
        stored_before=changed_at if custom is stored else None,
    )


def equivalent_resources(catalog: Catalog, layout: Layout) -> Callable[[Resource], Sequence[Resource]]:
    """Return a function that finds all versions of a resource by the key prefix of their objects."""
    equivalents_by_row: dict[Resource, Sequence[Resource]] = {}
    catalog.on_change.append(equivalents_by_row.clear)

    def equivalents(row: Resource) -> Sequence[Resource]:
        if row not in equivalents_by_row:
            prefix = layout.prefix(row)
            equivalents_by_row[row] = [
                each for each in catalog.rows.values() if layout.prefix(each) == prefix
            ]
        return equivalents_by_row[row]

    return equivalents
