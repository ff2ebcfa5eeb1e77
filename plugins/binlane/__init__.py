"""binlane rolls MySQL and MariaDB binary logs forward onto another server, in parallel, in scheduled windows.

Layers, each importing only those before it::

    errors, model        values and the error tree
    kernels              whole segments at once, compiled
    binlog               bytes -> events -> transactions
    shards               transaction -> databases -> shard -> lane
    plan                 transactions -> blocks, barriers, the window's plan; pure
    work                 the window's files: fsspec, Parquet
    source, state, apply the servers
    orchestration, cli   the steps of a window, and their callers
"""

__version__ = "0.1.0"
