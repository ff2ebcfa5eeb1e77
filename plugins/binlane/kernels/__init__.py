"""Compiled kernels: whole segments, blocks and packets at once, without Python's lock, for the modules that call them.

Cython, compiled when the wheel is built (``hatch_build.py``). Their callers give them arrays of the right sizes: that
is the contract which each kernel's text states, since indexes are not checked in them. What a log says is never
trusted: its lengths are compared with the buffer's end before they are used. docs/decisions/0029 says why Cython.
"""
