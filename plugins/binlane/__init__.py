"""binlane rolls MySQL and MariaDB binary logs forward onto another server, in parallel, in scheduled windows.

Layers, each importing only those before it::

    errors, model        values and the error tree
    binlog               bytes -> events -> transactions
    shards               transaction -> databases -> shard -> lane
    plan                 transactions -> blocks, barriers, the window's plan; pure
    work                 the window's files: fsspec, Parquet
    source, state, apply the servers
    orchestration, cli   the steps of a window, and their callers
"""

from pathlib import Path

from binlane.machine_code import choose_cache

__version__ = "0.1.0"

# before any module imports numba, which reads the setting at its import
choose_cache(Path(__file__).parent)
