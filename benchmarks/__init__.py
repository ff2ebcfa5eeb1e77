"""Benchmarks: one script a subject, on private servers; README.md says how to run and how to read them."""
