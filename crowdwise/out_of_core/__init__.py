"""Data that need not fit into memory -> blocks of rows, one after the other."""

from crowdwise.out_of_core.blocks import Block, Blocks
from crowdwise.out_of_core.read import read_blocks

__all__ = ["Block", "Blocks", "read_blocks"]
