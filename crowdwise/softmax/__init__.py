"""Multinomial logistic regression with soft classes: the models of all folds in one pass over the rows."""
