"""The programs of examples/programs beside their twins on MPI, by turns."""


@functools.cache
def programs_beside_mpi():
    with tempfile.TemporaryDirectory() as place:
        done = subprocess.run([str(bench.fmpl), "install", "--prefix", place], capture_output=True, text=True)
        if done.returncode:
            raise Missing((done.stderr or done.stdout)[-300:])
        out = pathlib.Path(place, "programs.json")
        command = [ROOT / "examples/programs/compare", "--prefix", place, "--json", out, "--rounds", str(7 * bench.rounds)]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        if done.returncode or not out.exists():
            raise Missing((done.stderr or done.stdout)[-300:])
        return json.loads(out.read_text())


def programs_line(program, number, title, limit):
    @line("users", f"{program} beside its MPI twin, 2, 4, 8 ranks: {title} over the best MPI's", f"<= {limit}")
    def _():
        lines = [l for l in programs_beside_mpi() if l["program"] == program]
        if any("ratio" not in l for l in lines):
            raise Missing("there is no MPI to compare with")
        text = ", ".join(f"{l['ranks']} ranks {l['ratio'][number]:.2f} ({1e3 * l['medians']['fmpl'][number]:.0f} ms)" for l in lines)
        return text, all(l["ratio"][number] <= limit for l in lines)


for program in ("halo3d", "cg", "sort"):
    programs_line(program, 0, "time", 1.0)
    programs_line(program, 1, "time in the library", 0.7)
