"""A method and a task for fairtune, each in one file."""
