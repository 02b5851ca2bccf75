"""What every room uses: errors, files, the cache, locks, wording, GPUs; and the version, which is stored with everything."""

__version__ = "0.1.0"
