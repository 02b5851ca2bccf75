"""Damaged and hostile files: whatever is done to a file that we read, a clean error or an equal result comes of it.

To add a kind of file, add one function with `@target` in a module here and import that in `tests/fuzz/targets.py`. For long hunts:

    python -m tests.fuzz --target csv --seeds 5000
"""
