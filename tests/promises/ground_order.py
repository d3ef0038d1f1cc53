"""The order of both sides where a sandbox refuses membarrier, and signals. The scenes are those of tests/faults, longer."""

NOT_LATER = {"": "neither", "0": "the sender", "1": "the receiver", "0 1": "both"}


@functools.cache
def faults(test, **env):
    """What a test says, and whether it holds."""
    return said(test_program("faults"), test, **env)


def settings(text, pattern):
    """The figures of each setting, by to whom membarrier is refused."""
    return {refused: [int(n) for n in found] for refused, *found in re.findall(r"refused to \[(.*?)\]: " + pattern, text)}


for setting, whom in {**NOT_LATER, "1 later": "the receiver after init"}.items():
    before = "; before: 1647 of 359989" if setting == "1" else ""

    @line("ground", f"cancel against put, 25 s, membarrier refused to {whom}: receives written after{before}", "0")
    def _(setting=setting):
        text, _ = faults("a_withdrawn_receive_is_not_written", SANDBOX_SECONDS="25", SANDBOX_SETTING=setting)
        found = settings(text, r"messages (\d+) cancelled (\d+) written (\d+)").get(setting)
        if not found:
            return cause(text), False
        messages, cancelled, written = found
        return f"{written} of {messages} messages, {cancelled} cancelled", written == 0 and cancelled > 0


for setting, whom in {"0": "the event loop", "1": "its peer", "0 1": "both", "0 later": "the event loop after init"}.items():
    before = "; before: 5 of 679158" if setting == "0" else ""

    @line("ground", f"event descriptor, 10^6 events, membarrier refused to {whom}: events lost{before}", "0")
    def _(setting=setting):
        text, _ = faults("no_event_is_lost", SANDBOX_EVENTS="1000000", SANDBOX_SETTING=setting)
        found = settings(text, r"events (\d+) lost (\d+)").get(setting)
        if not found:
            return cause(text), False
        return f"{found[1]} of {found[0]}", found[1] == 0 and found[0] == 1000000


@line("ground", "signals with fmpl_event_fd and acp_init: taken by the program that blocks them; before: handler in fmpl-event", "all")
def _():
    text, well = faults("signals_come_to_the_program")
    found = re.search(r"threads (\d+) signals (\d+) of (\d+)", text)
    return (f"{found[2]} of {found[3]}, beside {found[1]} threads of the library" if found else cause(text)), bool(found) and well


@line("ground", "a signal each 0.5 ms in 24 waits of 12 kinds, four settings: all end right", "all")
def _():
    text, well = faults("signals_harm_no_wait")
    taken = [int(n) for n in re.findall(r"waits 24 signals (\d+)", text)]
    return f"{sum(taken)} signals in {24 * len(taken)} waits", well and len(taken) == 4
