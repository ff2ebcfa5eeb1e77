"""Called inside a test: tells the trial where the test is, and waits until the trial has answered.

    ask.py SOCKET start|judge SUITE.TEST

Standard library alone, and started without site packages: it runs twice in each of thousands of tests.
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
