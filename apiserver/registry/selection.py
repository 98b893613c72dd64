"""Select the objects of a list, a watch or a deletecollection by labels and by fields.

An empty selector has no cost, and a selector of a name limits the keys. Only other selectors are matched with objects.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Final, TypeAlias

from msgspec import Struct

from mockube.apimachinery import gotext, labels, names, status
from mockube.apimachinery.labels import SelectorError
from mockube.apiserver import fields
from mockube.apiserver.fields import METADATA_NAME, METADATA_NAMESPACE, FieldSelectorError, SelectableField
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.storage.stored_object import StoredObject

from .registry import Backend
from .request_context import ListOptions, RequestContext, check_list_options, list_options

Fields: TypeAlias = Mapping[str, SelectableField]

_NOT_SUPPORTED: Final = "field label not supported: {label}"
_NOT_KNOWN: Final = '{quoted} is not a known field selector: only "metadata.name", "metadata.namespace"'


class UnsupportedFieldLabel(status.BadRequest):
    """The objects of the resource cannot be selected by a field."""


class Selection(Struct, frozen=True, kw_only=True):
    """The compiled selectors of a request.

    `name` and `namespace` are those that the selector requires, if it does; `matches` is None if every object matches.
    """

    name: str = ""
    namespace: str = ""
    label: tuple[str, str] | None = None
    """A label and its required value, if the selector has one: the key of an index."""
    matches: Callable[[StoredObject], bool] | None = None
    indexed: Callable[[StoredObject], bool] | None = None
    """Selects the objects that upstream's index of a field has for the required value, if the selector has one."""
    cost: int = 1
    """How much longer than a short selector it takes to match an object."""


SELECT_ALL = Selection()


def selection(resource: Resource, label_selector: str, field_selector: str) -> Selection:
    is_usual = len(label_selector) + len(field_selector) <= _USUAL_LENGTH
    return (_select_usual if is_usual else _select)(resource, label_selector, field_selector)


async def select_by(
    backend: Backend, context: RequestContext, *, watch_list: bool = True
) -> tuple[ListOptions, Selection]:
    """Return the options of a list, a watch or a deletecollection, and the selection of its selectors.

    As upstream, selectors are parsed before the options are checked, and the labels of fields are checked last.
    """
    options = list_options(context)
    by_label, by_field = options.label_selector, options.field_selector
    size = len(by_label) + len(by_field)
    try:
        chosen = await backend.worker.run(size, selection, context.resource, by_label, by_field)
    except UnsupportedFieldLabel:
        check_list_options(context, options, watch_list=watch_list)
        raise
    check_list_options(context, options, watch_list=watch_list)
    return options, chosen


def _select(resource: Resource, label_selector: str, field_selector: str) -> Selection:
    if not label_selector and not field_selector:
        return SELECT_ALL
    by_label, by_field = _labels(label_selector), _fields(resource, field_selector)
    labels_by_field = selectable_fields(resource)

    def matches(stored: StoredObject) -> bool:
        return by_label.matches(stored.labels) and (
            by_field.empty or by_field.matches(stored.selectable(labels_by_field))
        )

    name = by_field.requires_exact_match("metadata.name") or ""
    namespace = by_field.requires_exact_match("metadata.namespace") or ""
    return Selection(
        name="" if names.check_path_segment_name(name) else name,
        namespace="" if names.check_dns1123_label(namespace) else namespace,
        label=_exact_label(by_label),
        matches=None if by_label.empty and by_field.empty else matches,
        indexed=_index_filter(resource, by_field),
        cost=1 + (len(label_selector) + len(field_selector)) // _USUAL_LENGTH,
    )


def _index_filter(resource: Resource, by_field: fields.Selector) -> Callable[[StoredObject], bool] | None:
    by_label = selectable_fields(resource)
    if resource.indexed not in by_label:
        return None
    paths = by_label[resource.indexed].paths  # a field may have two labels
    required = (term.value for term in by_field.terms if term.equal and by_label[term.field].paths == paths)
    value = next(required, None)
    if value is None:
        return None
    return lambda stored: stored.selectable(by_label)[resource.indexed] == value


# Clients repeat a few selectors. Long ones are rare, and are not cached, because they would fill the memory.
_USUAL_LENGTH: Final = 1000
_select_usual = lru_cache(maxsize=1024)(_select)


def _labels(text: str) -> labels.Selector:
    try:
        return labels.parse(text)
    except SelectorError as error:
        raise status.BadRequest(str(error)) from error


def _exact_label(selector: labels.Selector) -> tuple[str, str] | None:
    seen: set[str] = set()
    for requirement in selector.requirements:
        if requirement.key in seen:
            continue
        seen.add(requirement.key)
        if (value := requirement.exact_value) is not None:
            return requirement.key, value
    return None


def _fields(resource: Resource, text: str) -> fields.Selector:
    try:
        selector = fields.parse(text)
    except FieldSelectorError as error:
        raise status.BadRequest(str(error)) from error
    supported_fields = selectable_fields(resource)
    for term in selector.terms:
        if term.field not in supported_fields:
            raise UnsupportedFieldLabel(_unsupported_message(resource, term.field))
    return selector


def _unsupported_message(resource: Resource, label: str) -> str:
    """Return upstream's message, which differs for kinds with their own conversion of field labels."""
    usual = _NOT_SUPPORTED if _names_own_labels(resource) else _NOT_KNOWN
    return (resource.refused_label or usual).format(label=label, quoted=gotext.quote(label))


@cache
def selectable_fields(resource: Resource) -> Fields:
    """Return the fields that a selector may use, by their labels."""
    usual: Sequence[SelectableField] = (METADATA_NAME, METADATA_NAMESPACE)
    if _names_own_labels(resource) and not (resource.namespaced and resource.selects_namespace):
        usual = (METADATA_NAME,)
    return {field.label: field for field in (*usual, *resource.selectable)}


def _names_own_labels(resource: Resource) -> bool:
    return bool(resource.selectable) or resource.custom
