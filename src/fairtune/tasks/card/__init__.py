"""What a task's data is like: the data card, token lengths, languages, contamination."""
