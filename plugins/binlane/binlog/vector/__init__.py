"""Whole segments as arrays, processed by compiled kernels. No routing, no I/O."""
