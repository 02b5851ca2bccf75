"""The version of the package, which every record carries."""

__version__ = "0.1.0"
