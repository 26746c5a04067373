"""The estimators: one file each; the rounds turn here."""
