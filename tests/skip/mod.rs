//! What a test needs and this machine lacks: it is said, and written where `tests/run` finds it for its summary.

use std::io::Write;

/// Says that the test of this thread is skipped, and why. Where everything is required (`FMPL_TEST_REQUIRE=all`, as in CI) that is a failure.
pub fn skip(why: &str) {
    assert!(std::env::var("FMPL_TEST_REQUIRE").as_deref() != Ok("all"), "required, and not there: {why}");
    note(std::thread::current().name().unwrap_or("a test"), why);
}

/// Says that a test is skipped here, which is no failure anywhere.
pub fn note(test: &str, why: &str) {
    println!("  skipped: {test}: {why}");
    if let Some(path) = std::env::var_os("FMPL_TEST_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        // One write, for several threads write at once.
        let written = file.and_then(|mut file| file.write_all(format!("{test}: {why}\n").as_bytes()));
        written.expect("the list of what is skipped");
    }
}
