"""Imported by a fork server whose command is interrupted meanwhile."""

import sys
import time

sys.stdout.write("imported slowly\n")
sys.stdout.flush()
time.sleep(1)
