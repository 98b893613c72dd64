"""Labels and selectors of labels as text. Where nothing is selected by, `<none>` says so."""

from collections.abc import Mapping
from typing import Any, Final

from apimachinery import labels

NONE: Final = "<none>"


def of_labels(chosen: Mapping[str, str] | None) -> str:
    """Labels, or the kind of selector that is but a map of them."""
    return ",".join(f"{key}={value}" for key, value in sorted((chosen or {}).items())) or NONE


def of_selector(selector: Mapping[str, Any] | None) -> str:
    try:
        return str(labels.from_label_selector(selector)) or NONE
    except labels.SelectorError:
        return "<error>"
