"""A study: its file (`study_file`), its schema, the plan made of it. Nothing here imports torch."""
