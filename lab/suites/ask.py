"""Called by a running test: sends the test's progress to the trial, and waits for the answer.

    ask.py SOCKET start|judge SUITE.TEST

Uses only the standard library, without site packages, because it runs twice in each of thousands of tests.
"""

import json
import os
import socket
import sys


def main() -> None:
    """Send the step, the test and the ports of the test's servers as one line; print the answer."""
    path, step, test = sys.argv[1:]
    ports = {name: int(value) for name, value in os.environ.items() if "_MYPORT" in name and value.isdigit()}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(json.dumps({"step": step, "test": test, "ports": ports}).encode() + b"\n")
        print(connection.makefile().readline().strip())


if __name__ == "__main__":
    main()
