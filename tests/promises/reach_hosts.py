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
def hosts_starts(rounds=5):
    """Seconds that a job of 1000 ranks takes which start, meet, exchange and end: {launcher: [seconds]}, by turns; and descriptors of ours."""
    fmpl, examples = hosts_programs()
    ranks = [str(examples / "place"), "20", "--few"]
    with tempfile.TemporaryDirectory() as directory:
        agent = pathlib.Path(directory, "agent")
        agent.write_text("#!/bin/sh\nhost=$1; shift; FMPL_NODE=${host#n} exec \"$@\"\n")
        agent.chmod(0o755)
        theirs = pathlib.Path(directory, "their-agent")
        theirs.write_text('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift; FMPL_NODE=${host#n} exec sh -c "$*"\n')
        theirs.chmod(0o755)
        names = ",".join(f"n{k}:{RANKS * (k + 1) // NODES - RANKS * k // NODES}" for k in range(NODES))
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        commands = {
            "fmpl run": [str(fmpl), "run", "--launch-agent", str(agent), "-H", names, *ranks],
            "mpirun": ["mpirun", *root, "--oversubscribe", "--bind-to", "none", "-np", str(RANKS), *ranks],
            "mpiexec.hydra": ["mpiexec.hydra", "-bind-to", "none", "-n", str(RANKS), *ranks],
            "mpiexec.hydra, 64 hosts": [
                "mpiexec.hydra", "-bind-to", "none", "-launcher", "ssh", "-launcher-exec", str(theirs), "-localhost", "127.0.0.1",
                "-hosts", names, "-n", str(RANKS), *ranks,
            ],
        }
        commands = {name: c for name, c in commands.items() if name == "fmpl run" or shutil.which(c[0])}
        took, descriptors = {name: [] for name in commands}, 0
        for _ in range(rounds):
            for name, command in list(commands.items()):
                begin = time.monotonic()
                with open(pathlib.Path(directory, "out"), "w") as out:
                    job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
                    while job.poll() is None:
                        if name == "fmpl run":
                            try:
                                descriptors = max(descriptors, len(os.listdir(f"/proc/{job.pid}/fd")))
                            except OSError:
                                pass
                        if time.monotonic() - begin > 120:
                            job.kill()
                        time.sleep(0.02)
                text = pathlib.Path(directory, "out").read_text()
                well = job.returncode == 0 and len(re.findall(rf"rank \d+ of {RANKS}, here", text)) == RANKS
                if not well and name == "fmpl run":
                    raise Missing(f"{name} ended with {job.returncode}: {text[-200:]}")
                if not well:
                    # MPICH 4.0's does not end with so many on one machine.
                    del commands[name]
                else:
                    took[name].append(time.monotonic() - begin)
    return {name: t for name, t in took.items() if t}, descriptors


@line("reach", f"{RANKS} ranks on {NODES} pretended machines, start to end, beside mpirun and mpiexec.hydra", "<= 1.2 of the faster")
def _():
    took, _ = hosts_starts()
    text = ", ".join(f"{name} {min(t):.2f} s (median {statistics.median(t):.2f})" for name, t in took.items())
    rivals = [t for name, t in took.items() if name != "fmpl run"]
    if not rivals:
        raise Missing(f"neither mpirun nor mpiexec.hydra starts such a job here ({text})")
    ratios = [f(took["fmpl run"]) / min(map(f, rivals)) for f in (min, statistics.median)]
    return f"{ratios[0]:.2f} and {ratios[1]:.2f}: {text}", max(ratios) <= 1.2


@line("reach", "descriptors of the launcher of these", "<= 80")
def _():
    _, descriptors = hosts_starts()
    return str(descriptors), 0 < descriptors <= 80
