"""Every call in every language."""

@line("users", "every call in C, Fortran, Rust, C++ (its own form), Python: there / in a test, of all that make sense there", "all")
def _():
    done = subprocess.run([sys.executable, ROOT / "docs/site/languages.py"], capture_output=True, text=True)
    if done.returncode:
        raise Missing(done.stderr[-300:])
    found = {k: [int(n) for n in numbers] for k, *numbers in re.findall(r"^(\S+): (\d+) of (\d+), in no test (\d+)$", done.stdout, re.M)}
    whole = all(there == of and not untested for there, of, untested in found.values())
    return ", ".join(f"{k} {there} / {there - untested} of {of}" for k, (there, of, untested) in found.items()), whole
