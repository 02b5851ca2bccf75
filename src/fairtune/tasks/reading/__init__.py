"""Reading rows: every format, from a file, a folder of shards, a pipe or standard input.

Whatever is wrong with a file is a `DataError` that says where.
"""
