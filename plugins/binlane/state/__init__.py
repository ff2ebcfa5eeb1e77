"""binlane's own state on the target: channels, windows, positions, leases. SQLAlchemy Core, InnoDB only."""
