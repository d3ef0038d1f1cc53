# What users install and link: sizes, packages, C++, tools.
# Run by tests/shows, in which `line`, `test_line`, `tests_env`, `Missing`, `ROOT` and `TARGET` are.

MB = 1e6


@functools.cache
def installed():
    """The release build, installed in a directory of its own: sizes of files by name."""
    command = ["cargo", "build", "--locked", "--release", "--lib", "--bins"]
    with tempfile.TemporaryDirectory() as place:
        for what in command, [TARGET / "release" / "fmpl", "install", "--prefix", place]:
            done = subprocess.run(what, cwd=ROOT, capture_output=True, text=True)
            if done.returncode:
                raise Missing(done.stderr[-300:])
        return {path.name: path.stat().st_size for path in pathlib.Path(place, "lib").iterdir() if path.is_file()}


for name, most, before in ("libfmpl.so", 2, 20.9), ("libfmpl.a", 6, 57.6):
    @line("users", f"{name} as fmpl install puts it, MB; before: {before}", f"<= {most}")
    def _(name=name, most=most):
        size = installed()[name] / MB
        return f"{size:.2f}", size <= most


@line("users", "Debian packages: lintian; apt install on a bare Debian 12; C, C++, Fortran, CMake, pkg-config, Rust; purge", "all, and nothing is left")
def _():
    if os.getuid() or not shutil.which("lintian") or not shutil.which("debootstrap"):
        raise Missing("root, lintian and debootstrap are needed")
    since = time.monotonic()
    done = subprocess.run(["tests/packages"], cwd=ROOT, capture_output=True, text=True)
    text = (done.stdout + done.stderr).strip()
    return f"{time.monotonic() - since:.0f} s: {' / '.join(text.splitlines()[-2:])[-200:]}", done.returncode == 0


for title, words in (
    ("C++: every call, C++17 and C++20, with and without exceptions, one file and two, 1 to 4 ranks", "cpp"),
    ("second names: the lists of symbols; a tool preloaded, linked, and in front of the archive", "symbols:: tools::"),
    ("fmplcc, fmplc++, fmplfort, manual pages, completions, pkg-config, CMake", "installed::"),
):
    test_line(title, "pass", "cargo", "test", "--locked", "--release", "--test", "interface", "--", *words.split(), set_name="users")
