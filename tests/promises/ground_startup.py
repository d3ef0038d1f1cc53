"""Start-up as on a hostile network. The scenes are those of tests/launch/strangers, longer, and of the fabric's own tests."""


@functools.cache
def strangers(test, target="--test", of="launch", **env):
    """What a test prints as figures, and whether it holds; the program that the ranks run is built first."""
    env = tests_env(**env)
    built = subprocess.run(["cargo", "build", "--locked", "-q", "--example", "place"], cwd=ROOT, env=env, capture_output=True, text=True)
    if built.returncode:
        raise Missing(built.stderr[-300:])
    what = [target, of] if of else [target]
    command = ["cargo", "test", "--locked", *what, "--", "--exact", test, "--nocapture", "--test-threads=1"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    if "1 passed" not in done.stdout:
        return [cause(done.stdout + done.stderr)], False
    return re.findall(r"figure: (.*)", done.stdout), True


for limit in "1024", "64":
    @line("ground", f"500 silent strangers that come back at once, {limit} descriptors: start of a job; before: none in 30 s", "<= 3 s")
    def _(limit=limit):
        figures, well = strangers("strangers::silent_strangers_that_come_back_keep_no_job_from_starting")
        text = next((f for f in figures if f.startswith(f"limit of {limit} ")), figures[-1] if figures else "")
        seconds = re.search(r": ([\d.]+) s", text)
        return text, well and bool(seconds) and float(seconds[1]) <= 3


@line("ground", "10 000 lines of garbage, 10 000 conversations heard and altered: strangers let in, and start of the job", "0, <= 3 s")
def _():
    figures, well = strangers("strangers::garbage_and_conversations_heard_and_altered_let_nobody_in", FMPL_TEST_STRANGERS="10000")
    found = re.search(r": 0 let in, the job took ([\d.]+) s", figures[-1]) if figures else None
    return figures[-1] if figures else "", well and bool(found) and float(found[1]) <= 3


@line("ground", "somebody in between alters, repeats or adds lines after the proofs: noticed, nothing taken for true", "tests pass")
def _():
    names = ["what_is_altered_after_the_proofs_is_noticed", "what_is_added_after_the_proofs_is_noticed"]
    passed = sum(strangers(f"strangers::{name}")[1] for name in names)
    return f"{passed} of {len(names)}", passed == len(names)


@line("ground", "datagrams forged with all but the key, altered in each bit, replayed, for others: taken", "0")
def _():
    names = ["forged_with_all_but_the_key", "nobody_else_takes_it", "what_is_said_arrives_once", "a_number_is_taken_once"]
    passed = sum(strangers(f"fabric::network::stamps::tests::{name}", "--lib", "")[1] for name in names)
    return f"{'0' if passed == len(names) else 'some'} ({passed} of {len(names)} tests pass)", passed == len(names)


@line("ground", "a root without descriptors, 60 silent strangers: processor seconds in 3 s of waiting; before: 2.99", "<= 0.3")
def _():
    figures, well = strangers("strangers::a_root_without_descriptors_waits_without_spinning_and_lets_ranks_in")
    found = re.search(r"([\d.]+) s of the processor", figures[-1]) if figures else None
    return figures[-1] if figures else "", well and bool(found) and float(found[1]) <= 0.3


@line("ground", "FMPL_SECRET_FILE that others can read or write, or of another user; before: taken without a word", "refused")
def _():
    figures, well = strangers("strangers::a_secret_that_others_can_know_is_refused")
    return " ".join(figures), well


@line("ground", "the root listens at the address it was told, by number and by name; before: by name at all addresses", "tests pass")
def _():
    figures, well = strangers("strangers::the_root_listens_where_it_was_told_and_says_so")
    return "; ".join(figures), well
