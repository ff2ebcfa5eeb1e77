"""What checks look at, each fact read once, and what they say of it."""
