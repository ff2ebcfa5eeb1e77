"""Commands for a channel before its first window: its file, its privileges, its readiness."""
