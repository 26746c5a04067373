"""Files as people have them (CSV of any kind, JSON Lines, Parquet, compressed or not) -> columns of text."""

from crowdwise.tables._json import Placed, Record, as_text, is_document, json_records, parse_document
from crowdwise.tables._source import N_ROWS, Block, Source, check_encoding, encoding_of
from crowdwise.tables._table import Table, open_table

__all__ = [
    "N_ROWS",
    "Block",
    "Placed",
    "Record",
    "Source",
    "Table",
    "as_text",
    "check_encoding",
    "encoding_of",
    "is_document",
    "json_records",
    "open_table",
    "parse_document",
]
