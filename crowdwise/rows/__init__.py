"""Rows of features and labels in chunks: from memory, from files or from Dask, each read in the same way."""
