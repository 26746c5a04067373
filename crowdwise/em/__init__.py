"""A posterior over classes: labels alone, with logistic regression, or with any classifier."""
