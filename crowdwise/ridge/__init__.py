"""The paper's model: squared loss, from sums that add."""
