"""The definitions of both servers: read, or taken from a window's folder while nothing has changed one since."""
