"""What stands in a window's way, before its first write: checks over one ``Situation``. May not write to a server."""
