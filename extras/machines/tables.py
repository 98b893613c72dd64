"""Tables, durations and sizes as Go's programs print them. Pure."""

from collections.abc import Iterable, Sequence
from typing import Final

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")
_PADDING: Final = 3
_MIN_WIDTH: Final = 20


def table(rows: Sequence[Sequence[str]], *, width: int = _MIN_WIDTH, padding: int = _PADDING) -> str:
    """Return rows in columns as Go's tabwriter prints them; the last column is not padded."""
    columns = list(zip(*rows, strict=True))
    widths = [max(width, max(map(len, column)) + padding) for column in columns[:-1]]
    lines = (
        "".join(cell.ljust(size) for cell, size in zip(row, widths, strict=False)) + row[-1] for row in rows
    )
    return "".join(f"{line}\n" for line in lines)


def human_duration(seconds: float) -> str:
    """Return a duration as Docker's units print it, such as `About a minute`."""
    whole = int(seconds)
    if whole < 1:
        return "Less than a second"
    if whole == 1:
        return "1 second"
    if whole < _MINUTE:
        return f"{whole} seconds"
    if whole < 2 * _MINUTE:
        return "About a minute"
    if whole < _HOUR:
        return f"{whole // _MINUTE} minutes"
    hours = round(seconds / _HOUR)
    if hours == 1:
        return "About an hour"
    days = whole // _DAY
    for limit, count, unit in (
        (48, hours, "hours"),
        (24 * 14, days, "days"),
        (24 * 60, days // 7, "weeks"),
        (24 * 730, days // 30, "months"),
    ):
        if hours < limit:
            return f"{count} {unit}"
    return f"{days // 365} years"


def human_size(size: float, digits: int = 4) -> str:
    """Return a size with decimal units, such as `72.3MB`."""
    value, unit = _scaled(size)
    return f"{value:.{digits}g}{unit}"


def decimal_size(size: int) -> str:
    """Return a size with decimal units, and with one decimal below 10, such as `2.1 MB`."""
    value, unit = _scaled(size)
    return f"{value:.1f} {unit}" if unit != _UNITS[0] and value < 10 else f"{value:.0f} {unit}"


def _scaled(size: float) -> tuple[float, str]:
    """Return a size in the unit in which it is less than 1000, and the unit."""
    value, unit = float(size), 0
    while value >= 1000 and unit < len(_UNITS) - 1:
        value /= 1000
        unit += 1
    return value, _UNITS[unit]


def boxed_table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows in a box, the first as its header; numbers stand on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    border = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    header, *others = rows

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    lines = [line(cell.center(width) for cell, width in zip(header, widths, strict=True))]
    lines += [
        line(
            cell.rjust(width) if cell.isdecimal() else cell.ljust(width)
            for cell, width in zip(row, widths, strict=True)
        )
        for row in others
    ]
    return "".join(f"{each}\n" for each in (border, lines[0], border, *lines[1:], border))
