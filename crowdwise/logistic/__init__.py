"""The classification model of Raykar et al.: in memory, over blocks, and on streams."""
