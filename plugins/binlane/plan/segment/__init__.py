"""One segment: scanned, then mapped into lanes' blocks. Knows other segments only by the window's routes."""
