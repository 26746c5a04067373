"""Dask collections -> results summed on a cluster, and lazy predictions."""
