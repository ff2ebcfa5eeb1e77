"""What binlane keeps on the target: channels, windows, positions, leases. SQLAlchemy Core, InnoDB only."""
