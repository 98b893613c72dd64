"""The expressions in CEL that select devices."""

from collections.abc import Iterable
from typing import Final

from mockube.apimachinery import errors
from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import ResultTypeError
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.device_expressions import MAX_COST, environment, sizes
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path

_MAX_LENGTH: Final = 10 * 1024


def check_expression(text: str, path: Path) -> Iterable[FieldError]:
    if len(text.encode()) > _MAX_LENGTH:
        return (errors.too_long(path, _MAX_LENGTH),)
    try:
        compiled = environment().compile(text, lambda type_: type_ in (types.BOOL, types.ANY))
    except Issues as issues:
        return (errors.invalid(path, text, f"compilation failed: {issues}"),)
    except ResultTypeError as error:
        problem = f"must evaluate to bool or the unknown type, not {error.type}"
        return (errors.invalid(path, text, problem),)
    except ProgramError as error:
        return (errors.internal(path, f"program instantiation failed: {error}"),)
    if compiled.cost(sizes).high > MAX_COST:
        return (errors.forbidden(path, "too complex, exceeds cost limit"),)
    return ()
