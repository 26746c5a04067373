"""Files of labels, as people and other tools write them <-> labels and consensus."""

from crowdwise.formats._answers import LabelFile
from crowdwise.formats._read import FORMATS, read
from crowdwise.formats._write import CONSENSUS_FORMATS, LABEL_FORMATS, convert, write, write_labels

__all__ = ["CONSENSUS_FORMATS", "FORMATS", "LABEL_FORMATS", "LabelFile", "convert", "read", "write", "write_labels"]
