"""Prints recorded lines of nvidia-smi, a round for each time that it is given, and goes on until it is ended.

python3 nvidia_smi.py FILE [stubborn]: rounds are apart by an empty line; a stubborn one takes no SIGTERM. FILE.pid says
which process it is.
"""

import os
import signal
import sys
import time
from pathlib import Path


def main():
    if sys.argv[2:] == ["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lines = Path(sys.argv[1])
    lines.with_name(f"{lines.name}.pid").write_text(str(os.getpid()))
    for together in lines.read_text().split("\n\n"):
        print(together, flush=True)
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main()
