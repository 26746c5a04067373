"""Pictures as SVG inside a page; colours and type come from the page's styles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from crowdwise.reporting.fit import excerpt

WIDTH = 440.0
_LEFT, _TOP, _BOTTOM = 46.0, 14.0, 190.0
Ticks = Mapping[Any, str]  # words at values


class Markup(str):
    """Text that is safe to stand in a page as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; text and attributes are escaped, and underscores in names of attributes are hyphens."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(_short(value)))}"' for key, value in attributes.items()
    )
    inside = "".join(child if isinstance(child, Markup) else escape(str(child)) for child in children)
    return Markup(f"<{name}{written}>{inside}</{name}>")


def _short(value: Any) -> Any:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float | int) else value


def picture(height: float, label: str, parts: Iterable[Any], *, width: float = WIDTH) -> Markup:
    """A picture that a screen reader calls by its label."""
    box = f"0 0 {_short(width)} {_short(height)}"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=label, class_="picture")


def text(x: float, y: float, words: Any, *, anchor: str = "start", kind: str = "tick") -> Markup:
    """Words at a place."""
    return tag("text", words, x=x, y=y, text_anchor=anchor, class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def dot(x: float, y: float, r: float, kind: str = "dot", title: str = "") -> Markup:
    """A filled circle."""
    return tag("circle", *([tag("title", title)] if title else []), cx=x, cy=y, r=r, class_=kind)


class Plot:
    """Two axes: values in, places in a picture out; what is drawn is kept until `picture`.

    Parameters
    ----------
    x, y : tuple of float
        The ends of either axis.
    right : float, default=16.0
        Room to the right.
    """

    def __init__(self, x: tuple[float, float], y: tuple[float, float], *, right: float = 16.0):
        self.x, self.y, self.right = x, y, WIDTH - right
        self.parts: list[Markup] = []

    def at(self, x: float, y: float) -> tuple[float, float]:
        """The place of two values."""
        across, up = (x - self.x[0]) / (self.x[1] - self.x[0]), (y - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + (self.right - _LEFT) * across, _BOTTOM - (_BOTTOM - _TOP) * up

    def axes(self, x_name: str, x_ticks: Ticks, y_name: str, y_ticks: Ticks, *, grid: Iterable[float] = ()) -> Plot:
        """Names and marks of both axes, and lines across the picture."""
        for y in grid:
            self.level(y, "grid")
        for y, words in y_ticks.items():
            self.parts.append(text(_LEFT - 8, self.at(self.x[0], y)[1] + 4, words, anchor="end"))
        for x, words in x_ticks.items():
            self.parts.append(text(self.at(x, self.y[0])[0], _BOTTOM + 18, words, anchor="middle"))
        middle = (_LEFT + self.right) / 2
        self.parts.append(text(middle, _BOTTOM + 38, x_name, anchor="middle", kind="axis"))
        self.parts.append(text(_LEFT, _TOP - 4, y_name, kind="axis"))
        return self

    def level(self, y: float, kind: str, words: str = "") -> None:
        """A line across the picture, with words to its right."""
        up = self.at(self.x[0], y)[1]
        self.parts.append(line(_LEFT, up, self.right, up, kind))
        if words:
            self.parts.append(text(self.right + 6, up + 4, words, kind="tick second"))

    def points(self, places: Iterable[Sequence[float]]) -> None:
        """A small dot for every pair of values."""
        self.parts += [dot(*self.at(x, y), 2, "point") for x, y in places]

    def interval(self, x: float, value: float, low: float, high: float, title: str = "") -> None:
        """A value with its interval, upwards."""
        self.parts.append(line(*self.at(x, low), *self.at(x, high), "interval"))
        self.parts.append(dot(*self.at(x, value), 4.5, "dot", title))

    def polyline(self, places: Iterable[Sequence[float]], kind: str) -> None:
        """Lines through pairs of values."""
        through = " ".join("{:.1f},{:.1f}".format(*self.at(x, y)) for x, y in places)
        self.parts.append(tag("polyline", points=through, class_=kind))

    def picture(self, label: str) -> Markup:
        """All that was drawn."""
        return picture(_BOTTOM + 46, label, self.parts)


def histogram(
    edges: list[float],
    counts: list[int],
    name: str,
    ticks: Ticks,
    words: str,
    *,
    below: float = 0.0,
    right: float = 16.0,
) -> Plot:
    """Examples by some value; `words` has the ends of a column, and columns that end below some value are marked."""
    most = max(*counts, 1)
    unit = 10 ** math.floor(math.log10(most))
    step = max(round(next(unit * k for k in (0.2, 0.5, 1, 2, 5) if most <= 4 * unit * k)), 1)
    marks = {n: f"{n:,}" for n in range(0, most + 1, step)}
    plot = Plot((edges[0], edges[-1]), (0, most), right=right).axes(name, ticks, "examples", marks, grid=marks)
    for low, high, n in zip(edges[:-1], edges[1:], counts, strict=True):
        if n:
            (x, y), (end, bottom) = plot.at(low, n), plot.at(high, 0)
            box = {"x": x + 1, "y": y, "width": max(end - x - 2, 1.0), "height": max(bottom - y, 1.0)}
            title = tag("title", f"{n:,} examples with {words.format(low, high)}")
            kind = "column below" if (low + high) / 2 < below else "column"
            plot.parts.append(tag("rect", title, **box, rx=1.5, class_=kind))
    return plot


def interval_rows(
    rows: Iterable[tuple[str, float, float, float, str, str]],
    ends: tuple[float, float],
    ticks: Iterable[tuple[float, str]],
    label: str,
    axis: str,
) -> Markup:
    """Values with their intervals below each other: name, value, low, high, words to the right, kind of dot."""
    rows = list(rows)
    shown = [excerpt(name, 22) for name, *_ in rows]
    left, right, step = 22 + 6.6 * max(map(len, shown)), WIDTH - 62, 26
    height = step * len(rows) + 44

    def at(value: float) -> float:
        share = (min(max(value, ends[0]), ends[1]) - ends[0]) / (ends[1] - ends[0])
        return left + (right - left) * share

    parts = []
    for value, words in ticks:
        parts.append(line(at(value), 2, at(value), height - 40, "grid"))
        parts.append(text(at(value), height - 26, words, anchor="middle"))
    parts.append(text((left + right) / 2, height - 6, axis, anchor="middle", kind="axis"))
    for place, (_, value, low, high, words, kind) in enumerate(rows):
        y = 14.0 + step * place
        parts.append(text(left - 12, y + 4, shown[place], anchor="end", kind="axis"))
        parts.append(line(at(low), y, at(high), y, f"interval {kind}"))
        parts.append(dot(at(value), y, 5, f"dot {kind}"))
        parts.append(text(right + 10, y + 4, words, kind="axis"))
    return picture(height, label, parts)


def round_ticks(low: float, high: float, sign: str = "") -> dict[float, str]:
    """Marks of an axis at two to five round numbers; `sign` is that of a format."""
    half = (high - low) / 2
    power = 10.0 ** math.floor(math.log10(half))
    step = power * max(factor for factor in (1, 2, 5) if factor == 1 or factor * power <= half)
    marks = [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
    return {mark: f"{mark:{sign}.3g}".replace("-", "−") if mark else "0" for mark in marks}


def share_ticks(low: float) -> list[tuple[float, str]]:
    """Marks of an axis of percentages that begins at a tenth."""
    return [(k / 10, f"{10 * k}%") for k in range(round(10 * low), 11, 1 if low >= 0.5 else 2)]


def bar(share: float) -> Markup:
    """A bar as long as a share."""
    rect = tag("rect", x=0, y=2, width=max(100 * share, 1.0), height=8, rx=2, class_="fill")
    track = tag("rect", x=0, y=2, width=100, height=8, rx=2, class_="track")
    return tag("svg", track, rect, viewBox="0 0 100 12", class_="bar", aria_hidden="true")


def span(value: float, low: float, high: float) -> Markup:
    """A dot on a line from 0 to 1, with its interval."""
    parts = [line(0, 6, 100, 6, "track-line"), line(100 * low, 6, 100 * high, 6, "interval"), dot(100 * value, 6, 3.4)]
    return tag("svg", *parts, viewBox="-4 0 108 12", class_="bar", aria_hidden="true")
