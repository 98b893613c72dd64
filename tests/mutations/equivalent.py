"""The sites whose rule nobody can miss, with the reason: what they decide is decided once more, or only saves time."""

EQUIVALENT_SITES: dict[tuple[str, str], str] = {}
