"""`fmpl run` across machines: over sshd in two network namespaces, and 64 pretended machines beside the launchers of MPIs."""


@functools.cache
def hosts_programs():
    """`fmpl` and the directory of the examples, released."""
    command = ["cargo", "build", "--locked", "-q", "--release", "--bin", "fmpl", "--examples"]
    done = subprocess.run(command, cwd=ROOT, env=tests_env(), capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    return TARGET / "shows/release/fmpl", TARGET / "shows/release/examples"


@functools.cache
def hosts_over_ssh():
    """What each scene of tests/reach/ssh came to: {name: (well, text)}."""
    done = subprocess.run(["tests/reach/ssh", *hosts_programs()], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 77:
        raise Missing(done.stderr.strip())
    scenes = re.findall(r"^(ok|FAILED) (.*?) - (.*)", done.stdout, re.M)
    return {name: (verdict == "ok", text) for verdict, name, text in scenes}


for scene, limit in {
    "job of two machines": "as on one",
    "messages between the machines": "as sent",
    "exit code from there": "7",
    "rank killed there": "137, named, nothing left",
    "daemon killed there": "1, node named, nothing left",
    "node dies": "1, node named",
    "cable pulled": "1, node named, nothing left",
    "launcher killed": "nothing left",
    "interrupted": "130",
    "no such host": "1, node named",
}.items():

    @line("reach", f"fmpl run -H over sshd, two network namespaces: {scene}", limit)
    def _(scene=scene):
        well, text = hosts_over_ssh().get(scene, (False, "did not come to its end"))
        return text, well


NODES, RANKS = 64, 1000


@functools.cache
def hosts_launchers():
    """Commands that start these ranks, which meet and exchange: {launcher: command without what the ranks are told}."""
    fmpl, examples = hosts_programs()
    directory = pathlib.Path(tempfile.mkdtemp(prefix="fmpl-agents-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    agent = directory / "agent"
    agent.write_text("#!/bin/sh\nhost=$1; shift; FMPL_NODE=${host#n} exec \"$@\"\n")
    theirs = directory / "their-agent"
    theirs.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift; FMPL_NODE=${host#n} exec sh -c "$*"\n')
    agent.chmod(0o755), theirs.chmod(0o755)
    names = ",".join(f"n{k}:{RANKS * (k + 1) // NODES - RANKS * k // NODES}" for k in range(NODES))
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    commands = {
        "fmpl run": [fmpl, "run", "--launch-agent", agent, "-H", names],
        "mpirun": ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-np", RANKS],
        "mpiexec.hydra": ["mpiexec.hydra", "-bind-to", "none", "-n", RANKS],
        "mpiexec.hydra, 64 hosts": ["mpiexec.hydra", "-bind-to", "none", "-launcher", "ssh", "-launcher-exec", theirs, "-localhost", "127.0.0.1",
                                    "-hosts", names, "-n", RANKS],
    }
    program = [examples / "place", 20, "--few"]
    return {name: [str(word) for word in c + program] for name, c in commands.items() if name == "fmpl run" or shutil.which(c[0])}


def hosts_job(command, look=lambda pid: None):
    """Runs such a job; its seconds and what it said, or `None` and that. Meanwhile looks at its launcher."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        while job.poll() is None:
            look(job.pid)
            if time.monotonic() - begin > 120:
                job.kill()
            time.sleep(0.02)
        took = time.monotonic() - begin
        out.seek(0)
        text = out.read()
    well = job.returncode == 0 and len(re.findall(rf"rank \d+ of {RANKS}, here", text)) == RANKS
    return took if well else None, text


@functools.cache
def hosts_starts(rounds=5):
    """Seconds that such a job takes from its start to its end: {launcher: [seconds]}, by turns."""
    commands = dict(hosts_launchers())
    took = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in list(commands.items()):
            seconds, text = hosts_job(command)
            if seconds:
                took[name].append(seconds)
            elif name == "fmpl run":
                raise Missing(f"fmpl run: {text[-200:]}")
            else:
                # MPICH 4.0's does not end with so many on one machine.
                del commands[name]
    return {name: t for name, t in took.items() if t}


@line("reach", f"{RANKS} ranks on {NODES} pretended machines, start to end, beside mpirun and mpiexec.hydra", "<= 1.2 of the faster")
def _():
    took = hosts_starts()
    text = ", ".join(f"{name} {min(t):.2f} s (median {statistics.median(t):.2f})" for name, t in took.items())
    rivals = [t for name, t in took.items() if name != "fmpl run"]
    if not rivals:
        raise Missing(f"neither mpirun nor mpiexec.hydra starts such a job here ({text})")
    ratios = [f(took["fmpl run"]) / min(map(f, rivals)) for f in (min, statistics.median)]
    return f"{ratios[0]:.2f} and {ratios[1]:.2f}: {text}", max(ratios) <= 1.2


@line("reach", "descriptors of the launcher of these, and of rank 0", "<= 80 each")
def _():
    of_launcher = [0]

    def look(pid):
        with contextlib.suppress(OSError):
            of_launcher[0] = max(of_launcher[0], len(os.listdir(f"/proc/{pid}/fd")))

    seconds, text = hosts_job(hosts_launchers()["fmpl run"] + ["--costs"], look)
    of_first = re.search(r"^rank 0: .*, (\d+) descriptors", text, re.M)
    if not seconds or not of_first:
        raise Missing(text[-200:])
    return f"{of_launcher[0]} and {of_first[1]}", 0 < of_launcher[0] <= 80 and int(of_first[1]) <= 80
