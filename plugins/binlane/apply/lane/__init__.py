"""A lane's run: barriers, peers, heartbeat, attempts, errors. Sends no statement of a block itself."""
