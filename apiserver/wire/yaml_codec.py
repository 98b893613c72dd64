"""YAML."""

from typing import Any

import yaml


def dump(tree: Any) -> bytes:
    text: str = yaml.safe_dump(tree)
    return text.encode()
