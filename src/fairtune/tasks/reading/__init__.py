"""Reading rows: every format, from a file, a folder of shards, a pipe or standard input."""
