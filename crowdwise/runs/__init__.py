"""From files to answers: what the commands do, in one line of Python each."""

from crowdwise.runs.inputs import Inputs, read_inputs

__all__ = ["Inputs", "read_inputs"]
