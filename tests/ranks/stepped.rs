//! Instructions of a piece of a program, counted one by one: a child process traces the calling thread and has it go step by step. So it works
//! where no counter of the processor can be read, as in a virtual machine, and it counts the same on every machine.

use std::io;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What the two processes say to each other. The thread asks to be stopped, and goes on when it is; it counts until it has reached its end.
const IDLE: u32 = 0;
const ASKED: u32 = 1;
const STOPPED: u32 = 2;
const COUNTED: u32 = 3;
const REACHED: u32 = 4;
const REFUSED: u32 = 5;

#[derive(Default)]
struct Shared {
    state: AtomicU32,
    ours: AtomicU64,
    before: AtomicU64,
    foreign: AtomicU64,
}

/// Instructions of a piece of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Those of this program and of the C library on its behalf.
    pub ours: u64,
    /// Those of them before another library was called first: all, if none was.
    pub before: u64,
    /// Those of other libraries that it has called, and of the C library on theirs.
    pub foreign: u64,
}

/// Where code lies.
struct Code {
    program: Vec<Range<u64>>,
    c_library: Vec<Range<u64>>,
}

impl Code {
    fn of_this_process() -> io::Result<Code> {
        let maps = std::fs::read_to_string("/proc/self/maps")?;
        let program = std::fs::read_link("/proc/self/exe")?.to_string_lossy().into_owned();
        let ranges = |is: &dyn Fn(&str) -> bool| -> Vec<Range<u64>> {
            let of_line = |line: &str| {
                let mut words = line.split_whitespace();
                let (range, path) = (words.next()?, words.nth(4)?);
                let (from, to) = range.split_once('-')?;
                let number = |text| u64::from_str_radix(text, 16).ok();
                is(path).then_some(number(from)?..number(to)?)
            };
            maps.lines().filter_map(of_line).collect()
        };
        let of_c = |path: &str| path.contains("/libc.so") || path.contains("/ld-linux") || path == "[vdso]";
        Ok(Code { program: ranges(&|path| path == program), c_library: ranges(&of_c) })
    }
}

/// Counts pieces of the thread that has made it.
pub struct Stepper {
    shared: &'static Shared,
    tracer: libc::pid_t,
    /// Of a piece that does nothing.
    empty: u64,
}

impl Stepper {
    /// An error: there is no tracing here.
    pub fn new() -> io::Result<Stepper> {
        let code = Code::of_this_process()?;
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: new memory, zeroed, which is never unmapped; all bits are valid in it.
        let shared: &'static Shared = unsafe {
            let memory = libc::mmap(null_mut(), size_of::<Shared>(), access, kind, -1, 0);
            if memory == libc::MAP_FAILED {
                return Err(io::Error::last_os_error());
            }
            &*memory.cast()
        };
        // SAFETY: plain calls; the child uses nothing but the system's calls and memory that is there already, and ends by `_exit`.
        let tracer = unsafe {
            let thread = libc::syscall(libc::SYS_gettid) as libc::pid_t;
            match libc::fork() {
                -1 => return Err(io::Error::last_os_error()),
                0 => {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    trace(thread, shared, &code)
                }
                child => {
                    // Where only ancestors may trace; elsewhere nobody minds.
                    libc::prctl(libc::PR_SET_PTRACER, child, 0, 0, 0);
                    child
                }
            }
        };
        let mut stepper = Stepper { shared, tracer, empty: 0 };
        stepper.empty = stepper.count(|| ())?.0.ours;
        Ok(stepper)
    }

    /// Does it, step by step.
    pub fn count<T>(&self, piece: impl FnOnce() -> T) -> io::Result<(Steps, T)> {
        let Shared { state, ours, before, foreign } = self.shared;
        [ours, before, foreign].into_iter().for_each(|counter| counter.store(0, Ordering::Relaxed));
        state.store(ASKED, Ordering::Release);
        loop {
            match state.load(Ordering::Acquire) {
                STOPPED => break,
                REFUSED => return Err(io::Error::other("the system does not let a process trace another")),
                _ => core::hint::spin_loop(),
            }
        }
        state.store(COUNTED, Ordering::Release);
        let done = piece();
        state.store(REACHED, Ordering::Release);
        while state.load(Ordering::Acquire) != IDLE {
            core::hint::spin_loop();
        }
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed).saturating_sub(self.empty);
        let steps = Steps { ours: of(ours), before: of(before), foreign: foreign.load(Ordering::Relaxed) };
        Ok((steps, done))
    }
}

impl Drop for Stepper {
    fn drop(&mut self) {
        // SAFETY: a child of this process that has not been waited for.
        unsafe {
            libc::kill(self.tracer, libc::SIGKILL);
            libc::waitpid(self.tracer, null_mut(), 0);
        }
    }
}

/// The child: waits to be asked, then has the thread go on by one instruction at a time until it has reached its end.
///
/// # Safety
/// In a child that has just been forked.
unsafe fn trace(thread: libc::pid_t, shared: &Shared, code: &Code) -> ! {
    let state = &shared.state;
    // SAFETY: requests that neither read nor write memory of this process.
    let ptrace = |request, data: usize| unsafe { libc::ptrace(request, thread, 0usize, data) };
    let wait = || {
        let mut status = 0;
        // SAFETY: plain call.
        unsafe { libc::waitpid(thread, &mut status, libc::__WALL) };
        status
    };
    let pause = || {
        // SAFETY: plain call.
        unsafe { libc::usleep(50) };
    };
    // SAFETY: the child ends without what a process does at its end, which is the parent's.
    let end = |code| -> ! { unsafe { libc::_exit(code) } };
    loop {
        while state.load(Ordering::Acquire) != ASKED {
            pause();
        }
        if ptrace(libc::PTRACE_SEIZE, 0) != 0 {
            state.store(REFUSED, Ordering::Release);
            end(0);
        }
        ptrace(libc::PTRACE_INTERRUPT, 0);
        wait();
        state.store(STOPPED, Ordering::Release);
        let (mut elsewhere, mut signal) = (false, 0);
        while state.load(Ordering::Acquire) != REACHED {
            ptrace(libc::PTRACE_SINGLESTEP, signal);
            let status = wait();
            if !libc::WIFSTOPPED(status) {
                end(1);
            }
            signal = match libc::WSTOPSIG(status) {
                libc::SIGTRAP => 0,
                other => other as usize,
            };
            if state.load(Ordering::Acquire) == COUNTED {
                let at = next_instruction(thread);
                let lies = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&at));
                elsewhere = !lies(&code.program) && (elsewhere || !lies(&code.c_library));
                let count = if elsewhere { &shared.foreign } else { &shared.ours };
                count.fetch_add(1, Ordering::Relaxed);
                if shared.foreign.load(Ordering::Relaxed) == 0 {
                    shared.before.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        ptrace(libc::PTRACE_DETACH, 0);
        state.store(IDLE, Ordering::Release);
    }
}

/// Where a stopped thread goes on; 0 where that is not known.
fn next_instruction(thread: libc::pid_t) -> u64 {
    #[cfg(target_arch = "x86_64")]
    {
        let at = core::mem::offset_of!(libc::user_regs_struct, rip);
        // SAFETY: reads a word of the registers of a thread that this process has stopped.
        unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, thread, at, 0usize) as u64 }
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = thread;
        0
    }
}
