"""Making a training set for the title task out of correct titles. Nothing here imports torch."""

from fairtune.tasks.titles.files import read_titles
from fairtune.tasks.titles.grammar import KINDS
from fairtune.tasks.titles.made_titles import MadeTitle, make_titles

__all__ = ["KINDS", "MadeTitle", "make_titles", "read_titles"]
