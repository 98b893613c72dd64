"""An admission webhook that needs no call: it fills in objects of one resource, and refuses them, as its makers' would."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import orjson

from apimachinery.errors import FieldError
from apimachinery.schema.decode import DecodeError
from apimachinery.status import ApiError
from apiserver.admission.plugin import WRITE, Plugin
from apiserver.crd.custom import Custom
from apiserver.rest.attributes import Attributes
from apiserver.rest.backend import Backend
from apiserver.storage.stored import Tree

View: TypeAlias = Mapping[str, Any]

Fill: TypeAlias = Callable[[Backend, Tree, View | None], None]
"""Fills in an object, which is nobody else's, knowing what it was before; or `DecodeError`."""

Check: TypeAlias = Callable[[Backend, View, View | None], Iterable[FieldError]]
"""What is wrong with an object, knowing what it was before."""

BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422


class Webhook(Plugin):
    operations = WRITE

    def __init__(self, custom: Custom, *, fill: Fill, check: Check) -> None:
        self._custom = custom
        self._fill = fill
        self._check = check
        self._name = custom.row.singular_name
        self.about = frozenset({(custom.row.group, custom.row.name, "")})

    async def mutate(self, backend: Backend, attributes: Attributes) -> None:
        written = attributes.object
        assert written is not None
        if [*self._custom.check(written)]:
            return  # what is wrong by its schema is said by others, better
        made: Tree = {"spec": {}} | orjson.loads(orjson.dumps(written))
        try:
            self._fill(backend, made, attributes.old)
        except DecodeError as error:
            raise _denied(f"m{self._name}.kb.io", str(error), BAD_REQUEST) from error
        written["spec"] = made["spec"]

    async def validate(self, backend: Backend, attributes: Attributes) -> None:
        assert attributes.object is not None
        try:
            found = [*self._check(backend, attributes.object, attributes.old)]
        except DecodeError as error:
            raise _denied(f"v{self._name}.kb.io", str(error), BAD_REQUEST) from error
        if found:
            raise _denied(f"v{self._name}.kb.io", _together(found), UNPROCESSABLE)


def _denied(name: str, problem: str, code: int) -> ApiError:
    return ApiError(f'admission webhook "{name}" denied the request: {problem}', code=code)


def _together(found: Sequence[FieldError]) -> str:
    """Each message once, as Go puts errors together."""
    messages = list(dict.fromkeys(map(str, found)))
    return messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
