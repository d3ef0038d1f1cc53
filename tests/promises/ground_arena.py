"""The collective calls: lines taken over with every payload compared, lengths that differ. Their models: ground_models.py."""


def collective(test, seconds):
    command = ["cargo", "test", "--locked", "--test", "collective", "--", test]
    done = subprocess.run(command, cwd=ROOT, env=tests_env(), capture_output=True, text=True, timeout=seconds)
    return cause(done.stdout), f"test {test} ... ok" in done.stdout and done.returncode == 0


@line("ground", "lines taken over, on and off: 10 collective calls, message rings and rings of any source, 2 to 4 ranks: wrong payloads", "0")
def _():
    text, holds = collective("lines_taken_over_keep_every_payload", 1800)
    return "0" if holds else text, holds


@line("ground", "collective calls with different lengths: 9 calls, 16 pairs of lengths, 2 and 3 ranks: told, and the job goes on", "all")
def _():
    text, holds = collective("different_lengths_are_an_error_that_names_them", 1800)
    return "all" if holds else text, holds
