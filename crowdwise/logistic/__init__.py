"""The classification model of Raykar et al.: in memory, over blocks of a file, and on a cluster."""
