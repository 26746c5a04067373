"""Labels -> numbers about examples and annotators, without features."""
