//! The job in this process: init, calls under way, signals, the end.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use fmpl::base::unused::Unused;
use fmpl::launch::find::How;
use fmpl::p2p::COMM_WORLD;
use fmpl::{Code, comm, p2p};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::comm::Comm;
use crate::error::{About, raise, wrong};
use crate::global;
use crate::group::{Group, change};
use crate::loan::{self, Loan};
use crate::orphans::ORPHANS;
use crate::views;

/// The job; everything in it is changed with the interpreter's lock only.
pub struct Life {
    /// Inits that are not finalized.
    uses: AtomicU32,
    /// Goes up at the end of each job: what belongs to an earlier one is known by it.
    generation: AtomicU64,
    /// Calls under way.
    calls: AtomicU32,
    /// The last finalize, or the process, is at its end: no call begins.
    closing: AtomicBool,
    /// The process is at its end: waits of other threads are to end.
    ending: AtomicBool,
    world: Mutex<Option<Arc<Group>>>,
}

pub static LIFE: Life = Life {
    uses: AtomicU32::new(0),
    generation: AtomicU64::new(1),
    calls: AtomicU32::new(0),
    closing: AtomicBool::new(false),
    ending: AtomicBool::new(false),
    world: Mutex::new(None),
};

/// A call while it lasts. It keeps the token of the interpreter's lock, so it is not dropped without.
pub struct InCall<'py>(PhantomData<Python<'py>>);

impl Drop for InCall<'_> {
    #[inline]
    fn drop(&mut self) {
        change(&LIFE.calls, -1);
    }
}

impl Life {
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Relaxed)
    }

    /// May what belongs to this life still use the library?
    pub fn is_usable(&self, generation: u64) -> bool {
        generation == self.generation() && !self.closing.load(Ordering::Relaxed)
    }

    /// Begins a call of what belongs to this life of the job.
    #[inline]
    pub fn enter<'py>(&self, py: Python<'py>, generation: u64) -> PyResult<InCall<'py>> {
        if !self.is_usable(generation) || IN_HANDLER.get() {
            return Err(refused(py));
        }
        change(&self.calls, 1);
        Ok(InCall(PhantomData))
    }
}

#[cold]
fn refused(py: Python<'_>) -> PyErr {
    let (code, text) = match IN_HANDLER.get() {
        true => (Code::Busy, "a signal handler that runs in the middle of a call cannot call"),
        false => (Code::Init, "the job of this object is over"),
    };
    wrong(py, code, text, About::default())
}

// ---- signals

thread_local! {
    /// A handler of a signal runs in the middle of a wait.
    static IN_HANDLER: Cell<bool> = const { Cell::new(false) };
    /// What a handler has raised in the middle of a wait.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    static LOOKED: Cell<Option<Instant>> = const { Cell::new(None) };
    static IS_MAIN: bool = is_main();
}

/// Whether this is the handler of a signal, in the middle of a wait: what it drops must not call the library.
pub fn in_handler() -> bool {
    IN_HANDLER.get()
}

/// How often a wait looks for signals.
const LOOK: Duration = Duration::from_millis(20);

fn is_main() -> bool {
    // SAFETY: two numbers.
    unsafe { libc::getpid() == libc::gettid() }
}

/// Whether the wait that asks is to end: a handler of a signal has raised, such as that of Ctrl-C, or the process is at its end. Python has
/// signals handled by its main thread, so only that takes the interpreter's lock here.
pub fn interrupted() -> bool {
    if LIFE.ending.load(Ordering::Relaxed) {
        return true;
    }
    if !IS_MAIN.with(|main| *main) || LOOKED.get().is_some_and(|at| at.elapsed() < LOOK) {
        return false;
    }
    IN_HANDLER.set(true);
    let raised = Python::try_attach(|py| py.check_signals()).and_then(Result::err);
    IN_HANDLER.set(false);
    LOOKED.set(Some(Instant::now()));
    let end = raised.is_some();
    if end {
        RAISED.set(raised);
    }
    end
}

/// Makes a call of messages that may wait, without the interpreter's lock. A signal's handler that raises ends it; beside its outcome: what
/// one has raised too late for that.
pub fn detached<R: Send>(
    py: Python<'_>,
    about: About,
    call: impl FnOnce() -> fmpl::Result<R> + Send,
) -> PyResult<(R, Option<PyErr>)> {
    let done = py.detach(|| {
        fmpl::wait::interrupt_by(Some(interrupted));
        call()
    });
    match (done, RAISED.take()) {
        (Ok(done), raised) => Ok((done, raised)),
        (Err(_), Some(raised)) => Err(raised),
        (Err(error), None) => Err(raise(py, &error, about)),
    }
}

/// Makes a call that others rely on: a handler ends nothing of it, and Python has what it raises when the call is over.
pub fn whole<R: Send>(py: Python<'_>, about: About, call: impl FnOnce() -> fmpl::Result<R> + Send) -> PyResult<R> {
    undisturbed(py, call).map_err(|error| raise(py, &error, about))
}

/// The same, with the library's own error.
pub fn undisturbed<R: Send>(py: Python<'_>, call: impl FnOnce() -> fmpl::Result<R> + Send) -> fmpl::Result<R> {
    py.detach(|| {
        fmpl::wait::interrupt_by(None);
        call()
    })
}

/// As [`detached`], of a call whose outcome may be lost.
pub fn wait<R: Send>(py: Python<'_>, about: About, call: impl FnOnce() -> fmpl::Result<R> + Send) -> PyResult<R> {
    let (done, raised) = detached(py, about, call)?;
    raised.map_or(Ok(done), Err)
}

// ---- init

/// This process's part in the job, from init until it is finalized.
///
/// As a context manager it is finalized at the end of the block, unless an exception leaves it: the others may wait for what this
/// rank will never send, so waiting for them would make a hang of the exception.
#[pyclass(frozen, module = "fmpl")]
pub struct Job {
    world: Arc<Group>,
    ended: AtomicBool,
}

/// Joins the job with `count` indices for each peer, 0 to `count - 1`. Started without a launcher the process is a job of one rank.
///
/// May be called again while a job is open: each call is to be finalized.
#[pyfunction]
#[pyo3(signature = (count=64))]
pub fn init(py: Python<'_>, count: i32) -> PyResult<Job> {
    begin(py, || comm::init_raw(count))
}

/// The same with an identifier that one of the ranks has made with `create_id` and the program has passed round.
#[pyfunction]
#[pyo3(signature = (id, rank, size, count=64))]
pub fn init_id(py: Python<'_>, id: &[u8], rank: u32, size: u32, count: i32) -> PyResult<Job> {
    let Ok(id) = id.try_into() else { return Err(PyValueError::new_err("an identifier has 128 bytes")) };
    begin(py, || comm::init_by(How::Id(id, rank, size), count))
}

/// Makes an identifier of a job, for `init_id`. Whoever has it can join the job. The process listens from then on.
#[pyfunction]
pub fn create_id(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let id = whole(py, About::default(), fmpl::Id::create)?;
    Ok(PyBytes::new(py, id.as_bytes()))
}

fn begin(py: Python<'_>, join: impl FnOnce() -> fmpl::Result<()> + Send) -> PyResult<Job> {
    let about = About::default();
    let _in = LIFE.enter(py, LIFE.generation())?;
    whole(py, about, join)?;
    change(&LIFE.uses, 1);
    let mut world = LIFE.world.lock().unwrap_or_else(PoisonError::into_inner);
    let group = match &*world {
        Some(group) => group.clone(),
        None => world.insert(Group::new(COMM_WORLD).map_err(|e| raise(py, &e, about))?).clone(),
    };
    Ok(Job { world: group, ended: AtomicBool::new(false) })
}

/// Whether this process is in a job.
#[pyfunction]
pub fn initialized() -> bool {
    comm::initialized()
}

/// The number of this process's job, which goes up when one ends.
#[pyfunction]
pub fn _generation() -> u64 {
    LIFE.generation()
}

/// The event descriptor of the job.
#[pyfunction]
pub fn _event_fd(py: Python<'_>) -> PyResult<i32> {
    let _in = LIFE.enter(py, LIFE.generation())?;
    whole(py, About::default(), comm::event_fd)
}

/// Seconds of the node's monotonic clock.
#[pyfunction]
pub fn wtime() -> f64 {
    comm::wtime()
}

impl Job {
    pub fn of_world(&self) -> &Arc<Group> {
        &self.world
    }
}

#[pymethods]
impl Job {
    /// The communicator of all ranks.
    #[getter]
    fn world(&self) -> Comm {
        Comm(self.world.clone())
    }

    /// This process's rank in the world.
    #[getter]
    fn rank(&self) -> usize {
        self.world.rank
    }

    /// The number of ranks in the world.
    #[getter]
    fn size(&self) -> usize {
        self.world.size
    }

    /// Leaves the job, if this is its last `Job` in the process. Collective: waits for all ranks, so that all that they will receive is
    /// received. Loans that nobody looks at are returned.
    fn finalize(&self, py: Python<'_>) -> PyResult<()> {
        if self.ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        finalize(py, &|ended| self.ended.store(ended, Ordering::Relaxed))
    }

    /// Ends the job, all its ranks, with this exit code.
    #[pyo3(signature = (code=1))]
    fn abort(&self, code: i32) {
        comm::abort(code)
    }

    /// Memory of `size` bytes to fill and to hand over: see `Loan`.
    fn loan(&self, py: Python<'_>, size: usize) -> PyResult<Loan> {
        let about = self.world.about(None, None);
        let _in = self.world.enter(py)?;
        Loan::lent(py, about, self.world.generation, size)
    }

    /// Sets the spool's size in bytes and the mode of sending, for all communicators that have none of their own.
    fn set_send_buffer(&self, py: Python<'_>, size: usize, mode: &Bound<'_, PyAny>) -> PyResult<()> {
        let (timeout, _in) = (timeout_ms(mode)?, self.world.enter(py)?);
        whole(py, self.world.about(None, None), || p2p::sendbuf_set(None, size, timeout))
    }

    /// A descriptor that becomes readable when a request completes that was begun after this call. Read it empty (8 bytes), then test the
    /// requests.
    fn event_fd(&self, py: Python<'_>) -> PyResult<i32> {
        let _in = self.world.enter(py)?;
        whole(py, self.world.about(None, None), comm::event_fd)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(&self, py: Python<'_>, kind: Thing<'_>, _value: Thing<'_>, _traceback: Thing<'_>) -> PyResult<()> {
        if !kind.is_none() { Ok(()) } else { self.finalize(py) }
    }

    fn __repr__(&self) -> String {
        format!("<fmpl.Job: rank {} of {}>", self.world.rank, self.world.size)
    }
}

/// What Python hands to the end of a `with` block: the kind of the exception that leaves it, or None; the exception; where it comes from.
pub type Thing<'py> = Bound<'py, PyAny>;

/// `"buffered"`, `"synchronous"`, or milliseconds.
pub fn timeout_ms(mode: &Bound<'_, PyAny>) -> PyResult<i32> {
    if let Ok(ms) = mode.extract::<i32>() {
        // Standard is never buffered, which would refuse a message instead of waiting.
        return Ok(ms.max(1));
    }
    match mode.extract::<&str>() {
        Ok("buffered") => Ok(0),
        Ok("synchronous") => Ok(p2p::TIMEOUT_INFINITE),
        _ => Err(PyValueError::new_err("a mode is \"buffered\", \"synchronous\" or a number of milliseconds")),
    }
}

// ---- the end

/// One finalize; `ended` is told when the job is left, or will be by others, and when it is not, after all.
fn finalize(py: Python<'_>, ended: &dyn Fn(bool)) -> PyResult<()> {
    let about = About { rank: comm::comm_rank(COMM_WORLD).ok().map(|r| r as usize), ..About::default() };
    let _in = LIFE.enter(py, LIFE.generation())?;
    if LIFE.uses.load(Ordering::Relaxed) != 1 {
        // Before the interpreter's lock is released: another thread that finalizes now sees that it is the last one.
        change(&LIFE.uses, -1);
        ended(true);
        // SAFETY: not the last one, so nothing ends but this use.
        let done = whole(py, about, || comm::finalize_raw(unsafe { Unused::promised() }));
        if done.is_err() {
            change(&LIFE.uses, 1);
            ended(false);
        }
        return done;
    }
    let (calls, views) = (LIFE.calls.load(Ordering::Relaxed) - 1, views::all());
    if calls + views != 0 {
        let text = format!(
            "finalize while {calls} calls of other threads are under way and {views} views of loans and windows are alive"
        );
        return Err(wrong(py, Code::Busy, &text, about));
    }
    LIFE.closing.store(true, Ordering::Relaxed);
    ended(true);
    let orphans = ORPHANS.end(py, about);
    loan::return_all();
    let closed = global::close_all();
    // SAFETY: no other call is under way, and none begins while `closing`. Requests that are not over keep their memory (`Request::drop`),
    // nobody looks at a loan or a window, and what belongs to this life of the job uses the library no more.
    let done = whole(py, about, || comm::finalize_raw(unsafe { Unused::promised() }));
    *LIFE.world.lock().unwrap_or_else(PoisonError::into_inner) = None;
    LIFE.generation.store(LIFE.generation() + 1, Ordering::Relaxed);
    LIFE.uses.store(0, Ordering::Relaxed);
    LIFE.closing.store(false, Ordering::Relaxed);
    done.and(closed.map_err(|error| raise(py, &error, about))).and(orphans)
}

/// At the end of the process: other threads' calls are ended, and the job is left, if `normal`.
#[pyfunction]
pub fn _leave(py: Python<'_>, normal: bool) -> PyResult<()> {
    if LIFE.uses.load(Ordering::Relaxed) == 0 {
        return Ok(());
    }
    LIFE.ending.store(true, Ordering::Relaxed);
    LIFE.closing.store(true, Ordering::Relaxed);
    let since = Instant::now();
    while LIFE.calls.load(Ordering::Relaxed) != 0 && since.elapsed() < Duration::from_secs(2) {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
    LIFE.ending.store(false, Ordering::Relaxed);
    if !normal {
        return Ok(());
    }
    LIFE.closing.store(false, Ordering::Relaxed);
    let mut done = Ok(());
    while LIFE.uses.load(Ordering::Relaxed) != 0 && done.is_ok() {
        done = finalize(py, &|_| {});
    }
    LIFE.closing.store(true, Ordering::Relaxed);
    done
}
