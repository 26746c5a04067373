"""A session inside a notebook: the slider and the label seat, by the same modules as the page, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.responses import FileResponse, Response

from crowdwise._text import how_to_install
from crowdwise.exceptions import MissingExtraError
from crowdwise.session import Session
from crowdwise.studio._routes import STATIC, reply
from crowdwise.studio._schema import description
from crowdwise.studio._state import Studio

try:
    import anywidget
    import traitlets
except ImportError as error:
    raise MissingExtraError(f"A widget needs anywidget: {how_to_install('widget')}.") from error


def _modules() -> dict[str, str]:
    """All modules of the page by their path, for a loader in the notebook."""
    paths = sorted(STATIC.rglob("*.js"))
    return {path.relative_to(STATIC).as_posix(): path.read_text("utf-8") for path in paths if path.name != "app.js"}


def _styles() -> str:
    """The styles of the page, for the widget alone."""
    styles = (STATIC / "style.css").read_text("utf-8").replace(":root {", ":scope {").replace("\nbody {", "\n:scope {")
    return f"@scope (.crowdwise-studio) {{\n{(STATIC / 'vendor' / 'uplot.css').read_text('utf-8')}\n{styles}}}\n"


class SessionWidget(anywidget.AnyWidget):
    """What `make_widget` gives."""

    _esm = (STATIC / "widget_loader.js").read_text("utf-8")
    _css = _styles()
    modules = traitlets.Dict().tag(sync=True)


def make_widget(session: Session, title: str = "session") -> SessionWidget:
    """A widget that shows a session and takes answers.

    Parameters
    ----------
    session : Session
        With labels of classes.
    title : str, default="session"
        What is shown.

    Returns
    -------
    widget : anywidget.AnyWidget

    Examples
    --------
    >>> from crowdwise import Session
    >>> from crowdwise.studio.widget import make_widget
    >>> session = Session([["a", "a", "b"], ["b", "b", "b"]], texts=["one", "two"])
    >>> "widget.js" in make_widget(session).modules
    True
    """
    studio = Studio(session, title)
    widget = SessionWidget(modules=_modules())
    widget.on_msg(lambda _, asked, buffers: _send_answer(widget, studio, asked))
    return widget


def _send_answer(widget: Any, studio: Studio, asked: dict[str, Any]) -> None:
    response = answer(studio, str(asked["method"]), str(asked["address"]), str(asked.get("body") or "").encode())
    content = Path(response.path).read_bytes() if isinstance(response, FileResponse) else bytes(response.body)
    widget.send({"id": asked["id"], "status": response.status_code, "headers": dict(response.headers)}, [content])


def answer(studio: Studio, method: str, address: str, content: bytes = b"") -> Response:
    """What the server would answer to a request."""
    parts = urlsplit(address)
    operation = description()["paths"].get(parts.path, {}).get(method.lower())
    if operation is None:
        return Response(b'{"problem": "there is no such address."}', 404, media_type="application/json")
    return reply(studio, operation, parse_qs(parts.query, keep_blank_values=True), content)
