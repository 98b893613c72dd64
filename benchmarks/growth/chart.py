"""Draw curves as SVG."""

import math
from collections.abc import Sequence
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
ROOM: Final = 1.12
"""The vertical axis ends this much above the largest value."""

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


class Scale(NamedTuple):
    """The vertical axis."""

    low: float
    high: float
    ticks: Sequence[float]
    is_logarithmic: bool

    def place(self, value: float) -> float:
        if self.is_logarithmic:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(BOTTOM - part * (BOTTOM - TOP), 1)


class Sizes(NamedTuple):
    """The horizontal axis; each value is a tick."""

    values: Sequence[float]
    is_logarithmic: bool

    def place(self, value: float) -> float:
        low, high = self.values[0], self.values[-1]
        if low == high:
            part = 0.5
        elif self.is_logarithmic:
            part = math.log(value / low) / math.log(high / low)
        else:
            part = value / high
        return round(LEFT + 12 + part * (RIGHT - LEFT - 24), 1)


def draw(chart: Chart) -> str:
    """Return a chart as SVG. Its background is opaque, so that it is readable on light and dark pages."""
    xs = Sizes(sorted({x for curve in chart.curves for x, _ in curve.points}), "x" in chart.axes.value)
    scale = vertical_scale(
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
            *_grid(xs, scale),
            f'  <text class="axis" x="{(LEFT + RIGHT) // 2}" y="{BOTTOM + 46}" text-anchor="middle">{escape(chart.x)}</text>',
            *_curves(chart.curves, xs, scale),
            f'  <text class="note" x="20" y="{HEIGHT - 12}">{escape(chart.note)}</text>',
            "</svg>",
            "",
        ]
    )


def vertical_scale(values: Sequence[float], *, is_logarithmic: bool) -> Scale:
    """Return the scale for the values, with a tick at its low end."""
    high = max(values) * ROOM
    if is_logarithmic:
        steps = [step * 10.0**power for power in range(-6, 9) for step in (1, 2, 5)]
        low = max((step for step in steps if step <= min(values)), default=steps[0])
        inside = [step for step in steps if low <= step <= high]
        if len(inside) > 7:
            inside = [step for step in inside if step == low or math.log10(step).is_integer()]
        return Scale(low, high, inside, is_logarithmic)
    size = 10.0 ** math.floor(math.log10(high))
    step = next(size * part for part in (0.1, 0.2, 0.5, 1, 2) if high / (size * part) <= 6)
    return Scale(0.0, high, [step * number for number in range(int(high / step) + 1)], is_logarithmic)


def text_of(value: float) -> str:
    """Return a number as it is written at a tick."""
    return f"{value:,.0f}" if value >= 10 or value == round(value) else f"{value:.3g}"


def _grid(xs: Sizes, scale: Scale) -> list[str]:
    lines = []
    for tick in scale.ticks:
        y = scale.place(tick)
        lines.append(f'  <path class="grid" d="M{LEFT} {y}H{RIGHT}"/>')
        lines.append(
            f'  <text class="tick" x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{text_of(tick)}</text>'
        )
    labelled_from = math.inf
    for x in reversed(xs.values):  # the largest one has a label in any case
        place = xs.place(x)
        lines.append(f'  <path class="grid" d="M{place} {BOTTOM}v6"/>')
        if place <= labelled_from:
            labelled_from = place - LABEL_WIDTH
            lines.append(
                f'  <text class="tick" x="{place}" y="{BOTTOM + 22}" text-anchor="middle">{text_of(x)}</text>'
            )
    return lines


def _curves(curves: Sequence[Curve], xs: Sizes, scale: Scale) -> list[str]:
    lines, ends = [], []
    for curve, color in zip(curves, COLORS, strict=False):
        places = [(xs.place(x), scale.place(y)) for x, y in curve.points]
        path = "L".join(f"{x} {y}" for x, y in places)
        kind = "curve other" if curve.is_other else "curve"
        lines.append(f'  <path class="{kind}" stroke="{color}" d="M{path}"/>')
        lines += [f'  <circle cx="{x}" cy="{y}" r="3.5" fill="{color}"/>' for x, y in places]
        ends.append((places[-1][1], curve.name, color))
    height = -math.inf
    for y, name, color in sorted(ends):
        height = max(y, height + LABEL_HEIGHT)
        lines.append(
            f'  <text class="name" x="{RIGHT + 10}" y="{height + 4}" fill="{color}">{escape(name)}</text>'
        )
    return lines
