"""Known answers of some examples: matched with the labels, held fixed, and what confidence is calibrated by."""
