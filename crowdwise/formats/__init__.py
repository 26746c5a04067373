"""Files of labels, as people and other tools write them <-> labels and consensus."""

from crowdwise.formats.label_file import LabelFile
from crowdwise.formats.read import read

__all__ = ["LabelFile", "read"]
