"""Who gave which label to which example: read, checked once, coded and aligned with features."""
