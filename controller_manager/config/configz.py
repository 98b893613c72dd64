"""Convert the settings to the JSON of `/configz`."""

from pathlib import PurePath
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from .settings import Config

GROUP = "kubecontrollermanager.config.k8s.io"


def configz(config: Config) -> dict[str, Any]:
    return {GROUP: _json_value(replace(config, scheduler_plugins=(), local_ports=None))}


def _json_value(value: Any) -> Any:
    match value:
        case Struct():
            return _json_value(asdict(value))
        case dict():
            return {_camel_case(name): _json_value(item) for name, item in value.items()}
        case tuple():
            return [_json_value(item) for item in value]
        case PurePath():
            return str(value)
        case _:
            return value


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))
