"""Logarithms of probabilities: sums of their terms, and temperatures under which labels are most probable."""
