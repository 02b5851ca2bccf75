"""Making a training set for the title task out of correct titles. Nothing here imports torch."""

from fairtune.tasks.titles.corruption import Kind
from fairtune.tasks.titles.files import read_titles
from fairtune.tasks.titles.made_titles import MadeTitle, kinds, make_titles, usable_titles

__all__ = ["Kind", "MadeTitle", "kinds", "make_titles", "read_titles", "usable_titles"]
