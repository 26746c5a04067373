"""Labels that grow while people answer: what to ask whom, and a journal that loses nothing."""

from crowdwise.session.journal import Journal
from crowdwise.session.session import Session

__all__ = ["Journal", "Session"]
