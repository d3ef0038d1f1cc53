//! An MPI in the same process: whether there is one, what it is at, and a way to all its ranks.
//!
//! Its functions are looked up by name, wherever the process has them. What a communicator is differs: with MPICH and its kin a number, with
//! Open MPI the address of a variable of the library, with the standard ABI of MPI 5 (`libmpi_abi`) a number that is passed as an address.

use crate::base::error::{Code, Error, Result, error};
use crate::base::library::{Library, functions};
use crate::base::symbols;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The MPI that this process has loaded.
pub(crate) struct Mpi {
    about: About,
    world: World,
    sessions: Option<Sessions>,
}

/// `MPI_COMM_WORLD`, by what a handle is.
enum World {
    Number(Comm<c_int>),
    Address(Comm<usize>),
}

/// A communicator: its handle is one of this MPI's own, made by [`Mpi::of`] and [`Sessions::world`] only.
struct Comm<H> {
    calls: CommCalls<H>,
    handle: H,
    /// `MPI_BYTE`
    bytes: H,
}

/// Open MPI 5's: a way to its world before MPI_Init. It takes a PMIx that somebody has initialised for its own, and does not ask it who it is.
struct Sessions {
    calls: SessionCalls,
    no_info: usize,
    errors_return: usize,
}

functions! {
    /// What may be called at any time, by any thread.
    struct About {
        initialized = c"MPI_Initialized": [safe] fn(&mut c_int) -> c_int;
        finalized = c"MPI_Finalized": [safe] fn(&mut c_int) -> c_int;
        version = c"MPI_Get_library_version": fn(*mut c_char, *mut c_int) -> c_int;
    }
}

functions! {
    /// Of a communicator that there is, see [`Comm`].
    struct CommCalls<H> {
        rank = c"MPI_Comm_rank": [safe] fn(H, &mut c_int) -> c_int;
        size = c"MPI_Comm_size": [safe] fn(H, &mut c_int) -> c_int;
        broadcast = c"MPI_Bcast": fn(*mut c_void, c_int, H, c_int, H) -> c_int;
        abort = c"MPI_Abort": [safe] fn(H, c_int) -> c_int;
    }
}

functions! {
    struct SessionCalls {
        init = c"MPI_Session_init": fn(usize, usize, *mut usize) -> c_int;
        finalize = c"MPI_Session_finalize": fn(*mut usize) -> c_int;
        group = c"MPI_Group_from_session_pset": fn(usize, *const c_char, *mut usize) -> c_int;
        free_group = c"MPI_Group_free": fn(*mut usize) -> c_int;
        communicator = c"MPI_Comm_create_from_group": fn(usize, *const c_char, usize, usize, *mut usize) -> c_int;
        free_communicator = c"MPI_Comm_free": fn(*mut usize) -> c_int;
    }
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

impl Mpi {
    fn of(library: Library) -> Option<Mpi> {
        let about = About::find(library).ok()?;
        let variable = |name: &CStr| library.symbol(name).ok().map(|p| p as usize);
        let world = match (variable(c"ompi_mpi_comm_world"), variable(c"ompi_mpi_byte")) {
            (Some(world), Some(bytes)) => World::Address(Comm::find(library, world, bytes)?),
            _ => match about.kind()? {
                Kind::Mpich => World::Number(Comm::find(library, 0x4400_0000, 0x4c00_010d)?),
                Kind::Abi => World::Address(Comm::find(library, 0x101, 0x247)?),
            },
        };
        let constants = variable(c"ompi_mpi_info_null").zip(variable(c"ompi_mpi_errors_return"));
        let sessions = constants.and_then(|(no_info, errors_return)| {
            Some(Sessions { calls: SessionCalls::find(library).ok()?, no_info, errors_return })
        });
        Some(Mpi { about, world, sessions })
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
        let (Some(sessions), World::Address(of)) = (&self.sessions, &self.world) else {
            return Err(Error::new(Code::Launch, "this MPI has no sessions"));
        };
        let mut world = Comm { calls: of.calls, handle: sessions.world()?, bytes: of.bytes };
        let done = world.place().and_then(|(rank, size)| work(rank, size, &|all| world.broadcast(all)));
        // SAFETY: made above; nobody uses it any more.
        unsafe { (sessions.calls.free_communicator)(&mut world.handle) };
        done
    }

    /// Does it speak PMI-1 to its launcher?
    pub(crate) fn speaks_pmi(&self) -> bool {
        match &self.world {
            World::Number(_) => true,
            World::Address(comm) => comm.handle == 0x101,
        }
    }

    /// Has it been initialised, if perhaps finalised since?
    pub(crate) fn was_initialized(&self) -> bool {
        let mut flag = 0;
        (self.about.initialized)(&mut flag) == 0 && flag != 0
    }

    pub(crate) fn was_finalized(&self) -> bool {
        let mut flag = 0;
        (self.about.finalized)(&mut flag) == 0 && flag != 0
    }

    fn is_active(&self) -> bool {
        self.was_initialized() && !self.was_finalized()
    }

    /// This process's rank in the world, and its size.
    pub(crate) fn place(&self) -> Result<(u32, u32)> {
        match &self.world {
            World::Number(comm) => comm.place(),
            World::Address(comm) => comm.place(),
        }
    }

    /// Brings rank 0's bytes to all ranks of its world; collective.
    pub(crate) fn broadcast(&self, all: &mut [u8]) -> Result<()> {
        match &self.world {
            World::Number(comm) => comm.broadcast(all),
            World::Address(comm) => comm.broadcast(all),
        }
    }

    /// Ends its world with this exit code.
    pub(crate) fn abort(&self, code: i32) {
        match &self.world {
            World::Number(comm) => comm.abort(code),
            World::Address(comm) => comm.abort(code),
        }
    }
}

impl<H: Copy> Comm<H> {
    fn find(library: Library, handle: H, bytes: H) -> Option<Comm<H>> {
        Some(Comm { calls: CommCalls::find(library).ok()?, handle, bytes })
    }

    fn place(&self) -> Result<(u32, u32)> {
        let (mut rank, mut size) = (-1, -1);
        let codes = [(self.calls.rank)(self.handle, &mut rank), (self.calls.size)(self.handle, &mut size)];
        match (codes, u32::try_from(rank), u32::try_from(size)) {
            ([0, 0], Ok(rank), Ok(size)) if rank < size => Ok((rank, size)),
            _ => Err(error!(Code::Launch, "MPI says that this is rank {rank} of {size} of its world")),
        }
    }

    fn broadcast(&self, all: &mut [u8]) -> Result<()> {
        let (at, n) = (all.as_mut_ptr().cast(), all.len() as c_int);
        // SAFETY: a communicator, while MPI is active or its session open; so many bytes that may be written.
        succeeded("MPI_Bcast", unsafe { (self.calls.broadcast)(at, n, self.bytes, 0, self.handle) })
    }

    fn abort(&self, code: i32) {
        (self.calls.abort)(self.handle, code);
    }
}

impl Sessions {
    /// A communicator of all ranks, for whoever asks to free.
    fn world(&self) -> Result<usize> {
        static SESSION: Mutex<Option<usize>> = Mutex::new(None);
        let calls = &self.calls;
        let mut kept = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
        let session = match *kept {
            Some(session) => session,
            None => {
                let mut session = 0;
                // SAFETY: no information, errors are returned, room for the session.
                succeeded("MPI_Session_init", unsafe { (calls.init)(self.no_info, self.errors_return, &mut session) })?;
                let (finalize, mut last) = (calls.finalize, session);
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
            succeeded("MPI_Group_from_session_pset", (calls.group)(session, c"mpi://WORLD".as_ptr(), &mut group))?;
            let made = (calls.communicator)(group, c"fmpl".as_ptr(), self.no_info, self.errors_return, &mut world);
            (calls.free_group)(&mut group);
            succeeded("MPI_Comm_create_from_group", made)?;
        }
        Ok(world)
    }
}

enum Kind {
    Mpich,
    Abi,
}

impl About {
    /// What an MPI is that is not Open MPI: by what it says of itself, and by the library that its functions are of.
    fn kind(&self) -> Option<Kind> {
        if symbols::place(self.version as usize).contains("libmpi_abi") {
            return Some(Kind::Abi);
        }
        // MPI_MAX_LIBRARY_VERSION_STRING is 8192 with all of these.
        let mut text = vec![0u8; 1 << 16];
        let mut length = 0;
        // SAFETY: may be called at any time; more room than it takes.
        unsafe { (self.version)(text.as_mut_ptr().cast(), &mut length) };
        let text = String::from_utf8_lossy(&text[..usize::try_from(length).ok()?.min(text.len())]).into_owned();
        ["MPICH", "MVAPICH", "Intel(R) MPI"].iter().any(|name| text.contains(name)).then_some(Kind::Mpich)
    }
}

fn succeeded(call: &str, code: c_int) -> Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(error!(Code::Launch, "{call} has failed (error {code})")),
    }
}
