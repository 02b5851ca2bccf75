"""A study: its file (`loading`), its schema, the plan made of it. Nothing here imports torch."""
