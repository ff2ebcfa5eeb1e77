"""Python's text as a tree, without a finalizer in the middle of it.

CPython 3.11 counts the depth of nodes in one place for all parses: a finalizer that parses makes the outer one fail
with "AST constructor recursion depth mismatch" (python/cpython#106905). A connection that an earlier test has left open
does: its pool logs the error of its end, and what formats a traceback parses the lines in it.
"""

from __future__ import annotations

import ast
import gc


def parsed(text: str) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError: the text is no Python.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(text)
    finally:
        if was_enabled:
            gc.enable()
