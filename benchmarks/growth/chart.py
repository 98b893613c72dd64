"""Draw curves as SVG."""

import math
from collections.abc import Collection, Sequence
from enum import Enum
from html import escape
from typing import Final, NamedTuple

WIDTH: Final = 760
HEIGHT: Final = 400
LEFT: Final = 72
RIGHT: Final = 520
"""Right of it are the names of the curves."""
TOP: Final = 64
BOTTOM: Final = 316
LABEL_HEIGHT: Final = 18
LABEL_WIDTH: Final = 50
"""The space of the number at a tick of the horizontal axis."""
COLORS: Final = ("#1d4ed8", "#c2410c", "#15803d", "#7e22ce", "#be123c", "#0e7490")
MARGIN: Final = 1.12
"""The vertical axis ends at this multiple of the largest value."""

_STYLE: Final = """    .title { fill: #0f172a; font-weight: 600; font-size: 15px }
    .axis { fill: #334155 }
    .tick { fill: #475569; font-size: 12px }
    .note { fill: #64748b; font-size: 11px }
    .grid { stroke: #cbd5e1; stroke-width: 1 }
    .curve { fill: none; stroke-width: 2.5; stroke-linejoin: round }
    .other { stroke-dasharray: 6 4 }
    .name { font-weight: 600 }"""


class Curve(NamedTuple):
    name: str
    points: Sequence[tuple[float, float]]
    is_other: bool = False
    """Whether it shows other software, and is dashed."""


class Axes(Enum):
    """Which axes are logarithmic; the others begin at zero."""

    LINEAR = ()
    """Neither: what grows in proportion to the size is a straight line."""
    FACTORS = ("x",)
    """The horizontal one: for what should not grow, for sizes that grow by factors."""
    LOGARITHMIC = ("x", "y")


class Chart(NamedTuple):
    title: str
    x: str
    """What the horizontal axis counts."""
    y: str
    """What the vertical axis measures, with its unit."""
    curves: Sequence[Curve]
    axes: Axes = Axes.FACTORS
    note: str = ""
    """A line below the axes."""


class Axis(NamedTuple):
    low: float
    high: float
    ticks: Sequence[float]
    is_logarithmic: bool

    def fraction(self, value: float) -> float:
        """Return which part of the axis is before a value; the only value of an axis is in its middle."""
        if self.low == self.high:
            return 0.5
        if self.is_logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def draw(chart: Chart) -> str:
    """Return a chart as SVG. Its background is opaque, so that it is readable on light and dark pages."""
    horizontal = horizontal_axis(
        {x for curve in chart.curves for x, _ in curve.points}, is_logarithmic="x" in chart.axes.value
    )
    vertical = vertical_axis(
        [y for curve in chart.curves for _, y in curve.points], is_logarithmic="y" in chart.axes.value
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"',
            '     font-family="ui-sans-serif, system-ui, sans-serif" font-size="13">',
            f"  <title>{escape(chart.title)}</title>",
            "  <style>",
            _STYLE,
            "  </style>",
            f'  <rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="#f8fafc"/>',
            f'  <text class="title" x="20" y="30">{escape(chart.title)}</text>',
            f'  <text class="axis" x="20" y="50">{escape(chart.y)}</text>',
            *_grid(horizontal, vertical),
            f'  <text class="axis" x="{(LEFT + RIGHT) // 2}" y="{BOTTOM + 46}" text-anchor="middle">{escape(chart.x)}</text>',
            *_curves(chart.curves, horizontal, vertical),
            f'  <text class="note" x="20" y="{HEIGHT - 12}">{escape(chart.note)}</text>',
            "</svg>",
            "",
        ]
    )


def horizontal_axis(values: Collection[float], *, is_logarithmic: bool) -> Axis:
    """Return the axis for the values, each of which is a tick. One that is not logarithmic begins at zero."""
    ticks = sorted(values)
    low = ticks[0] if is_logarithmic or len(ticks) == 1 else 0.0
    return Axis(low, ticks[-1], ticks, is_logarithmic)


def vertical_axis(values: Collection[float], *, is_logarithmic: bool) -> Axis:
    """Return the axis for the values, with a tick at its low end."""
    high = max(values) * MARGIN
    if is_logarithmic:
        steps = [step * 10.0**power for power in range(-6, 9) for step in (1, 2, 5)]
        low = max((step for step in steps if step <= min(values)), default=steps[0])
        inside = [step for step in steps if low <= step <= high]
        if len(inside) > 7:
            inside = [step for step in inside if step == low or math.log10(step).is_integer()]
        return Axis(low, high, inside, is_logarithmic)
    size = 10.0 ** math.floor(math.log10(high))
    step = next(size * part for part in (0.1, 0.2, 0.5, 1, 2) if high / (size * part) <= 6)
    return Axis(0.0, high, [step * number for number in range(int(high / step) + 1)], is_logarithmic)


def text_of(value: float) -> str:
    """Return a number as it is written at a tick."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.3g}"


def _x(axis: Axis, value: float) -> float:
    return round(LEFT + 12 + axis.fraction(value) * (RIGHT - LEFT - 24), 1)


def _y(axis: Axis, value: float) -> float:
    return round(BOTTOM - axis.fraction(value) * (BOTTOM - TOP), 1)


def _grid(horizontal: Axis, vertical: Axis) -> list[str]:
    lines = []
    for tick in vertical.ticks:
        y = _y(vertical, tick)
        lines.append(f'  <path class="grid" d="M{LEFT} {y}H{RIGHT}"/>')
        lines.append(
            f'  <text class="tick" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{text_of(tick)}</text>'
        )
    labelled_from = math.inf
    for tick in reversed(horizontal.ticks):  # the largest one has a label in any case
        x = _x(horizontal, tick)
        lines.append(f'  <path class="grid" d="M{x} {BOTTOM}v6"/>')
        if x <= labelled_from:
            labelled_from = x - LABEL_WIDTH
            lines.append(
                f'  <text class="tick" x="{x}" y="{BOTTOM + 22}" text-anchor="middle">{text_of(tick)}</text>'
            )
    return lines


def _curves(curves: Sequence[Curve], horizontal: Axis, vertical: Axis) -> list[str]:
    lines, ends = [], []
    for curve, color in zip(curves, COLORS, strict=False):
        points = [(_x(horizontal, x), _y(vertical, y)) for x, y in curve.points]
        path = "L".join(f"{x} {y}" for x, y in points)
        kind = "curve other" if curve.is_other else "curve"
        lines.append(f'  <path class="{kind}" stroke="{color}" d="M{path}"/>')
        lines += [f'  <circle cx="{x}" cy="{y}" r="3.5" fill="{color}"/>' for x, y in points]
        ends.append((points[-1][1], curve.name, color))
    height = -math.inf
    for y, name, color in sorted(ends):
        height = max(y, height + LABEL_HEIGHT)
        lines.append(
            f'  <text class="name" x="{RIGHT + 10}" y="{height + 4}" fill="{color}">{escape(name)}</text>'
        )
    return lines
