"""YAML."""

from typing import Any

import yaml


def dump(tree: Any) -> bytes:
    text: str = yaml.safe_dump(tree)
    return text.encode()


def load(data: bytes) -> Any:
    return yaml.load(data, Loader=yaml.CSafeLoader)  # noqa: S506 - it is a safe loader
