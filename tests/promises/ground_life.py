"""Deaths at any moment, and peers that are late. The scenes are those of tests/faults, longer."""


@line("ground", "1000 ranks killed at random moments from exec to the end of finalize: the slowest word of it", "1 s, 20 in each stage")
def _():
    text, well = faults("killed_at_any_moment", FMPL_TEST_LONG="1")
    found = re.search(r"(\d+) ranks killed \((.*)\), (\d+) survivors told, (\d+) of them by init; the slowest after ([\d.]+) s", text)
    least = re.search(r"stages (\d+), least deaths in one (\d+)", text)
    if not (found and least):
        return cause(text), False
    told = f"{found[5]} s; {found[3]} survivors told; {found[2]}"
    return told, well and int(found[1]) >= 1000 and int(least[2]) >= 20 and float(found[5]) <= 1


@line("ground", "a death between the opening of first contacts and the end of init; before: the second receive hangs", "told")
def _():
    text, well = faults("a_death_in_init_is_told", FMPL_TEST_LONG="1")
    found = re.search(r"held in init (\d+) times: the second receive is told after ([\d.]+) s at most", text)
    return (f"{found[1]} of {found[1]}, after {found[2]} s" if found else cause(text)), bool(found) and well


@line("ground", "a peer stopped for 5 s, every time-out below 1 s: the job goes on; before: a peer late at first contact is dead for ever", "all")
def _():
    text, well = faults("stopped_for_long", FMPL_TEST_LONG="1")
    found = re.search(r"stopped for ([\d.]+) s in: (.*); every job went on", text)
    return (f"stopped in {found[2]}" if found else cause(text)), bool(found) and well
