"""Who said what about which example: read, checked once, coded and aligned with features."""
