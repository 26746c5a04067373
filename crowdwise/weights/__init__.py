"""How much every example and class counts in a round, and how examples are held out."""
