"""A damaged peer takes nobody with it. The scenes are those of tests/damage, with more seeds."""


def damage(test, **env):
    """What a test says, and whether it holds; built as tests are: arithmetic that overflows is seen, too."""
    return said(test_program("damage", profile="test"), test, **env)


AIMED = {
    "a posting's address and capacity; before: written where the peer's word said": "the_word_of_a_posting",
    "a chain's length (long) and link; before: both read beyond the spool, a crash": "the_words_of_a_chain",
    "any_slots = 3 and others in a region's header; before: abort": "the_shape_of_a_ring",
}

for title, test in AIMED.items():

    @line("ground", f"damaged: {title}", "an error that names the peer")
    def _(test=test):
        text, well = damage(test)
        return "so it is" if well else cause(text), well


@line("ground", "damaged: 10 000 seeds of scribbling over all kinds of records, 2 to 4 ranks, ten ways: seeds that failed", "0, waits <= 2 s")
def _():
    text, well = damage("scribbled", DAMAGE_SEEDS=os.environ.get("DAMAGE_SEEDS", "0..10000"))
    found = re.search(r"(\d+) seeds, (\d+) failed, longest wait (\d+) ms", text)
    if not found:
        return cause(text), False
    return f"{found[2]} of {found[1]}, longest wait {found[3]} ms", well and found[2] == "0" and int(found[3]) <= 2000
