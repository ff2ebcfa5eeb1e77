"""Transactions become blocks, barriers and a window's plan. Pure: no files, no servers, no clock."""
