"""``python -m fmpl …``: the command ``fmpl`` that was installed with this package."""

import os
import shutil
import sys
import sysconfig


def main():
    beside = os.path.join(sysconfig.get_path("scripts"), "fmpl")
    command = beside if os.access(beside, os.X_OK) else shutil.which("fmpl")
    if command is None:
        sys.exit("the command fmpl is not there: it comes with the wheel (src/python/build), or by `cargo build --release`")
    os.execv(command, ["fmpl", *sys.argv[1:]])


main()
