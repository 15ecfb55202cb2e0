"""Files of rows: reading them in chunks, proposing groups and features, running models over them.

What the command line does with your own data. Every reader gives pyarrow tables a chunk at a time,
so a file may be larger than memory; pyarrow because one package reads CSV, Parquet and compressed
files that way, and because a replay needs frames of some library anyway.
"""
