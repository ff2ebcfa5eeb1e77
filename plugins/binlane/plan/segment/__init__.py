"""One segment: scanned, and mapped into lanes' blocks. Nothing of other segments but the window's routes."""
