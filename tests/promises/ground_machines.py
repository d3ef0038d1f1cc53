# README's two commands and the tests on machines unlike this one. Run by tests/shows, in which `line`, `fresh`, `Missing` and `ROOT` are.


def bare(*options):
    """README's commands on a bare Debian 12: seconds and code of each."""
    if os.getuid() != 0 or not shutil.which("debootstrap"):
        raise Missing("needs root and debootstrap")
    done = subprocess.run([str(ROOT / "tests/bare"), *options], cwd=ROOT, capture_output=True, text=True)
    commands = re.findall(r"^command \d+: (\d+) s, code (\d+): (.*)$", done.stdout, re.M)
    if not commands:
        raise Missing((done.stderr or done.stdout).strip()[-300:])
    text = "; ".join(f"{command}: {seconds} s, code {code}" for seconds, code, command in commands)
    return text, done.returncode == 0, [int(seconds) for seconds, _, _ in commands]


for what, options in [("", []), (" beside a busy core", ["--busy"])]:
    @line("ground", f"bare Debian 12{what}: README's two commands (before: the second was ended by its budget)", "pass")
    def _(options=options):
        text, well, seconds = bare(*options)
        return text, well and len(seconds) == 2


@line("ground", "bare Debian 12: .ci/run", "< 3600 s")
def _():
    text, well, seconds = bare("--ci")
    return text, well and seconds[0] < 3600


@line("ground", "fresh clone, README's command 1, with the build (before: 148 s)", "<= 90 s")
def _():
    return fresh("bench pingpong", 90)


settings = subprocess.run([str(ROOT / "tests/settings")], capture_output=True, text=True, check=True).stdout
for setting in settings.splitlines():
    name, about = setting.split(maxsplit=1)

    @line("ground", f"tests/run {about}", "pass")
    def _(name=name):
        done = subprocess.run([str(ROOT / "tests/settings"), name], cwd=ROOT, capture_output=True, text=True)
        last = (done.stdout.strip() or done.stderr.strip() or "no word").splitlines()[-1]
        return last, done.returncode == 0 and last.startswith("all tests passed")
