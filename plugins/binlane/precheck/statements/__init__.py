"""What stands against the statements of a window: their texts, their sessions, and who runs them."""
