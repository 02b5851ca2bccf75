"""The version of the package, which everything that is stored carries."""

__version__ = "0.1.0"
