"""Tests of jobs: a test is the program of a rank, and is started on each number of ranks by `fmpl run`.

    @ranks(2, 3)
    def test_that(job):
        ...what each rank does, with its assertions

pytest starts `fmpl run -n N python jobs.py MODULE NAME`, which imports the module again and runs the function within `fmpl.init`. What a job
prints is shown when it fails; every job ends after a time.
"""

import importlib
import os
import pathlib
import subprocess
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FMPL = os.environ.get("FMPL_TEST_COMMAND", os.path.join(sysconfig.get_path("scripts"), "fmpl"))


def run(n, *command, options=(), timeout=120, **env):
    """Runs a command on so many ranks. Ranks may share cores. `options`: more of `fmpl run`."""
    command = [FMPL, "run", "-n", str(n), "--oversubscribe", "--timeout", str(timeout), *options, "--", *map(str, command)]
    # A hang is told by the launcher, so this ends later.
    return subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout + 30, env={**os.environ, "PYTHONUNBUFFERED": "", **env}
    )


def script(n, text, tmp_path, **options):
    """Runs the text of a program on so many ranks."""
    program = tmp_path / "program.py"
    program.write_text(text)
    return run(n, sys.executable, program, **options)


def ranks(*numbers, count=64, **env):
    """A test on each of these numbers of ranks."""

    def make(body):
        if "FMPL_TEST_BODY" in os.environ:
            return body, count

        import pytest

        @pytest.mark.parametrize("n", numbers)
        def test(n):
            done = run(n, sys.executable, __file__, body.__module__, body.__name__, FMPL_TEST_BODY="1", **env)
            assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

        test.__doc__ = body.__doc__
        return test

    return make


def main(module, name):
    import fmpl

    body, count = getattr(importlib.import_module(module), name)
    with fmpl.init(count) as job:
        body(job)


if __name__ == "__main__":
    sys.path.insert(0, str(HERE))
    main(*sys.argv[1:])
