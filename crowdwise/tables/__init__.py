"""Files as people have them (CSV of any kind, JSON Lines, Parquet, compressed or not) -> columns of text."""

from crowdwise.tables.block import Block
from crowdwise.tables.source import Source
from crowdwise.tables.table import Table, open_table

__all__ = ["Block", "Source", "Table", "open_table"]
