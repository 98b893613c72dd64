"""Functions that find the matches of a regular expression: `find`, `findAll`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import CelError
from mockube.apimachinery.regexp import matcher
from mockube.apimachinery.regexp.errors import RegexpError

DECLARED: Final = declare(
    """
    find string_find_string string.(string) -> string
    findAll string_find_all_string string.(string) -> list(string)
    findAll string_find_all_string_int string.(string, int) -> list(string)
    """
)


def _find_all(text: str, pattern: str, maximum: int = -1) -> list[str]:
    try:
        return matcher.find_all(pattern, text, max(maximum, -1))
    except RegexpError as error:
        raise CelError(f"Illegal regex: {error}") from error


def _find(text: str, pattern: str) -> str:
    return next(iter(_find_all(text, pattern, 1)), "")


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_find_string": _find,
    "string_find_all_string": _find_all,
    "string_find_all_string_int": _find_all,
}
