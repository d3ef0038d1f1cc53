//! The rank's side of PMIx, as `srun --mpi=pmix`, Open MPI's `mpirun` and `prterun` serve it: the library `libpmix.so.2`, loaded at run time,
//! speaks to a server on the node.
//!
//! A value is put under its key and the rank of whoever puts it. A fence brings the values of all ranks to all nodes: a server that was
//! asked for a value of another node before does not ask there again, so what is put later would never be found. And nobody waits
//! for a value that was not put: everything is on the node by then.
//!
//! PMIx counts how often a process has called its init. So an MPI in the same process goes on when this library has left, and the other
//! way round. All its functions may be called by several threads.

#[doc(hidden)]
pub mod ffi;

use super::{Store, beside, mpi};
use crate::base::error::{Code, Error, Result, error};
use crate::base::library::text;
use ffi::{Data, Info, Library, Proc, Status, Value};
use std::ffi::{CStr, CString, c_char};
use std::ptr;

/// Before every value.
const MARK: u8 = b'F';

/// A process that has called PMIx's init, and not its finalize.
pub(crate) struct Client {
    calls: &'static Library,
    me: Proc,
    size: u32,
}

/// What a value has been.
enum Found {
    Number(u32),
    Bytes(Vec<u8>),
    Nothing,
}

/// Whether what started this process says that it has a PMIx server.
pub(crate) fn is_offered(var: &impl Fn(&str) -> Option<String>) -> bool {
    var("PMIX_NAMESPACE").is_some() && var("PMIX_RANK").is_some()
}

impl Client {
    /// Says hello to the server.
    pub(crate) fn join(path: Option<&str>) -> Result<Client> {
        let bad = |text: String| Error::new(Code::Launch, text);
        let named = path.map(|p| CString::new(p).map_err(|_| bad("FMPL_PMIX has a NUL in it".into()))).transpose()?;
        let names: Vec<&CStr> = match &named {
            Some(name) => vec![name],
            None => vec![c"libpmix.so.2", c"libpmix.so"],
        };
        let calls = ffi::library(&names).map_err(|why| {
            bad(format!(
                "what started this process speaks PMIx (PMIX_NAMESPACE is set), and its library cannot be loaded: {why}; install it \
                 (Debian: libpmix2), or set FMPL_PMIX to the path of the launcher's own libpmix.so.2"
            ))
        })?;
        let mut me = Proc { nspace: [0; 256], rank: 0 };
        // SAFETY: room for the answer; no wishes.
        let status = unsafe { (calls.init)(&mut me, ptr::null(), 0) };
        let mut client = Client { calls, me, size: 0 };
        if status != ffi::SUCCESS {
            let what = "PMIx: the server that PMIX_SERVER_URI names cannot be reached. Was this program started by a rank of a job \
                        instead of its launcher? Then unset PMIX_NAMESPACE to run it alone";
            return Err(bad(format!("{what} ({})", client.text(status))));
        }
        let job = Proc { rank: ffi::WILDCARD, ..me };
        match client.fetch(&job, ffi::JOB_SIZE, &[]) {
            Ok(Found::Number(size)) if me.rank < size => client.size = size,
            Ok(found) => {
                let said = if let Found::Number(size) = found { size.to_string() } else { "nothing".into() };
                let text = format!("PMIx: {} is rank {} of a job of {said} ranks", client.job(), me.rank);
                let _ = client.leave();
                return Err(bad(text));
            }
            Err(status) => {
                let text = format!("PMIx: the size of job {} cannot be had ({})", client.job(), client.text(status));
                let _ = client.leave();
                return Err(bad(text));
            }
        }
        Ok(client)
    }

    pub(crate) fn rank(&self) -> u32 {
        self.me.rank
    }

    pub(crate) fn size(&self) -> u32 {
        self.size
    }

    /// The name that the launcher has given the job.
    pub(crate) fn job(&self) -> String {
        let bytes = self.me.nspace.map(|c| c as u8);
        CStr::from_bytes_until_nul(&bytes).map_or_else(|_| "?".into(), |name| name.to_string_lossy().into_owned())
    }

    fn leave(&self) -> Result<()> {
        self.said(leave(self.calls), || "leaving the job".into())
    }

    /// What ends the job, for a thread that cannot wait for the others.
    pub(crate) fn ender(&self) -> Ender {
        Ender(self.calls)
    }

    /// A value.
    fn fetch(&self, of: &Proc, key: &CStr, wishes: &[Info]) -> std::result::Result<Found, Status> {
        let mut value: *mut Value = ptr::null_mut();
        // SAFETY: a process, a name, so many wishes, and room for the address of the answer.
        let status = unsafe { (self.calls.get)(of, key.as_ptr(), wishes.as_ptr(), wishes.len(), &mut value) };
        if status != ffi::SUCCESS || value.is_null() {
            return Err(if status == ffi::SUCCESS { ffi::NOT_FOUND } else { status });
        }
        // SAFETY: the call has stored the address of a value that is now ours, and so are its bytes if it has any: PMIx takes both from
        // malloc, and gives them away. Nothing of them is kept.
        unsafe {
            let Value { kind, data } = *value;
            libc::free(value.cast());
            if kind != ffi::BYTE_OBJECT {
                return Ok(if kind == ffi::UINT32 { Found::Number(data.first as u32) } else { Found::Nothing });
            }
            let at = data.first as *mut u8;
            let bytes = if data.second > 0 { std::slice::from_raw_parts(at, data.second).to_vec() } else { Vec::new() };
            libc::free(at.cast());
            Ok(Found::Bytes(bytes))
        }
    }

    fn name(&self, key: &str) -> Result<CString> {
        let sound = !key.is_empty() && key.len() < 512;
        CString::new(key).ok().filter(|_| sound).ok_or_else(|| error!(Code::Argument, "{key:?} cannot be a key"))
    }

    fn said(&self, status: Status, doing: impl FnOnce() -> String) -> Result<()> {
        if status == ffi::SUCCESS {
            return Ok(());
        }
        Err(error!(Code::Launch, "PMIx: rank {}: {}: {}", self.rank(), doing(), self.text(status)))
    }

    fn text(&self, status: Status) -> String {
        // SAFETY: any number may be asked for; the answer is a constant that ends with NUL, or null.
        let text = unsafe { text((self.calls.error_string)(status)) };
        text.map_or_else(|| status.to_string(), |text| format!("{text} ({status})"))
    }
}

impl Store for Client {
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let name = self.name(key)?;
        // Never nothing: servers differ in what they make of no bytes.
        let value = [&[MARK], value].concat();
        let data = Data { first: value.as_ptr() as usize, second: value.len(), third: 0 };
        let mut whole = Value { kind: ffi::BYTE_OBJECT, data };
        // SAFETY: the value and its bytes last until the call has copied them; it writes to neither.
        let status = unsafe { (self.calls.put)(ffi::GLOBAL, name.as_ptr(), &mut whole) };
        self.said(status, || format!("putting {} bytes under {key}", value.len() - 1))
    }

    fn fence(&mut self) -> Result<()> {
        let status = (self.calls.commit)();
        self.said(status, || "handing over what was put".into())?;
        let collect = wish(ffi::COLLECT_DATA);
        // SAFETY: one wish; no list of processes, which stands for all of the job.
        let status = unsafe { (self.calls.fence)(ptr::null(), 0, &collect, 1) };
        match status {
            ffi::SUCCESS => Ok(()),
            _ => Err(error!(
                Code::Peer,
                "rank {}: the ranks of job {} cannot meet at its PMIx server: {}",
                self.rank(),
                self.job(),
                self.text(status)
            )),
        }
    }

    fn get(&mut self, from: u32, key: &str) -> Result<Vec<u8>> {
        let bad = |text: String| Error::new(Code::Launch, text);
        let owner = Proc { rank: from, ..self.me };
        let name = self.name(key)?;
        match self.fetch(&owner, &name, &[wish(ffi::IMMEDIATE)]) {
            Ok(Found::Bytes(bytes)) if bytes.first() == Some(&MARK) => Ok(bytes[1..].to_vec()),
            Ok(_) => Err(bad(format!("the value of rank {from} under {key} is not one that FMPL has put"))),
            Err(ffi::NOT_FOUND) => {
                Err(bad(format!("rank {from} has not put a value under the key {key} before the last fence")))
            }
            Err(status) => {
                Err(bad(format!("PMIx: asking for the value of rank {from} under {key}: {}", self.text(status))))
            }
        }
    }

    fn finalize(&mut self) -> Result<bool> {
        if mpi::find().is_some_and(|mpi| !mpi.was_initialized()) {
            // Who leaves is not let in again. An MPI that comes later finds the server as it wants it.
            let calls = self.calls;
            beside::at_the_end(move || {
                leave(calls);
            });
            return Ok(false);
        }
        self.leave().map(|()| false)
    }
}

/// The counterpart of the init in [`Client::join`].
fn leave(calls: &Library) -> Status {
    // SAFETY: takes nothing.
    unsafe { (calls.finalize)(ptr::null(), 0) }
}

/// See [`Client::ender`].
pub(crate) struct Ender(&'static Library);

impl Ender {
    /// Asks the launcher to end the whole job with this exit code.
    pub(crate) fn abort(&self, code: i32) {
        // SAFETY: a text that ends with NUL; no list of processes, which stands for all of the job. Any thread may call it.
        unsafe { (self.0.abort)(code, c"fmpl_abort".as_ptr(), ptr::null(), 0) };
    }
}

/// A wish that is true.
fn wish(name: &CStr) -> Info {
    let mut key: [c_char; 512] = [0; 512];
    for (to, from) in key.iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
    Info { key, flags: 0, value: Value { kind: ffi::BOOL, data: Data { first: 1, ..Data::default() } } }
}
