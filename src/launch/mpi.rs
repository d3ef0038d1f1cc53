//! An MPI in the same process: whether there is one, what it is at, and a way to all its ranks.
//!
//! Its functions are looked up by name, wherever the process has them. What a communicator is differs: with MPICH and its kin a number, with
//! Open MPI the address of a variable of the library, with the standard ABI of MPI 5 (`libmpi_abi`) a number that is passed as an address.

#![expect(clippy::missing_transmute_annotations, reason = "the field that a function is for has its type")]

use crate::base::error::{Code, Error, Result};
use crate::base::symbols::{self, Library};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The MPI that this process has loaded.
pub(crate) struct Mpi {
    initialized: unsafe extern "C" fn(*mut c_int) -> c_int,
    finalized: unsafe extern "C" fn(*mut c_int) -> c_int,
    calls: Calls,
    sessions: Option<Sessions>,
}

/// Open MPI 5's: a way to its world before MPI_Init. It takes a PMIx that somebody has initialised for its own, and does not ask it who it is.
struct Sessions {
    init: unsafe extern "C" fn(usize, usize, *mut usize) -> c_int,
    finalize: unsafe extern "C" fn(*mut usize) -> c_int,
    group: unsafe extern "C" fn(usize, *const c_char, *mut usize) -> c_int,
    free_group: unsafe extern "C" fn(*mut usize) -> c_int,
    communicator: unsafe extern "C" fn(usize, *const c_char, usize, usize, *mut usize) -> c_int,
    free_communicator: unsafe extern "C" fn(*mut usize) -> c_int,
    no_info: usize,
    errors_return: usize,
}

enum Calls {
    Number(Of<c_int>),
    Address(Of<usize>),
}

/// Functions that take a communicator of this type, and the world, and bytes.
struct Of<H> {
    rank: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    size: unsafe extern "C" fn(H, *mut c_int) -> c_int,
    broadcast: unsafe extern "C" fn(*mut c_void, c_int, H, c_int, H) -> c_int,
    abort: unsafe extern "C" fn(H, c_int) -> c_int,
    world: H,
    bytes: H,
}

/// Libraries that the dynamic linker may have for the process without their names' being known to all of it, as in Python.
const NAMES: [&CStr; 6] =
    [c"libmpi.so.40", c"libmpi.so.12", c"libmpich.so.12", c"libmpi_abi.so.1", c"libmpi_abi.so.0", c"libmpi.so.20"];

/// The MPI, if one is loaded. One that is loaded later is found then.
pub(crate) fn find() -> Option<&'static Mpi> {
    static FOUND: OnceLock<Mpi> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Some(found);
    }
    let all = std::iter::once(Library::EVERYWHERE).chain(NAMES.into_iter().filter_map(Library::loaded));
    let found = all.into_iter().find_map(Mpi::of)?;
    Some(FOUND.get_or_init(|| found))
}

/// The one that has been initialised and not finalised.
pub(crate) fn active() -> Option<&'static Mpi> {
    find().filter(|mpi| mpi.is_active())
}

/// Declares what is looked up: the address of a function, as the type of the field that it is for.
macro_rules! function {
    ($library:expr, $name:literal) => {{
        let address = $library.symbol($name).ok()?;
        // SAFETY: MPI's function of this name has the type of the field.
        unsafe { std::mem::transmute::<*mut c_void, _>(address) }
    }};
}

impl Mpi {
    fn of(library: Library) -> Option<Mpi> {
        let variable = |name: &CStr| library.symbol(name).ok().map(|p| p as usize);
        let calls = match (variable(c"ompi_mpi_comm_world"), variable(c"ompi_mpi_byte")) {
            (Some(world), Some(bytes)) => Calls::Address(Of::find(library, world, bytes)?),
            _ => match kind(library)? {
                Kind::Mpich => Calls::Number(Of::find(library, 0x4400_0000, 0x4c00_010d)?),
                Kind::Abi => Calls::Address(Of::find(library, 0x101, 0x247)?),
            },
        };
        let sessions = variable(c"ompi_mpi_info_null").zip(variable(c"ompi_mpi_errors_return"));
        Some(Mpi {
            initialized: function!(library, c"MPI_Initialized"),
            finalized: function!(library, c"MPI_Finalized"),
            calls,
            sessions: sessions.and_then(|(no_info, errors_return)| Sessions::find(library, no_info, errors_return)),
        })
    }

    /// Is its world to be had though it is not initialised?
    pub(crate) fn has_sessions(&self) -> bool {
        self.sessions.is_some()
    }

    /// Does this with rank and size of the world of a session, and with what brings rank 0's bytes to all; collective. The session stays to the
    /// end of the process: with the last one, and without MPI_Init, MPI could not be initialised any more.
    pub(crate) fn in_session<T>(
        &self,
        work: impl FnOnce(u32, u32, &dyn Fn(&mut [u8]) -> Result<()>) -> Result<T>,
    ) -> Result<T> {
        static SESSION: Mutex<Option<usize>> = Mutex::new(None);
        let (Some(s), Calls::Address(of)) = (&self.sessions, &self.calls) else {
            return Err(Error::new(Code::Launch, "this MPI has no sessions"));
        };
        let said = |what: &str, code: c_int| match code {
            0 => Ok(()),
            _ => Err(Error::new(Code::Launch, format!("{what} has failed (error {code})"))),
        };
        let mut kept = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match *kept {
            Some(session) => session,
            None => {
                let mut session = 0;
                // SAFETY: no information, errors are returned, room for the session.
                said("MPI_Session_init", unsafe { (s.init)(s.no_info, s.errors_return, &mut session) })?;
                let (finalize, mut last) = (s.finalize, session);
                super::beside::at_the_end(move || {
                    // SAFETY: the session from above, of which everything is freed.
                    unsafe { finalize(&mut last) };
                });
                *kept.insert(session)
            }
        };
        let (mut group, mut world) = (0, 0);
        // SAFETY: a session, the name of a set of it, and room for the group; a name of ours, no information, and room for the communicator.
        unsafe {
            said("MPI_Group_from_session_pset", (s.group)(session, c"mpi://WORLD".as_ptr(), &mut group))?;
            let made = (s.communicator)(group, c"fmpl".as_ptr(), s.no_info, s.errors_return, &mut world);
            (s.free_group)(&mut group);
            said("MPI_Comm_create_from_group", made)?;
        }
        let (mut rank, mut size) = (-1, -1);
        // SAFETY: the communicator from above; room for the answers.
        unsafe {
            (of.rank)(world, &mut rank);
            (of.size)(world, &mut size);
        }
        let broadcast = |all: &mut [u8]| {
            // SAFETY: so many bytes that may be written.
            said("MPI_Bcast", unsafe {
                (of.broadcast)(all.as_mut_ptr().cast(), all.len() as c_int, of.bytes, 0, world)
            })
        };
        let done = match (u32::try_from(rank), u32::try_from(size)) {
            (Ok(rank), Ok(size)) if rank < size => work(rank, size, &broadcast),
            _ => Err(Error::new(Code::Launch, format!("MPI says that this is rank {rank} of {size} of a session"))),
        };
        // SAFETY: made above; nobody uses it any more.
        unsafe { (s.free_communicator)(&mut world) };
        done
    }

    /// Does it speak PMI-1 to its launcher?
    pub(crate) fn speaks_pmi(&self) -> bool {
        match &self.calls {
            Calls::Number(_) => true,
            Calls::Address(of) => of.world == 0x101,
        }
    }

    /// Has it been initialised, if perhaps finalised since?
    pub(crate) fn was_initialized(&self) -> bool {
        let mut flag = 0;
        // SAFETY: may be called at any time, by any thread.
        unsafe { (self.initialized)(&mut flag) == 0 && flag != 0 }
    }

    pub(crate) fn was_finalized(&self) -> bool {
        let mut flag = 0;
        // SAFETY: may be called at any time, by any thread.
        unsafe { (self.finalized)(&mut flag) == 0 && flag != 0 }
    }

    fn is_active(&self) -> bool {
        self.was_initialized() && !self.was_finalized()
    }

    /// This process's rank in the world, and its size.
    pub(crate) fn place(&self) -> Result<(u32, u32)> {
        let (mut rank, mut size) = (-1, -1);
        // SAFETY: it is active; room for the answers.
        let codes = unsafe {
            match &self.calls {
                Calls::Number(of) => [(of.rank)(of.world, &mut rank), (of.size)(of.world, &mut size)],
                Calls::Address(of) => [(of.rank)(of.world, &mut rank), (of.size)(of.world, &mut size)],
            }
        };
        match (codes, u32::try_from(rank), u32::try_from(size)) {
            ([0, 0], Ok(rank), Ok(size)) if rank < size => Ok((rank, size)),
            _ => Err(Error::new(Code::Launch, format!("MPI says that this is rank {rank} of {size} of its world"))),
        }
    }

    /// Brings rank 0's bytes to all ranks of its world; collective.
    pub(crate) fn broadcast(&self, all: &mut [u8]) -> Result<()> {
        let (at, n) = (all.as_mut_ptr().cast(), all.len() as c_int);
        // SAFETY: it is active; so many bytes that may be written.
        let code = unsafe {
            match &self.calls {
                Calls::Number(of) => (of.broadcast)(at, n, of.bytes, 0, of.world),
                Calls::Address(of) => (of.broadcast)(at, n, of.bytes, 0, of.world),
            }
        };
        if code == 0 { Ok(()) } else { Err(Error::new(Code::Launch, format!("MPI_Bcast has failed (error {code})"))) }
    }

    /// Ends its world with this exit code.
    pub(crate) fn abort(&self, code: i32) {
        // SAFETY: it is active.
        unsafe {
            match &self.calls {
                Calls::Number(of) => (of.abort)(of.world, code),
                Calls::Address(of) => (of.abort)(of.world, code),
            }
        };
    }
}

impl Sessions {
    fn find(library: Library, no_info: usize, errors_return: usize) -> Option<Sessions> {
        Some(Sessions {
            init: function!(library, c"MPI_Session_init"),
            finalize: function!(library, c"MPI_Session_finalize"),
            group: function!(library, c"MPI_Group_from_session_pset"),
            free_group: function!(library, c"MPI_Group_free"),
            communicator: function!(library, c"MPI_Comm_create_from_group"),
            free_communicator: function!(library, c"MPI_Comm_free"),
            no_info,
            errors_return,
        })
    }
}

impl<H> Of<H> {
    fn find(library: Library, world: H, bytes: H) -> Option<Of<H>> {
        Some(Of {
            rank: function!(library, c"MPI_Comm_rank"),
            size: function!(library, c"MPI_Comm_size"),
            broadcast: function!(library, c"MPI_Bcast"),
            abort: function!(library, c"MPI_Abort"),
            world,
            bytes,
        })
    }
}

enum Kind {
    Mpich,
    Abi,
}

/// What an MPI is that is not Open MPI: by what it says of itself, and by the library that its functions are of.
fn kind(library: Library) -> Option<Kind> {
    let version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int =
        function!(library, c"MPI_Get_library_version");
    if symbols::place(version as usize).contains("libmpi_abi") {
        return Some(Kind::Abi);
    }
    // MPI_MAX_LIBRARY_VERSION_STRING is 8192 with all of these.
    let mut text = vec![0u8; 1 << 16];
    let mut length = 0;
    // SAFETY: may be called at any time; more room than it takes.
    unsafe { version(text.as_mut_ptr().cast(), &mut length) };
    let text = String::from_utf8_lossy(&text[..usize::try_from(length).ok()?.min(text.len())]).into_owned();
    ["MPICH", "MVAPICH", "Intel(R) MPI"].iter().any(|name| text.contains(name)).then_some(Kind::Mpich)
}
