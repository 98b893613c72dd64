"""The webhooks of packs: admission plugins that call functions of a pack in this process, with the errors of webhooks."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import orjson
from msgspec import Struct

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.admission.plugin import WRITE, Plugin
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.schema.decode import DecodeError

LOG: Final = logging.getLogger(__name__)

BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422


def denial_error(name: str, problem: str, code: int) -> ApiError:
    """Return the error of a webhook that denies a request, as a real server reports it."""
    return ApiError(f'admission webhook "{name}" denied the request: {problem}', code=code)


def _copy(_: Registry, tree: ReadOnlyTree) -> Tree:
    copied: Tree = orjson.loads(orjson.dumps(tree))
    return copied


def _no_defaults(_new: Tree, _old: ReadOnlyTree | None) -> None: ...


def _no_errors(*_: object) -> tuple[()]:
    return ()


class KindWebhook(Struct, frozen=True, kw_only=True):
    """What the webhooks of a kind do with an object and the old one, both of one version. The old one of a new object is None."""

    group: str
    resource: str
    """The name in paths: the plural."""
    set_defaults: Callable[[Tree, ReadOnlyTree | None], None] = _no_defaults
    """Changes the spec of an object, after the defaults of its schema are set. Fields that are required may be missing."""
    validate: Callable[[Registry, ReadOnlyTree, ReadOnlyTree | None], Iterable[FieldError]] = _no_errors
    """Returns the errors of an object that matches its schema. The registry finds other objects."""
    convert: Callable[[Tree, str], Tree] | None = None
    """Converts an object to an apiVersion, in place of the webhook that the definition names."""
    decode: Callable[[Registry, ReadOnlyTree], Tree] = _copy
    """Returns the object as the webhook encodes it. Raises DecodeError if it cannot be read."""

    @property
    def group_resource(self) -> GroupResource:
        return GroupResource(self.group, self.resource)


def _is_decodable(error: FieldError) -> bool:
    """Return whether an object with an error of its schema can be decoded: no field has another type."""
    is_of_scale = error.field.startswith(".spec.")
    return is_of_scale or error.type in (ErrorType.REQUIRED, ErrorType.NOT_SUPPORTED)


@contextmanager
def _reported_as_call_of(webhook: str) -> Iterator[None]:
    """Report an unexpected error of a function as that of a webhook that cannot be called, and log where it happened."""
    try:
        yield
    except ApiError:
        raise
    except Exception as error:
        LOG.exception("Failed calling webhook %s", webhook)
        problem = f'failed calling webhook "{webhook}": {type(error).__name__}: {error}'
        raise status.internal_error(problem) from error


class KindWebhookPlugin(Plugin):
    """The admission plugin that calls a `KindWebhook`."""

    operations = WRITE

    def __init__(self, catalog: Catalog, row: Resource, webhook: KindWebhook) -> None:
        self._catalog = catalog
        self._webhook = webhook
        self._name = row.singular_name
        self.targets = frozenset({(row.group, row.name, "")})

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        new_object = attributes.object
        assert new_object is not None
        custom = self._catalog.custom_kinds.get((new_object["apiVersion"], new_object["kind"]))
        if custom is None or not all(map(_is_decodable, custom.check(new_object))):
            return  # the validation by schema returns a better message
        decoded, old = self._decode("m", registry, new_object, attributes.old)
        encoded = orjson.dumps(decoded)
        with _reported_as_call_of(f"m{self._name}.kb.io"):
            self._webhook.set_defaults(decoded, old)
        if orjson.dumps(decoded) != encoded:
            # A version may not have all fields that get defaults.
            new_object["spec"] = custom.prune({**new_object, "spec": decoded["spec"]}, [])["spec"]
            custom.default(new_object)

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        new, old = self._decode("v", registry, attributes.object, attributes.old)
        with _reported_as_call_of(f"v{self._name}.kb.io"):
            field_errors = [*self._webhook.validate(registry, new, old)]
        if field_errors:
            raise denial_error(f"v{self._name}.kb.io", errors.aggregate(field_errors), UNPROCESSABLE)

    def _decode(
        self, prefix: str, registry: Registry, new: Tree, old: ReadOnlyTree | None
    ) -> tuple[Tree, Tree | None]:
        decode = self._webhook.decode
        try:
            decoded = decode(registry, {"spec": {}, **orjson.loads(orjson.dumps(new))})
            return decoded, None if old is None else decode(registry, {"spec": {}, **old})
        except DecodeError as error:
            raise denial_error(f"{prefix}{self._name}.kb.io", str(error), BAD_REQUEST) from error
