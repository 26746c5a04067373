"""Files of labels, as people and other tools write them <-> labels and consensus."""

from crowdwise.formats.convert import LABEL_FORMATS, convert, write_labels
from crowdwise.formats.label_file import LabelFile
from crowdwise.formats.read import FORMATS, read
from crowdwise.formats.write import CONSENSUS_FORMATS, write

__all__ = ["CONSENSUS_FORMATS", "FORMATS", "LABEL_FORMATS", "LabelFile", "convert", "read", "write", "write_labels"]
