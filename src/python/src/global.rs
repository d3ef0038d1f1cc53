//! Global memory: what any rank has registered is read, written and changed atomically by all.

use std::mem::ManuallyDrop;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use fmpl::base::unused::Unused;
use fmpl::rma::{self, AddressKey, Atomic, Fetch, GlobalAddress, Rma};
use fmpl::{Code, comm};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::{About, wrong};
use crate::group::{Group, change};
use crate::life::{InCall, Job, LIFE, Thing, in_handler, whole};
use crate::memory::{Export, Memory};

/// Global memories that are open; changed with the interpreter's lock only.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// Closes all that are open: the end of the job. All ranks do.
pub fn close_all() -> fmpl::Result<()> {
    while OPEN.load(Ordering::Relaxed) != 0 {
        change(&OPEN, -1);
        // SAFETY: the job ends: no call is under way, and what was made from them uses the library no more.
        comm::global_close(unsafe { Unused::promised() })?;
    }
    Ok(())
}

/// What all that belongs to a global memory has of it.
struct Shared {
    world: Arc<Group>,
    closed: AtomicBool,
}

impl Shared {
    fn about(&self) -> About {
        self.world.about(None, None)
    }

    fn enter<'py>(&self, py: Python<'py>) -> PyResult<InCall<'py>> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(wrong(py, Code::Init, "this global memory has been closed", self.about()));
        }
        LIFE.enter(py, self.world.generation)
    }

    /// Makes a call of it; a signal's handler ends nothing of it, for memory is the library's until it is over.
    fn call<R: Send>(&self, py: Python<'_>, call: impl FnOnce(&'static Rma) -> fmpl::Result<R> + Send) -> PyResult<R> {
        let _in = self.enter(py)?;
        whole(py, self.about(), || rma::rma().and_then(call))
    }
}

/// This rank's part in the job's global memory; made by `Job.global_memory`, which all ranks call. An address is an int that names a byte of any
/// rank's registered memory; add bytes to it, send it to others.
///
/// As a context manager it is closed at the end of the block, unless an exception leaves it.
#[pyclass(frozen, module = "fmpl")]
pub struct Global(Arc<Shared>);

/// A buffer that all ranks reach, until it is unregistered or let go: it is held as long.
#[pyclass(frozen, module = "fmpl")]
pub struct Registration {
    global: Arc<Shared>,
    /// Of the library's global memory, of which several that are open here have a part.
    generation: u64,
    key: AddressKey,
    address: u64,
    len: usize,
    export: Mutex<Option<ManuallyDrop<Box<Export>>>>,
}

/// An operation that has begun. It goes on also when this is let go.
#[pyclass(frozen, module = "fmpl")]
pub struct Operation {
    global: Arc<Shared>,
    number: i64,
}

fn at(address: u64) -> GlobalAddress {
    GlobalAddress::from_bits(address)
}

impl Registration {
    fn new(py: Python<'_>, global: &Arc<Shared>, export: Box<Export>, memory: Memory) -> PyResult<Registration> {
        let made = global.call(py, move |rma| {
            let (at, len) = memory.parts();
            // SAFETY: exported for writing until the registration has ended.
            let key = unsafe { rma.register(at, len, 0) }?;
            Ok((rma.generation, key, rma.address_of(key, at)?.bits()))
        });
        let (generation, key, address) = made?;
        let export = Mutex::new(Some(ManuallyDrop::new(export)));
        Ok(Registration { global: global.clone(), generation, key, address, len: memory.len, export })
    }

    /// Ends it; what cannot be taken from the others' reach stays exported for ever.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        let Some(export) = self.export.lock().unwrap_or_else(PoisonError::into_inner).take() else { return Ok(()) };
        let world = &self.global.world;
        // With the last that was open all registrations have ended.
        if LIFE.is_usable(world.generation) && OPEN.load(Ordering::Relaxed) != 0 {
            let _in = LIFE.enter(py, world.generation)?;
            let (generation, key) = (self.generation, self.key);
            whole(py, self.global.about(), move || match rma::rma() {
                Ok(rma) if rma.generation == generation => match rma.unregister(key) {
                    // There is none any more: a reset has ended it.
                    Err(error) if error.code() == Code::Argument => Ok(()),
                    ended => ended,
                },
                _ => Ok(()),
            })?;
        }
        drop(ManuallyDrop::into_inner(export));
        Ok(())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // In a signal's handler it stays until the end of the job.
        if !in_handler() {
            let _ = Python::try_attach(|py| self.end(py));
        }
    }
}

#[pymethods]
impl Registration {
    /// The address of its first byte.
    #[getter]
    fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    #[getter]
    fn nbytes(&self) -> usize {
        self.len
    }

    /// Ends it: returns when no rank uses the memory any more, and the buffer is the program's alone.
    fn unregister(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (_kind, _value, _traceback))]
    fn __exit__(&self, py: Python<'_>, _kind: Thing<'_>, _value: Thing<'_>, _traceback: Thing<'_>) -> PyResult<()> {
        self.end(py)
    }
}

#[pymethods]
impl Operation {
    /// Waits until it is over, and all that this rank has begun before it. The error is the first failure among these of which nobody was told.
    fn wait(&self, py: Python<'_>) -> PyResult<()> {
        let number = self.number;
        self.global.call(py, move |rma| Ok(rma.complete(number)?))
    }

    /// Whether it is over, and all before it.
    fn test(&self, py: Python<'_>) -> PyResult<bool> {
        let number = self.number;
        self.global.call(py, move |rma| Ok(!rma.inquire(number)?))
    }
}

/// Another operation, or "all": what one is begun behind.
fn order(after: Option<&Bound<'_, PyAny>>) -> PyResult<i64> {
    let Some(after) = after.filter(|after| !after.is_none()) else { return Ok(0) };
    if let Ok(operation) = after.cast::<Operation>() {
        return Ok(operation.get().number);
    }
    match after.extract::<&str>() {
        Ok("all") => Ok(rma::ALL),
        _ => Err(PyTypeError::new_err("after: an Operation, \"all\", or None")),
    }
}

impl Global {
    /// An atomic operation of this rank that is waited for; what was there before.
    fn fetch(
        &self,
        py: Python<'_>,
        op: Atomic,
        address: u64,
        value: i128,
        expected: i128,
        nbytes: u8,
    ) -> PyResult<u64> {
        let about = self.0.about();
        if nbytes != 4 && nbytes != 8 {
            return Err(wrong(py, Code::Argument, "words have 4 or 8 bytes", about));
        }
        let bits = |value: i128| {
            let fits = if nbytes == 8 { -(1 << 63)..1 << 64 } else { -(1 << 31)..1 << 32 };
            let text = format!("{value} has no place in a word of {nbytes} bytes");
            let word = if nbytes == 8 { value as u64 } else { u64::from(value as u32) };
            fits.contains(&value).then_some(word).ok_or_else(|| wrong(py, Code::Argument, &text, about))
        };
        let fetch = Fetch { at: at(address), op, wide: nbytes == 8, value: bits(value)?, expected: bits(expected)? };
        self.0.call(py, move |rma| rma.fetch_now(fetch))
    }

    /// A copy between an address and a buffer, which is registered for it alone.
    fn through(&self, py: Python<'_>, buffer: (Box<Export>, Memory), address: u64, reads: bool) -> PyResult<()> {
        let (export, memory) = buffer;
        if memory.len == 0 {
            return Ok(());
        }
        let here = Registration::new(py, &self.0, export, memory.whole(py)?)?;
        let (own, len) = (at(here.address), memory.len);
        let (to, from) = if reads { (own, at(address)) } else { (at(address), own) };
        self.0.call(py, move |rma| {
            let number = rma.copy::<true>(to, from, len, 0)?;
            Ok(rma.complete(number)?)
        })?;
        here.end(py)
    }
}

#[pymethods]
impl Global {
    /// This rank's number in global addresses.
    #[getter]
    fn rank(&self, py: Python<'_>) -> PyResult<u32> {
        self.0.call(py, |rma| Ok(rma.rank()))
    }

    /// The number of ranks.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u32> {
        self.0.call(py, |rma| Ok(rma.size()))
    }

    /// Waits until all ranks have called it. Operations need not be over.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, |_| rma::sync())
    }

    /// The address of a rank's starter memory, by which ranks tell each other other addresses: zeros at first, 10 KiB (`FMPL_RMA_STARTER`).
    fn starter(&self, py: Python<'_>, rank: u32) -> PyResult<u64> {
        self.0.call(py, move |rma| Ok(rma.starter(rank)?.bits()))
    }

    /// Makes a buffer reachable by all ranks, who then write into it at any time: `Registration.address`. It must be contiguous and writable.
    fn register(&self, py: Python<'_>, buf: &Bound<'_, PyAny>) -> PyResult<Registration> {
        let mut export = Box::new(Export::new());
        let memory = export.write(buf)?.whole(py)?;
        Registration::new(py, &self.0, export, memory)
    }

    /// The rank whose memory an address names.
    fn rank_of(&self, py: Python<'_>, address: u64) -> PyResult<u32> {
        self.0.call(py, move |rma| rma.rank_of(at(address)))
    }

    /// The colour of an address, a part of it that makes no difference here.
    fn colour_of(&self, py: Python<'_>, address: u64) -> PyResult<u32> {
        self.0.call(py, move |rma| rma.rank_of(at(address)).map(|_| rma.split().colour(at(address))))
    }

    /// How many colours there are.
    #[getter]
    fn colours(&self) -> u32 {
        1 << rma::address::COLOUR_BITS
    }

    /// Begins to copy between any two addresses, of whatever ranks. It starts when `after` and all that this rank has begun before that are over: an
    /// `Operation`, "all", or None (at once).
    #[pyo3(signature = (dst, src, nbytes, after=None))]
    fn copy(
        &self,
        py: Python<'_>,
        dst: u64,
        src: u64,
        nbytes: usize,
        after: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Operation> {
        let order = order(after)?;
        let number = self.0.call(py, move |rma| rma.copy::<true>(at(dst), at(src), nbytes, order))?;
        Ok(Operation { global: self.0.clone(), number })
    }

    /// Copies from an address into a buffer, and waits for it. The buffer is registered for that: memory that is used often is better registered once,
    /// and copied by `copy`.
    fn read(&self, py: Python<'_>, address: u64, buf: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut export = Box::new(Export::new());
        let memory = export.write(buf)?;
        self.through(py, (export, memory), address, true)
    }

    /// Copies a buffer to an address, and waits until it is there.
    fn write(&self, py: Python<'_>, address: u64, buf: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut export = Box::new(Export::new());
        let memory = export.read(buf)?;
        self.through(py, (export, memory), address, false)
    }

    /// Replaces a word of `nbytes` bytes, 4 or 8, of any rank by another value; what was there before, as an unsigned number.
    #[pyo3(signature = (address, value, nbytes=8))]
    fn swap(&self, py: Python<'_>, address: u64, value: i128, nbytes: u8) -> PyResult<u64> {
        self.fetch(py, Atomic::Swap, address, value, 0, nbytes)
    }

    /// Replaces a word by `value` if it is `expected`; what was there before.
    #[pyo3(signature = (address, expected, value, nbytes=8))]
    fn compare_swap(&self, py: Python<'_>, address: u64, expected: i128, value: i128, nbytes: u8) -> PyResult<u64> {
        self.fetch(py, Atomic::Cas, address, value, expected, nbytes)
    }

    /// Adds to a word, going round; what was there before.
    #[pyo3(signature = (address, value, nbytes=8))]
    fn fetch_add(&self, py: Python<'_>, address: u64, value: i128, nbytes: u8) -> PyResult<u64> {
        self.fetch(py, Atomic::Add, address, value, 0, nbytes)
    }

    /// Exclusive or of a word with a value; what was there before.
    #[pyo3(signature = (address, value, nbytes=8))]
    fn fetch_xor(&self, py: Python<'_>, address: u64, value: i128, nbytes: u8) -> PyResult<u64> {
        self.fetch(py, Atomic::Xor, address, value, 0, nbytes)
    }

    /// Or of a word with a value; what was there before.
    #[pyo3(signature = (address, value, nbytes=8))]
    fn fetch_or(&self, py: Python<'_>, address: u64, value: i128, nbytes: u8) -> PyResult<u64> {
        self.fetch(py, Atomic::Or, address, value, 0, nbytes)
    }

    /// And of a word with a value; what was there before.
    #[pyo3(signature = (address, value, nbytes=8))]
    fn fetch_and(&self, py: Python<'_>, address: u64, value: i128, nbytes: u8) -> PyResult<u64> {
        self.fetch(py, Atomic::And, address, value, 0, nbytes)
    }

    /// Waits until all operations of this rank are over.
    fn complete(&self, py: Python<'_>) -> PyResult<()> {
        self.0.call(py, |rma| Ok(rma.complete(rma::ALL)?))
    }

    /// Begins anew with another rank, another one for each; all ranks call it. All registrations end, and starter memory is zero. (The ranks of
    /// communicators stay.) An error at all ranks, which keep theirs, when the numbers are not each once.
    fn reset(&self, py: Python<'_>, rank: i32) -> PyResult<()> {
        self.0.call(py, move |_| rma::reset(rank))
    }

    /// Ends the whole job, every rank of it, with a message on standard error.
    fn abort(&self, why: &str) {
        fmpl::base::error::say(&format!("rank {} aborts the job: {why}", self.0.world.rank));
        comm::abort(1)
    }

    /// Completes this rank's operations and leaves; all ranks call it. All registrations end. What is open when the job ends is closed by that.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.0.closed.load(Ordering::Relaxed) || !LIFE.is_usable(self.0.world.generation) {
            return Ok(());
        }
        let _in = LIFE.enter(py, self.0.world.generation)?;
        self.0.closed.store(true, Ordering::Relaxed);
        change(&OPEN, -1);
        // SAFETY: nothing of this global memory uses the library any more; others that are open have the library's count.
        whole(py, self.0.about(), || comm::global_close(unsafe { Unused::promised() }))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (kind, _value, _traceback))]
    fn __exit__(&self, py: Python<'_>, kind: Thing<'_>, _value: Thing<'_>, _traceback: Thing<'_>) -> PyResult<()> {
        if !kind.is_none() { Ok(()) } else { self.close(py) }
    }
}

#[pymethods]
impl Job {
    /// This rank's part in the job's global memory; all ranks call it.
    fn global_memory(&self, py: Python<'_>) -> PyResult<Global> {
        let world = self.of_world();
        let _in = LIFE.enter(py, world.generation)?;
        whole(py, world.about(None, None), comm::global_open)?;
        change(&OPEN, 1);
        Ok(Global(Arc::new(Shared { world: world.clone(), closed: AtomicBool::new(false) })))
    }

    /// All ranks of the world call it: those with equal keys form a communicator; a negative key takes no part and gets None.
    fn create(&self, py: Python<'_>, key: i32) -> PyResult<Option<crate::comm::Comm>> {
        crate::comm::Comm(self.of_world().clone()).made(py, || comm::comm_create(key))
    }

    /// Moves on what this process has to do for others: sends that wait, messages of any source. Every call of the library does.
    fn progress(&self, py: Python<'_>) -> PyResult<()> {
        let world = self.of_world();
        let _in = world.enter(py)?;
        whole(py, world.about(None, None), comm::progress)
    }

    /// One of this process's counters: see `Counter`.
    fn counter(&self, py: Python<'_>, which: i32) -> PyResult<u64> {
        let world = self.of_world();
        let _in = world.enter(py)?;
        whole(py, world.about(None, None), || comm::counter(which))
    }
}
