"""How much every example and class counts in a round, and how examples are held out."""

from crowdwise.weights.curricula import Curriculum, Fading, Fixed, SelfPaced, Smooth

__all__ = ["Curriculum", "Fading", "Fixed", "SelfPaced", "Smooth"]
