"""Transaction -> databases -> shard -> lane. Pure functions and values: no I/O, no clock, no environment."""
