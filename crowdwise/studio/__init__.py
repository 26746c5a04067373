"""A local page on top of a session: turn the steepness, see what happens, and label what is worth another look."""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from crowdwise._text import how_to_install

if find_spec("starlette") is None or find_spec("uvicorn") is None:
    from crowdwise.exceptions import MissingExtraError

    raise MissingExtraError(f"The studio needs Starlette and uvicorn: {how_to_install('studio')}.")

if TYPE_CHECKING:
    from crowdwise.studio._routes import make_app
    from crowdwise.studio._serve import serve
    from crowdwise.studio._state import Studio

__all__ = ["Studio", "make_app", "serve"]
_HOMES = {"Studio": "_state", "make_app": "_routes", "serve": "_serve"}


if not TYPE_CHECKING:  # loaded when asked for: the command prints its address before

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'crowdwise.studio' has no attribute {name!r}")
        return getattr(import_module(f"crowdwise.studio.{_HOMES[name]}"), name)
