"""Lists that are cut short, so that a cell stays narrow."""

from collections.abc import Sequence


def shortened(texts: Sequence[str], *, most: int = 3, separator: str = ",") -> str:
    shown = separator.join(texts[:most])
    return f"{shown} + {len(texts) - most} more..." if len(texts) > most else shown
