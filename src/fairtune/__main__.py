"""`python -m fairtune` is the `fairtune` command."""

from fairtune.cli import main

main()
