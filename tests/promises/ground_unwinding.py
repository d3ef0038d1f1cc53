# Lines of `tests/shows ground`: what leaves a function that the library calls stays with its call, and a request is not lost by a look.
# Executed by tests/shows, whose names it uses.


def again(test, names, times, cargo=("cargo",), **env):
    """Runs named tests of one test program so often; (how many runs were well, what the first that was not said)."""
    command = [*cargo, "test", "--locked", "--test", test]
    env = tests_env(RUST_BACKTRACE="0", **env)
    built = subprocess.run([*command, "--no-run"], cwd=ROOT, env=env, capture_output=True, text=True)
    if built.returncode:
        raise Missing(built.stderr[-300:])
    well, why = 0, ""
    for _ in range(times):
        done = subprocess.run([*command, "--", "--exact", *names], cwd=ROOT, env=env, capture_output=True, text=True)
        passed = done.returncode == 0 and f"{len(names)} passed" in done.stdout
        well += passed
        if not passed and not why:
            why = ": " + cause(done.stdout + done.stderr)
    return f"{well} of {times} runs well{why}", well == times


OF_ANOTHER = "unwinding::a_panic_does_not_leave_the_receive_of_another_thread"
ALONE = "unwinding::a_pending_call_is_left_by_its_own_panic"
LOOKED_AT = "threads::a_request_is_not_lost_by_a_look_of_another_thread"


@line("ground", "panic_in_reduction: before, it left another thread's receive, and 65536 words of free memory were written", "none")
def _():
    return again("rust_api", [OF_ANOTHER], 20)


@line("ground", "panic_alone: before, a panic of a pending call aborted; 60 endings of such a call a run", "unwinds")
def _():
    return again("rust_api", [ALONE, "unwinding::what_a_function_owns_may_panic_when_it_goes"], 10)


@line("ground", "probe_beside_receive: before, Busy for ever after the first of them; 1500 requests beside a look a run", "none lost")
def _():
    return again("rust_api", [LOOKED_AT], 20)


@line("ground", "a panic or a look: the same three under AddressSanitizer", "no report")
def _():
    if shutil.which("rustup") is None or subprocess.run(["cargo", "+nightly", "--version"], capture_output=True).returncode:
        raise Missing("no nightly toolchain")
    host = subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout.split("host: ")[1].split()[0]
    return again("rust_api", [OF_ANOTHER, ALONE, LOOKED_AT], 3, ("cargo", "+nightly"), CARGO_BUILD_TARGET=host,
                 CARGO_TARGET_DIR=str(TARGET / "asan"), RUSTFLAGS="-Zsanitizer=address",
                 ASAN_OPTIONS="detect_leaks=0:abort_on_error=1")


@line("ground", "a panic of a function, its call alone, under Miri (the ranks' processes are beyond it)", "no report")
def _():
    if subprocess.run(["cargo", "+nightly", "miri", "--version"], capture_output=True).returncode:
        raise Missing("no Miri")
    done = subprocess.run(["cargo", "+nightly", "miri", "test", "--locked", "--no-default-features", "--lib", "--",
                           "base::unwinding", "a_panic_of_a_function_is_its_outcome"], cwd=ROOT, capture_output=True, text=True,
                          env=tests_env(MIRIFLAGS="-Zmiri-disable-isolation", CARGO_TARGET_DIR=str(TARGET / "miri")))
    well = done.returncode == 0 and "2 passed" in done.stdout
    return "2 of 2 tests" if well else cause(done.stdout + done.stderr), well


@line("ground", "a function that panics, by every way and on several nodes: the others are told by name", "all")
def _():
    env = tests_env()
    done = subprocess.run(["cargo", "test", "--locked", "--test", "collective", "--", "a_function_that_panics"], cwd=ROOT, env=env,
                          capture_output=True, text=True)
    return "13 jobs" if done.returncode == 0 else cause(done.stdout), done.returncode == 0


@line("ground", "throw_in_reduction (C++): before, an end without a word of ours; now rank and function are named", "4 of 4 ways")
def _():
    if shutil.which("g++") is None:
        raise Missing("no g++")
    text, well = again("interface", ["a_function_that_throws_ends_its_process_with_a_message"], 3)
    return text.replace("runs", "runs of 4 ways"), well
