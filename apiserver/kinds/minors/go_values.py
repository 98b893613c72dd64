"""Values in the messages of minors before 1.34, which are in Go's syntax instead of JSON.

Structs other than label selectors are left as JSON: Go prints them with addresses, which differ between servers.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import gotext
from mockube.apimachinery.errors import DisplayedValue, FieldError
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.kind_rules import KindRules

_JSON_SINCE: Final = "1.34"
_TEXTS: Final = "string"
_TYPES: Final = {
    "accessModes": "core.PersistentVolumeAccessMode",
    "ipFamilies": "core.IPFamily",
    "operations": "admissionregistration.OperationType",
    "policyTypes": "networking.PolicyType",
}
"""The types of strings in lists, by field."""


def format_values_of(rules: KindRules, minor: str) -> None:
    """Replace the checks of a kind by checks whose errors have values in the format of a minor."""
    if minors.is_before(minor, _JSON_SINCE):
        rules.check_create = _with_go_values(rules.check_create)
        rules.check_update = _with_go_values(rules.check_update)
        rules.no_version = DisplayedValue("0x0")


def _with_go_values(check: Callable[..., Iterable[FieldError]]) -> Callable[..., list[FieldError]]:
    return lambda *args: [*map(in_go, check(*args))]


def in_go(error: FieldError) -> FieldError:
    text = _text(error.value, error.field)
    return replace(error, value=DisplayedValue(text)) if text else error


def _text(value: Any, field: str) -> str:
    if value is None:
        return '"null"'
    if isinstance(value, Mapping) and value:
        if all(isinstance(item, str) for item in value.values()):
            return _map(value)
        if value.keys() <= {"matchLabels", "matchExpressions"}:
            return _selector(value)
    if isinstance(value, list | tuple) and value and all(isinstance(item, str) for item in value):
        return _list(value, _TYPES.get(field.rpartition(".")[2], _TEXTS))
    return ""


def _map(labels: Mapping[str, str] | None) -> str:
    if labels is None:
        return "map[string]string(nil)"
    items = (f"{gotext.quote(key)}:{gotext.quote(labels[key])}" for key in sorted(labels))
    return f"map[string]string{{{', '.join(items)}}}"


def _list(texts: Iterable[str] | None, type_: str = _TEXTS) -> str:
    return f"[]{type_}(nil)" if texts is None else f"[]{type_}{{{', '.join(map(gotext.quote, texts))}}}"


def _selector(selector: Mapping[str, Any]) -> str:
    requirements = selector.get("matchExpressions")
    expressions = "(nil)" if requirements is None else f"{{{', '.join(map(_requirement, requirements))}}}"
    labels = _map(selector.get("matchLabels"))
    return f"v1.LabelSelector{{MatchLabels:{labels}, MatchExpressions:[]v1.LabelSelectorRequirement{expressions}}}"


def _requirement(requirement: Mapping[str, Any]) -> str:
    key, operator = (gotext.quote(requirement.get(name, "")) for name in ("key", "operator"))
    return f"v1.LabelSelectorRequirement{{Key:{key}, Operator:{operator}, Values:{_list(requirement.get('values'))}}}"
