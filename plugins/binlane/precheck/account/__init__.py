"""What the account on the target may do, and how rows are written with it."""
