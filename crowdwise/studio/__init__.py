"""A local page on top of a session: turn the steepness, see what happens, and label what is worth another look."""

from crowdwise._text import how_to_install
from crowdwise.exceptions import MissingExtraError

try:
    import starlette as _starlette  # noqa: F401
    import uvicorn as _uvicorn  # noqa: F401
except ImportError as error:
    raise MissingExtraError(f"The studio needs Starlette and uvicorn: {how_to_install('studio')}.") from error

from crowdwise.studio._routes import make_app
from crowdwise.studio._serve import serve
from crowdwise.studio._state import Studio

__all__ = ["Studio", "make_app", "serve"]
