"""The functions of templates: Go's own, those of sprig that stages need, and kwok's without context.

Pure. `FUNCTIONS` is a table of names. `printf` is in `formatting`. Empty values are false, as in Python.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
import yaml

from .formatting import go_string, sprintf

FROM_ENVIRONMENT: Final = frozenset(
    {
        "Now",
        "StartTime",
        "Version",
        "NodeConditions",
        "NodeIP",
        "NodeName",
        "MachineID",
        "SystemUUID",
        "BootID",
        "NodeInfo",
        "NodePort",
        "NodeIPWith",
        "NodeIPsWith",
        "PodIPWith",
        "PodIPsWith",
    }
)
"""The functions that the environment provides: kwok's, and NodeInfo."""


_MAX_INDENT: Final = 100


def _and(*values: Any) -> Any:
    return next((value for value in values if not value), values[-1])


def _or(*values: Any) -> Any:
    return next((value for value in values if value), values[-1])


def _equal(first: Any, *others: Any) -> bool:
    return any(first == other for other in others)


def _index(value: Any, *path: Any) -> Any:
    for step in path:
        if value is None:
            return None
        value = value.get(step) if isinstance(value, Mapping) else value[step]
    return value


def _quote(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if text.startswith('"') else orjson.dumps(text).decode()


def _yaml(value: Any, indent: int = 0) -> str:
    if indent > _MAX_INDENT:
        raise ValueError(f"an indent of more than {_MAX_INDENT} is not supported")
    text: str = yaml.dump(value, default_flow_style=False, sort_keys=True, allow_unicode=True)
    return ("\n" + text).replace("\n", "\n" + "  " * indent) if indent else text


def _dict(*pairs: Any) -> dict[str, Any]:
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def _default(fallback: Any, value: Any = None) -> Any:
    return value or fallback


def _has_key(tree: Mapping[str, Any], key: str) -> bool:
    return key in tree


def _ternary(yes: Any, no: Any, condition: Any) -> Any:
    return yes if condition else no


FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "and": _and,
    "or": _or,
    "not": lambda value: not value,
    "eq": _equal,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
    "index": _index,
    "len": len,
    "printf": sprintf,
    "print": lambda *values: "".join(map(go_string, values)),
    "add": lambda *values: sum(map(int, values)),
    "add1": lambda value: int(value) + 1,
    "sub": lambda left, right: int(left) - int(right),
    "mod": lambda left, right: int(left) % int(right),
    "int": lambda value: int(value or 0),
    "default": _default,
    "dict": _dict,
    "list": lambda *values: list(values),
    "hasKey": _has_key,
    "ternary": _ternary,
    "toString": go_string,
    "quote": _quote,
    "lower": lambda text: text.lower(),
    "upper": lambda text: text.upper(),
    "join": lambda separator, values: separator.join(map(go_string, values)),
    "Quote": _quote,
    "YAML": _yaml,
}
