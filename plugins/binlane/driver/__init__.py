"""Connections by PyMySQL: their settings, rules for sending passwords, timeouts, the size of answers, and compression.

Every session of every command begins at one class, ``connection.Connection``, with the settings of its kind
(``binlane.sessions``), whatever the server's global variables and its ``init_connect`` are. It has four layers, each of
which knows only those above it in this list:

- ``wire.WireConnection``: bytes. How long an answer may take, how large it may be, frames of the compressed protocol,
  keepalive, and how another thread keeps the session; ``results.Result`` takes an answer's columns and rows of them.
- ``login.LoginConnection``: to whom a password is sent: TLS, keys and plugins, and what a refused login means.
- ``pinned.PinnedConnection``: the session's settings, and the proof that the server is the expected one.
- ``connection.Connection``: transactions. What a statement may open, write and hold.
"""
