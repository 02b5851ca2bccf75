"""The sections of a report, one folder each; `catalogue.py` lists them."""
