"""What the command says."""

test_line("24 things a newcomer types wrong: each gets a line that says what is wrong and what to do", "all", "cargo", "test", "--locked", "--test", "interface", "newcomer", set_name="users")


# ---- fmpl top

def ranks_of_mine():
    """The processes of ranks that carry the mark of this one."""
    marked = lambda p: f"FMPL_SHOWS={os.getpid()}".encode() in p.read_bytes().split(b"\0")
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if marked(environ) and b"bench-part\0rank" in environ.with_name("cmdline").read_bytes():
                yield environ.parent.name


def watching(work):
    """What `work` gives while fmpl top looks twenty times a second at the ranks that it starts; and how often it looked."""
    over, looks = threading.Event(), 0

    def watch():
        nonlocal looks
        while not over.wait(0.02):
            for rank in list(ranks_of_mine())[:1]:
                done = subprocess.run([bench.fmpl, "top", rank, "--json", "-d", "0.05", "-n", "20"], capture_output=True, text=True)
                looks += len(done.stdout.splitlines())

    os.environ["FMPL_SHOWS"] = str(os.getpid())
    thread = threading.Thread(target=watch)
    thread.start()
    try:
        result = work()
    finally:
        over.set()
        thread.join()
    return result, looks


@line("users", "fmpl top looks at a ping-pong of 10^6 round trips of 8 B: system calls of the ranks for it (strace)", "0 + start")
def _():
    if not shutil.which("strace"):
        raise Missing("strace is not installed")
    # Whatever else runs here, a rank that waits does not sleep, which would be a system call.
    os.environ["FMPL_WAIT"] = "spin"
    few = system_calls(FEW)
    runs = [watching(lambda: system_calls(MANY)) for _ in range(3)]
    del os.environ["FMPL_WAIT"]
    extra, looks = min(((calls - few, looks) for calls, looks in runs), key=lambda run: run[0].total())
    return f"{extra.total()} of both ranks in {looks} looks", looks >= 3 and extra.total() < START


@line("users", "fmpl top of 64 ranks, all of which have met, each 2 s: of one core", "<= 1 %")
def _():
    command = [bench.fmpl, "run", "-n", "64", "--oversubscribe", "--env", "RANKS_BODY=is watched", "--env", "MEETS_ALL=1", "--", test_program("told")]
    job = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for _ in range(64):
            job.stdout.readline()
        before, since = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run([bench.fmpl, "top", str(job.pid), "--json", "-n", "10"], capture_output=True, text=True)
        after, lasted = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - since
    finally:
        job.kill()
        job.wait()
    ranks = [len(json.loads(text)["ranks"]) for text in done.stdout.splitlines()]
    share = sum(getattr(after, key) - getattr(before, key) for key in ("ru_utime", "ru_stime")) / lasted
    return f"{share * 100:.2f} %, {len(ranks)} looks at {min(ranks, default=0)} ranks", len(ranks) == 10 and min(ranks) == 64 and share <= 0.01
