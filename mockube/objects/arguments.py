"""Checks and conversions of the other arguments of methods."""

from collections.abc import Mapping
from typing import Any, Final

from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError

from .errors import InvalidType, InvalidValue
from .trees import encode_text, to_tree

TIMEOUT: Final = 30.0
"""The default timeout of `wait`, `wait_gone` and `exec`, in seconds."""
PATCH_TYPES: Final = ("strategic", "merge", "json")
MAX_PORT: Final = 65535
MAX_ADVANCE: Final = 366 * 86_400.0
"""The seconds by which a clock can be advanced at once."""


def read_patch(patch: Any, patch_type: Any) -> Any:
    """Return a patch as a dict, or as a list for a JSON patch. A text is YAML or JSON."""
    if patch_type is not None and patch_type not in PATCH_TYPES:
        raise InvalidValue(
            f"the type of a patch is {', '.join(map(repr, PATCH_TYPES))} or None, not {patch_type!r}"
        )
    if isinstance(patch, str | bytes):
        text = encode_text(patch, "the patch") if isinstance(patch, str) else patch
        try:
            patch = load(text).tree
        except YamlError as error:
            raise InvalidValue(f"the patch is not YAML: {error}") from error
    tree = to_tree(patch)
    if patch_type == "json" and not isinstance(tree, list):
        raise InvalidType("a JSON patch is a list of operations")
    if not isinstance(tree, dict | list):
        raise InvalidType(f"a patch is a dict, a list of operations, or YAML, not {type(patch).__name__}")
    return tree


def read_labels(labels: Any) -> str:
    """Return a label selector; a dict is labels that must be equal."""
    if isinstance(labels, str):
        return labels
    if isinstance(labels, Mapping):
        return ",".join(f"{name}={_label_value(name, value)}" for name, value in labels.items())
    raise InvalidType(f'labels are a str such as "app=web", or a dict, not {type(labels).__name__}')


def _label_value(name: object, value: Any) -> str:
    """Return the value of a label or a field in a selector, where it cannot be quoted."""
    if not isinstance(value, str | int):
        raise InvalidType(f"the value of the label {name} is a str, not {type(value).__name__}")
    if "," in str(value) or "=" in str(value):
        raise InvalidValue(f'the value of the label {name} must not contain "," or "=": {value!r}')
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_timeout(timeout: Any) -> float:
    return read_seconds(timeout, "a timeout")


def read_seconds(seconds: Any, name: str) -> float:
    __tracebackhide__ = True
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise InvalidType(f"{name} is a number of seconds, not {type(seconds).__name__}")
    if not 0 <= seconds < float("inf"):
        raise InvalidValue(f"{name} is 0 or more seconds, not {seconds:g}")
    return float(seconds)


def read_span(seconds: Any) -> float:
    """Return the seconds by which a clock is advanced. Everything that is due runs, so that the time is limited."""
    __tracebackhide__ = True
    span = read_seconds(seconds, "the time to advance")
    if span > MAX_ADVANCE:
        raise InvalidValue(
            f"the time to advance is at most {MAX_ADVANCE:g} seconds, a year, not {span:g}: an hour takes about two seconds"
        )
    return span


def read_count(value: Any, name: str, *, minimum: int = 0) -> int:
    """Return a number of things, such as replicas."""
    __tracebackhide__ = True
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidType(f"{name} must be an int, not {type(value).__name__}")
    if value < minimum:
        raise InvalidValue(f"{name} must be {minimum} or more, not {value}")
    return value


def read_port(port: Any) -> int | str:
    """Return a number or a name of a port."""
    if isinstance(port, str) and port and not port.isdecimal():
        return port
    number = read_count(int(port) if isinstance(port, str) and port else port, "the port")
    if not 1 <= number <= MAX_PORT:
        raise InvalidValue(f"a port is from 1 to {MAX_PORT}, or a name, not {number}")
    return number


def read_stdin(stdin: Any) -> bytes | None:
    if stdin is None or isinstance(stdin, bytes):
        return stdin
    if isinstance(stdin, str):
        return encode_text(stdin, "stdin")
    raise InvalidType(f"stdin is a str or bytes, not {type(stdin).__name__}")
