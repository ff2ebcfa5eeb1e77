"""Routines, views and triggers behind statements: what a statement reaches, and whether two servers' are alike."""
