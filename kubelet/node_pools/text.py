"""Pools as text: `cpu=4,memory=16Gi:3, gpu=8,instance=a100:2`, where each pool ends with its number of nodes. Pure."""

from collections.abc import Sequence
from typing import Any, Final

from mockube.apimachinery.resource_names import HUGE_PAGES
from mockube.component_base.suggestions import did_you_mean

from .pool import PoolError, is_number, quote_short, read_count
from .rules import RESOURCES

EXAMPLE: Final = "cpu=4,memory=16Gi:3"
_TEXT_BY_KEY: Final = {
    "name": "name",
    "instance": "instanceType",
    "region": "region",
    "arch": "architecture",
}
"""The keys of pools in a text that are set once, and their fields."""
_LIST_BY_KEY: Final = {"zone": "zones", "role": "roles", "label": "labels", "taint": "taints"}
"""The keys of pools in a text that may be repeated, and their fields."""
_FILE_FIELDS: Final = ("annotations", "allocatable", "reserved", "osImage", "images", "unschedulable")
KEYS: Final = (*_TEXT_BY_KEY, *_LIST_BY_KEY, *RESOURCES)


def read_text(text: str) -> list[dict[str, Any]]:
    """Split a text into pools, each of which ends with its number of nodes."""
    documents: list[dict[str, Any]] = []
    settings: list[str] = []
    for word in filter(None, map(str.strip, text.split(","))):
        setting, colon, count = word.rpartition(":")
        if not is_number(count.strip()):
            settings.append(word)
            continue
        if colon:
            settings.append(setting.strip())
        documents.append(_document_of(settings, read_count(count.strip())))
        settings = []
    if settings or not documents:
        raise PoolError(_no_count_problem(settings, text))
    return documents


def _no_count_problem(settings: Sequence[str], text: str) -> str:
    if not any("=" in word for word in settings):
        return f"{quote_short(text)} is neither a number of nodes nor pools such as {EXAMPLE}"
    pool = ",".join(settings)
    return f"{quote_short(pool)} does not end with a number of nodes, as {EXAMPLE} does"


def _document_of(settings: Sequence[str], count: int) -> dict[str, Any]:
    """Return the document of a pool whose settings are `KEY=VALUE`."""
    document: dict[str, Any] = {"count": count}
    for setting in settings:
        key, equals, value = (part.strip() for part in setting.partition("="))
        if not equals:
            raise PoolError(f"{quote_short(setting)} is not KEY=VALUE, as {EXAMPLE.partition(',')[0]} is")
        if key in _TEXT_BY_KEY:
            _set_once(document, key, _TEXT_BY_KEY[key], value)
        elif key in _LIST_BY_KEY:
            _add(document, key, value)
        elif key in RESOURCES or "/" in key or key.startswith(HUGE_PAGES):
            _set_once(document.setdefault("capacity", {}), key, key, value)
        else:
            raise PoolError(_unknown_key_problem(key))
    return document


def _set_once(target: dict[str, Any], key: str, name: str, value: str) -> None:
    if name in target:
        raise PoolError(f"{quote_short(key)} is set twice in one pool")
    if not value:
        raise PoolError(f"{quote_short(key)} has no value")
    target[name] = value


def _add(document: dict[str, Any], key: str, value: str) -> None:
    field = _LIST_BY_KEY[key]
    if key == "label":
        _add_label(document.setdefault(field, {}), value)
    else:
        document.setdefault(field, []).append(_taint_of(value) if key == "taint" else value)


def _add_label(labels: dict[str, str], text: str) -> None:
    name, equals, value = text.partition("=")
    if not equals:
        raise PoolError(f"label: {quote_short(text)} is not KEY=VALUE, as label=disk=ssd sets it")
    if name in labels:
        raise PoolError(f"label: {quote_short(name)} is set twice in one pool")
    labels[name] = value


def _taint_of(text: str) -> dict[str, str]:
    """Read a taint as `kubectl taint` and the kubelet's `--register-with-taints` do: KEY=VALUE:EFFECT or KEY:EFFECT."""
    pair, colon, effect = text.rpartition(":")
    if not colon:
        raise PoolError(
            f"taint: {quote_short(text)} is not KEY=VALUE:EFFECT, as taint=dedicated=batch:NoSchedule sets it"
        )
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def _unknown_key_problem(key: str) -> str:
    field = next((name for name in _FILE_FIELDS if name.lower() == key.lower().replace("-", "")), "")
    if field:
        return f"{quote_short(key)} can be set only in a file of pools: as {field}"
    hint = did_you_mean(key, KEYS) or f": use {', '.join(KEYS)}, or the name of an extended resource"
    return f"unknown key {quote_short(key)}{hint}"
