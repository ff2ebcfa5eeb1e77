"""Whole segments as arrays and machine code: many events at once, never one by one. No routing, no I/O."""
