"""What classifiers get wrong, as a section of the report."""
