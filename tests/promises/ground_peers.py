"""Between nodes: forged datagrams, damaged records and late peers, in the kernel of tests/rig; and what is left of want and of functions that panic."""


@functools.cache
def between_nodes(test):
    """What a test of faults says in the rig, and whether it holds."""
    if subprocess.run(["tests/rig/run", "--prepare"], cwd=ROOT, capture_output=True).returncode == 77:
        raise Missing("the rig cannot run here")
    command = ["tests/rig/run", "--timeout", "600", f"RIG_SHORT=1 {test_program('faults', profile='test')} {test}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode == 0


@line("ground", "datagrams of a stranger on another node (heard ones again, bits turned, made up with all but the key): taken", "0")
def _():
    text, well = between_nodes("forged_datagrams")
    found, rejected = re.search(r"(\d+) lies to each", text), re.findall(r"rejected (\d+) in", text)
    if not found or len(rejected) != 2:
        return cause(text), False
    return f"0; {found[1]} said to each of 2 ranks, {' and '.join(rejected)} of them came and were dropped", well


@line("ground", "damaged: landing, spooled landing, chain, posting from another node; before: panic, or a wait without end", "errors of the pair")
def _():
    text, well = between_nodes("damaged_record")
    return "so it is" if well else cause(text), well


@line("ground", "a silent link while a connection is made: an error that names the peer, and afterwards; before: lost for good", "tried again, goes on")
def _():
    text, well = between_nodes("late_rank")
    return "so it is" if well else cause(text), well


SMALL = {
    "soft limit of descriptors after finalize": ("faults", "limit_of_descriptors"),
    "want of descriptors, here and there: named, and over when there are some": ("faults", "want_of_descriptors"),
    "a death is told to who only tests for any source; before: never": ("faults", "who_only_tests"),
    "every call in a forked child": ("faults", "a_forked_child"),
    "a panic through extern \"C-unwind\" in a reduction": ("collective", "panic_into_the_c_interface"),
}

for title, (target, test) in SMALL.items():

    @line("ground", title, "as promised")
    def _(target=target, test=test):
        text, well = said(test_program(target, profile="test"), test)
        return "so it is" if well else cause(text), well and "... ok" in text
