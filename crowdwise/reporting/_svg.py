"""Pictures as SVG inside a page; colours and type come from the page's styles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from typing import Any

WIDTH = 440.0
LEFT, TOP, BOTTOM = 46.0, 14.0, 190.0


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
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def picture(height: float, label: str, parts: Iterable[Any], *, width: float = WIDTH) -> Markup:
    """A picture that a screen reader calls by its label."""
    box = f"0 0 {_short(float(width))} {_short(float(height))}"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=label, class_="picture")


def text(x: float, y: float, words: Any, *, anchor: str = "start", kind: str = "tick") -> Markup:
    """Words at a place."""
    return tag("text", words, x=float(x), y=float(y), text_anchor=anchor, class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


def dot(x: float, y: float, r: float, kind: str = "dot") -> Markup:
    """A filled circle."""
    return tag("circle", cx=float(x), cy=float(y), r=r, class_=kind)


def points(places: Iterable[tuple[float, float]]) -> str:
    """Places as an attribute of a polygon or a polyline."""
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)


def axes(largest: float, right: float) -> tuple[Callable[[float], float], Callable[[float], float], list[Markup]]:
    """Where values of disagreement and shares of the height are, and the marks of the axis of disagreement."""

    def across(value: float) -> float:
        return LEFT + (right - LEFT) * value / largest

    def up(share: float) -> float:
        return BOTTOM - (BOTTOM - TOP) * share

    ticks = [largest * k / 4 for k in range(5)]
    marks = [text(across(value), BOTTOM + 18, f"{value:.3g}", anchor="middle") for value in ticks]
    return across, up, [*marks, text((LEFT + right) / 2, BOTTOM + 38, "disagreement", anchor="middle", kind="axis")]


def interval_rows(
    rows: Iterable[tuple[str, float, float, float, str, str]],
    ends: tuple[float, float],
    ticks: Iterable[tuple[float, str]],
    label: str,
    axis: str,
) -> Markup:
    """Values with their intervals below each other: name, value, low, high, words to the right, kind of dot."""
    rows = list(rows)
    shown = [name if len(name) <= 22 else name[:21] + "…" for name, *_ in rows]
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
