"""What each operation of openapi.json is answered by: functions of a studio, one module per seat."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from crowdwise.studio import _examples, _explore, _label, _model, _start

VIEWS: dict[str, Callable[..., Any]] = {
    "start": _start.start,
    "summary": _start.summary,
    "now": _start.now,
    "refit": _explore.refit,
    "curve": _explore.curve,
    "explore": _explore.explore,
    "annotators": _explore.annotators,
    "annotator": _explore.annotator,
    "pairs": _explore.pairs,
    "map": _explore.map_,
    "examples": _examples.examples,
    "example": _examples.example,
    "picture": _examples.picture,
    "label": _label.label,
    "answer": _label.answer,
    "skip": _label.skip,
    "undo": _label.undo,
    "retune": _label.retune,
    "export": _label.export,
    "model": _model.model,
}


def as_json(answer: Any) -> bytes:
    """A view as it is sent."""
    return json.dumps(answer, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace")
