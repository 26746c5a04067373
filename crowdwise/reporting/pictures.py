"""Parts of a summary -> pictures as SVG inside the page; colours and type come from the page's styles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from crowdwise.reporting.quality import known_accuracies
from crowdwise.reporting.words import decimal, percent

__all__ = ["Markup", "bar", "comparison", "easy_to_hard", "histogram", "kappas", "margin", "span"]

WIDTH = 440.0


def tag(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; text and attributes are escaped, and underscores in names of attributes are hyphens."""
    written = " ".join(
        f'{key.rstrip("_").replace("_", "-")}="{escape(_short(value))}"' for key, value in attributes.items()
    )
    inside = Markup("").join(escape(child) for child in children)
    return Markup("<{}{}>{}</{}>").format(Markup(name), Markup(f" {written}" if written else ""), inside, Markup(name))


def _short(value: Any) -> Any:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value


def picture(height: float, label: str, parts: Iterable[Any], *, width: float = WIDTH) -> Markup:
    """A picture that a screen reader calls by its label."""
    box = f"0 0 {_short(float(width))} {_short(float(height))}"
    return tag("svg", *parts, viewBox=box, role="img", aria_label=label, class_="picture")


def text(x: float, y: float, words: Any, *, anchor: str = "start", kind: str = "tick", **more: Any) -> Markup:
    """Words at a place."""
    return tag("text", words, x=float(x), y=float(y), text_anchor=anchor, class_=kind, **more)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """A straight line."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=kind)


def bar(share: float | None) -> Markup:
    """A bar as long as a share; nothing where there is none."""
    if share is None:
        return Markup("")
    rect = tag("rect", x=0, y=2, width=max(100 * share, 1.0), height=8, rx=2, class_="fill")
    track = tag("rect", x=0, y=2, width=100, height=8, rx=2, class_="track")
    return tag("svg", track, rect, viewBox="0 0 100 12", class_="bar", aria_hidden="true")


def span(value: float | None, low: float | None, high: float | None) -> Markup:
    """A dot on a line from 0 to 1, with its interval."""
    if value is None:
        return Markup("")
    parts = [line(0, 6, 100, 6, "track-line")]
    if low is not None and high is not None:
        parts.append(line(100 * low, 6, 100 * high, 6, "interval"))
    dot = tag("circle", cx=100.0 * value, cy=6, r=3.4, class_="dot")
    return tag("svg", *parts, dot, viewBox="-4 0 108 12", class_="bar", aria_hidden="true")


def comparison(summary: dict[str, Any]) -> Markup | None:
    """Accuracies of consensus, majority vote and classifier on known answers, with intervals; None without any."""
    rows = list(known_accuracies(summary["quality"], summary["classifier"]).items())
    if not rows:
        return None
    lowest = min(row["low"] for _, row in rows)
    low = math.floor(10 * max(lowest - 0.03, 0.0)) / 10
    left, right, step = 150.0, WIDTH - 70, 34
    height = step * len(rows) + 26

    def at(share: float) -> float:
        return left + (right - left) * (share - low) / (1 - low)

    parts: list[Markup] = []
    for k in range(round(10 * low), 11, 1 if low >= 0.5 else 2):
        parts.append(line(at(k / 10), 4, at(k / 10), height - 22, "grid"))
        parts.append(text(at(k / 10), height - 6, f"{10 * k}%", anchor="middle"))
    for place, (name, row) in enumerate(rows):
        y = 20 + step * place
        parts.append(text(left - 14, y + 4, name, anchor="end", kind="axis"))
        parts.append(line(at(row["low"]), y, at(row["high"]), y, "interval"))
        parts.append(tag("circle", cx=at(row["value"]), cy=float(y), r=5, class_="dot"))
        parts.append(text(right + 14, y + 4, percent(row["value"], 1).replace("over ", ">"), kind="axis"))
    words = "; ".join(f"{name}: {100 * row['value']:.1f}%" for name, row in rows)
    return picture(height, f"Accuracy on known answers. {words}.", parts)


def histogram(part: dict[str, Any]) -> Markup:
    """How many examples have how much disagreement, with the curve of weights."""
    edges, counts, curve = part["edges"], part["counts"], part["curve"]
    left, right, top, bottom = 46.0, WIDTH - 40, 14.0, 190.0
    most, largest = max(max(counts), 1), edges[-1]

    def across(value: float) -> float:
        return left + (right - left) * value / largest

    def up(share: float) -> float:
        return bottom - (bottom - top) * share

    parts = [*_counted(most, left, right, up)]
    for start, stop, n in zip(edges[:-1], edges[1:], counts, strict=True):
        if n:
            y, width = up(n / most), across(stop) - across(start)
            box = {"x": across(start) + 1, "y": y, "width": max(width - 2, 1.0), "height": max(bottom - y, 1.0)}
            title = tag("title", f"{n:,} examples with disagreement {start:.2f} to {stop:.2f}")
            parts.append(tag("rect", title, **box, rx=1.5, class_="column"))
    points = " ".join(f"{across(x):.1f},{up(y):.1f}" for x, y in curve)
    parts.append(tag("polyline", points=points, class_="curve"))
    for share in (0, 0.5, 1):
        parts.append(text(right + 8, up(share) + 4, f"{share:g}", kind="tick second"))
    parts.extend(_decimals(across, largest, bottom))
    parts.append(text((left + right) / 2, bottom + 38, "disagreement", anchor="middle", kind="axis"))
    label = f"Histogram of the disagreement of {part['paired']:,} examples, {part['unanimous']:,} of them unanimous."
    return picture(bottom + 46, label, parts)


def _counted(most: int, left: float, right: float, up: Any) -> list[Markup]:
    """Lines and numbers of an axis of counts."""
    unit = 10 ** math.floor(math.log10(most))
    step = max(round(next(unit * k for k in (0.2, 0.5, 1, 2, 5) if most <= 4 * unit * k)), 1)
    parts = []
    for n in range(0, most + 1, step):
        parts.append(line(left, up(n / most), right, up(n / most), "grid"))
        parts.append(text(left - 8, up(n / most) + 4, f"{n:,}", anchor="end"))
    return parts


def _decimals(across: Any, largest: float, bottom: float) -> list[Markup]:
    """The numbers of an axis from 0 to the largest."""
    ticks = [largest * k / 4 for k in range(5)]
    return [text(across(value), bottom + 18, f"{value:.3g}", anchor="middle") for value in ticks]


def margin(part: dict[str, Any]) -> Markup:
    """Distance from the model's boundary against disagreement: examples, and quartiles by level."""
    left, right, top, bottom = 46.0, WIDTH - 16, 14.0, 190.0
    largest = max(1.0, max(x for x, _ in part["points"]))

    def across(value: float) -> float:
        return left + (right - left) * value / largest

    def up(share: float) -> float:
        return bottom - (bottom - top) * share

    parts = [line(left, up(share), right, up(share), "grid") for share in (0, 0.5, 1)]
    parts += [text(left - 8, up(0) + 4, "near", anchor="end"), text(left - 8, up(1) + 4, "far", anchor="end")]
    parts += [tag("circle", cx=across(x), cy=up(y), r=2, class_="point") for x, y in part["points"]]
    for level in part["levels"]:
        x = across(level["disagreement"])
        parts.append(line(x, up(level["low"]), x, up(level["high"]), "interval"))
        parts.append(tag("circle", cx=x, cy=up(level["median"]), r=4.5, class_="dot"))
    parts.extend(_decimals(across, largest, bottom))
    parts.append(text((left + right) / 2, bottom + 38, "disagreement", anchor="middle", kind="axis"))
    found = part["correlation"]
    label = f"Distance from the model’s boundary against disagreement; rank correlation {decimal(found['value'])}."
    return picture(bottom + 46, label, parts)


def kappas(grid: dict[str, Any]) -> Markup:
    """Agreement of every pair of the most active annotators; blue beyond chance, orange below it."""
    names: Sequence[str] = grid["annotators"]
    shown = [name if len(name) <= 12 else name[:11] + "…" for name in names]
    left = 14 + 6.5 * max(map(len, shown))
    cell = min((WIDTH - left) / len(names), 34.0)
    parts = []
    for i, (name, row) in enumerate(zip(names, grid["kappa"], strict=True)):
        parts.append(text(left - 8, cell * (i + 0.5) + 4, shown[i], anchor="end"))
        for j, value in enumerate(row):
            box = {"x": left + cell * j, "y": cell * i, "width": cell - 1.5, "height": cell - 1.5, "rx": 1.5}
            if value is None:
                parts.append(tag("rect", **box, class_="self" if i == j else "empty"))
            else:
                title = tag("title", f"{name} and {names[j]}: {decimal(value)}")
                kind = "above" if value >= 0 else "below"
                parts.append(tag("rect", title, **box, class_=kind, fill_opacity=0.08 + 0.92 * min(abs(value), 1.0)))
    label = f"Cohen’s kappa of every pair of the {len(names)} annotators with the most labels."
    return picture(cell * len(names), label, parts, width=left + cell * len(names))


def easy_to_hard(rows: list[dict[str, Any]]) -> Markup:
    """Disagreement along the order from easy to hard."""
    left, right, top, bottom = 46.0, WIDTH - 16, 10.0, 90.0
    largest = max(1.0, max((row["disagreement"] for row in rows), default=1.0))
    step = max(len(rows) // 200, 1)
    shown = rows[::step]
    points = [
        (left + (right - left) * at / max(len(shown) - 1, 1), bottom - (bottom - top) * row["disagreement"] / largest)
        for at, row in enumerate(shown)
    ]
    area = " ".join(f"{x:.1f},{y:.1f}" for x, y in [(left, bottom), *points, (right, bottom)])
    parts = [
        line(left, bottom, right, bottom, "grid"),
        tag("polygon", points=area, class_="area"),
        text(left, bottom + 18, "easy"),
        text(right, bottom + 18, "hard", anchor="end"),
        text(left - 8, bottom + 4, "0", anchor="end"),
        text(left - 8, top + 6, f"{largest:.3g}", anchor="end"),
    ]
    return picture(bottom + 26, "Disagreement of the examples in their order from easy to hard.", parts)
