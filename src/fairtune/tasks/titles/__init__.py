"""Making a training set for the title task out of correct titles. Nothing here imports torch."""

from fairtune.tasks.titles.kinds import Kind, kinds
from fairtune.tasks.titles.made_titles import MadeTitle, make_titles
from fairtune.tasks.titles.reading import read_titles, usable_titles

__all__ = ["Kind", "MadeTitle", "kinds", "make_titles", "read_titles", "usable_titles"]
