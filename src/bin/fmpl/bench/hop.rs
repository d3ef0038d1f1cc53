//! The raw hop: one cache line that two pinned processes write in turn. No message can cross faster.
//!
//! Beside other libraries it is measured by `hop.c`, compiled on the spot, which links nothing of ours; without a compiler, and in
//! runs of FMPL alone, by the loop in this file, which calls nothing of ours.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fmpl::base::system::cpus::CpuSet;

use super::against::compile;
use super::measure::{cores, least, median};

pub const ABOUT: &str =
    "one cache line written in turn by two processes, with nothing of this library: the limit of a short message";

const ROUND_TRIPS: usize = 300;

/// The pair of processes that plays the hop, asleep between measures.
pub struct Hop {
    pair: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    by: &'static str,
}

impl Hop {
    /// No pair: of what goes between nodes a hop within one says nothing.
    pub fn none() -> Hop {
        Hop { pair: None, by: "nothing: between nodes" }
    }

    /// Starts the pair on the first two cores; with one core there is no hop to measure.
    pub fn start(place: &Path, in_c: bool) -> Result<Hop, String> {
        let cores = cores();
        let [a, b] = match cores[..] {
            [a, b, ..] => [a, b],
            _ => return Ok(Hop { pair: None, by: "nothing: one core" }),
        };
        let program = place.join("hop");
        let (mut command, by) = if in_c && compile("cc", include_str!("hop.c"), &program).is_ok() {
            let mut c = Command::new(program);
            c.args([a.to_string(), b.to_string()]);
            (c, "a C program of its own")
        } else {
            let mut c = Command::new(std::env::current_exe().map_err(|e| e.to_string())?);
            c.args([super::PART, "hop", &a.to_string(), &b.to_string()]);
            (c, "a loop in this command")
        };
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|e| format!("raw hop: {e}"))?;
        let (Some(i), Some(o)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("raw hop: no pipes".into());
        };
        Ok(Hop { pair: Some((child, i, BufReader::new(o))), by })
    }

    /// What measures it.
    pub fn by(&self) -> &'static str {
        self.by
    }

    /// Nanoseconds of one hop now.
    pub fn measure(&mut self) -> Result<Option<f64>, String> {
        self.ask(0)
    }

    fn ask(&mut self, payload: u8) -> Result<Option<f64>, String> {
        let Some((_, input, output)) = &mut self.pair else { return Ok(None) };
        let mut line = String::new();
        writeln!(input, "{ROUND_TRIPS} {payload}")
            .and_then(|()| output.read_line(&mut line))
            .map_err(|e| format!("raw hop: {e}"))?;
        line.trim().parse().map(Some).map_err(|_| format!("raw hop: answer {line:?}"))
    }
}

impl Drop for Hop {
    fn drop(&mut self) {
        if let Some((mut child, input, _)) = self.pair.take() {
            drop(input);
            let _ = child.wait();
        }
    }
}

/// `fmpl bench hop`
pub fn show(place: &Path) -> Result<(), String> {
    println!("{:<28} {:>8} {:>8}   ns", "one line, written in turn", "min", "median");
    for (who, in_c) in [("a loop in this command", false), ("a C program of its own", true)] {
        let mut hop = Hop::start(place, in_c)?;
        if hop.pair.is_none() {
            return Err("one core only: there is no hop".into());
        }
        if hop.by != who {
            continue;
        }
        for (what, payload) in [("8 B", 0), ("8 B and 56 B beside it", 1)] {
            let v = (0..101).map(|_| hop.ask(payload)).collect::<Result<Option<Vec<f64>>, _>>()?.unwrap_or_default();
            println!("{:<28} {:>8.1} {:>8.1}   {who}", what, least(&v), median(&v));
        }
    }
    Ok(())
}

#[repr(align(64))]
struct Line([AtomicU64; 8]);

impl Line {
    /// `k` round trips seen from one side; the first side writes odd numbers, the other answers with even ones.
    #[inline(never)]
    fn play(&self, first: bool, k: u64, payload: bool, base: &mut u64) {
        let mut n = *base;
        for _ in 0..k {
            if first {
                self.write(n + 1, payload);
                self.read(n + 2, payload);
            } else {
                self.read(n + 1, payload);
                self.write(n + 2, payload);
            }
            n += 2;
        }
        *base = n;
    }

    #[inline(always)]
    fn write(&self, n: u64, payload: bool) {
        if payload {
            for w in &self.0[1..] {
                w.store(n, Ordering::Relaxed);
            }
        }
        self.0[0].store(n, Ordering::Release);
    }

    #[inline(always)]
    fn read(&self, n: u64, payload: bool) {
        while self.0[0].load(Ordering::Acquire) != n {}
        if payload {
            std::hint::black_box(self.0[1..].iter().map(|w| w.load(Ordering::Relaxed)).fold(0, u64::wrapping_add));
        }
    }
}

fn pin(core: usize) {
    // Unpinned is still a measure, so failure is not fatal.
    let _ = CpuSet::of_cpus([core]).apply();
}

const RUNS: u64 = 5;
const WARM: u64 = 100;

/// The pair itself: the same program as `hop.c`.
pub fn main(a: usize, b: usize) -> Result<(), String> {
    let failed = |what: &str| format!("{what}: {}", std::io::Error::last_os_error());
    // SAFETY: a fresh shared page, zeroed by the system; it lives as long as the process. The fork happens while this process has
    // one thread; the child plays, and leaves by _exit.
    unsafe {
        let page = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        let mut go = [0i32; 2];
        if page == libc::MAP_FAILED || libc::pipe(go.as_mut_ptr()) != 0 {
            return Err(failed("raw hop"));
        }
        let line = &*page.cast::<Line>();
        let mut base = 0;
        let parent = libc::getpid();
        match libc::fork() {
            -1 => return Err(failed("fork")),
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                if libc::getppid() != parent {
                    libc::_exit(0);
                }
                libc::close(go[1]);
                pin(b);
                let mut order = [0u64; 2];
                while libc::read(go[0], order.as_mut_ptr().cast(), 16) == 16 {
                    line.play(false, order[0] * RUNS + WARM, order[1] != 0, &mut base);
                }
                libc::_exit(0);
            }
            _ => {}
        }
        libc::close(go[0]);
        pin(a);
        for text in std::io::stdin().lines() {
            let text = text.map_err(|e| e.to_string())?;
            let mut words = text.split_ascii_whitespace().map(|w| w.parse::<u64>().unwrap_or(0));
            let order = [words.next().unwrap_or(0).max(1), words.next().unwrap_or(0)];
            if libc::write(go[1], order.as_ptr().cast(), 16) != 16 {
                return Err(failed("raw hop"));
            }
            line.play(true, WARM, order[1] != 0, &mut base);
            let mut best = f64::INFINITY;
            for _ in 0..RUNS {
                let t0 = Instant::now();
                line.play(true, order[0], order[1] != 0, &mut base);
                best = best.min(t0.elapsed().as_nanos() as f64 / order[0] as f64 / 2.0);
            }
            println!("{best:.3}");
        }
    }
    Ok(())
}
