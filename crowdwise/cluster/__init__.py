"""Dask collections -> results summed on a cluster."""
