//! The FMPL of this process.
//!
//! `libfmpl_blacs` carries FMPL whole, so that preloading one file is enough; but a process must have one FMPL only, and a program may
//! be linked to `libfmpl` as well. So FMPL's functions are looked for once, at run time, in this order: where the program's own
//! calls of `fmpl_…` go (the global scope of the dynamic linker: `libfmpl.so`, or this library, whichever comes first); in a
//! `libfmpl.so` that is loaded without being global, as a plug-in's; and then here.

//!
//! Each line of the table says how a function is called: what the BLACS hand over, and what of it the C function gets. A line is right if
//! it keeps what `fmpl.h` asks of a caller, so nothing is asked of who calls through the table.

use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::marker::PhantomData;
use core::ptr::null_mut;
use std::sync::OnceLock;

use fmpl::base::bytes::{Bytes, Room};
use fmpl::base::library;
use fmpl::base::symbols::home;
use fmpl::ffi::c as own;
pub use fmpl::ffi::c::{FMPL_COMM_NULL, FMPL_COMM_WORLD, Out, fmpl_block, fmpl_comm, fmpl_func, iovec};

use crate::order::Whole;

macro_rules! library {
    (
        functions { $($function:ident as $value:ident;)* }
        $($vis:vis $name:ident as $short:ident($($argument:ident: $type:ty),*) $(-> $out:ty)?
            = ($($given:expr => $c:ty),* $(,)?);)*
    ) => {
        /// FMPL's functions, by the names of its C interface.
        pub struct Library {
            $(pub $value: fmpl_func,)*
            $($short: unsafe extern "C" fn($($c),*) $(-> $out)?,)*
        }

        impl Library {
            /// This library's own copy.
            fn own() -> Library {
                Library { $($value: Some(own::$function),)* $($short: own::$name,)* }
            }

            /// What an object has, if it is all there and all of one library.
            #[allow(clippy::missing_transmute_annotations, reason = "the types are those of the fields")]
            fn of(object: library::Library) -> Option<Library> {
                let mut of = None;
                let mut find = |name: &str| -> Option<usize> {
                    let at = object.address(CStr::from_bytes_with_nul(name.as_bytes()).ok()?);
                    let home = home(at).filter(|_| at != 0)?;
                    (*of.get_or_insert(home) == home).then_some(at)
                };
                // SAFETY: a function of this name has this type: it is FMPL's C interface, of a version that is checked.
                unsafe {
                    Some(Library {
                        $($value: core::mem::transmute(find(concat!(stringify!($function), "\0"))?),)*
                        $($short: core::mem::transmute(find(concat!(stringify!($name), "\0"))?),)*
                    })
                }
            }

            $(
                #[inline(always)]
                $vis fn $short(&self, $($argument: $type),*) $(-> $out)? {
                    // SAFETY: the line of the table keeps what the interface asks for.
                    unsafe { (self.$short)($($given),*) }
                }
            )*
        }
    };
}

library! {
    functions {
        fmpl_isum as isum;
        fmpl_ssum as ssum;
        fmpl_dsum as dsum;
        fmpl_csum as csum;
        fmpl_zsum as zsum;
    }
    fmpl_version as version() -> c_int = ();
    fmpl_last_error as last_error_at() -> *const c_char = ();
    pub fmpl_init as init(indices: c_int) -> c_int = (null_mut() => *mut c_void, null_mut() => *mut c_void, indices => c_int);
    pub fmpl_finalize as finalize() -> c_int = ();
    pub fmpl_abort as abort(code: c_int) -> c_int = (code => c_int);
    pub fmpl_wtime as wtime() -> f64 = ();
    pub fmpl_alloc as alloc(bytes: usize) -> *mut c_void = (bytes => usize);
    pub fmpl_free as free(at: *mut c_void) -> c_int = (at => *mut c_void);

    pub fmpl_comm_rank as comm_rank(comm: fmpl_comm, rank: &mut c_int) -> c_int = (comm => fmpl_comm, rank.into() => Out<c_int>);
    pub fmpl_comm_size as comm_size(comm: fmpl_comm, size: &mut c_int) -> c_int = (comm => fmpl_comm, size.into() => Out<c_int>);
    pub fmpl_comm_split as comm_split(comm: fmpl_comm, colour: c_int, order: c_int, new: &mut fmpl_comm) -> c_int
        = (comm => fmpl_comm, colour => c_int, order => c_int, new.into() => Out<fmpl_comm>);
    pub fmpl_comm_free as comm_free(comm: &mut fmpl_comm) -> c_int = (comm => *mut fmpl_comm);
    pub fmpl_comm_sendbuf_set as comm_sendbuf_set(comm: fmpl_comm, bytes: usize, ms: c_int) -> c_int
        = (comm => fmpl_comm, null_mut() => *mut c_void, bytes => usize, ms => c_int);

    pub fmpl_barrier as barrier(comm: fmpl_comm) -> c_int = (comm => fmpl_comm);
    pub fmpl_func_register as func_register(whole: Whole) -> c_int
        = (whole.function() => fmpl_func, whole.size() => usize, 1 => c_int);
    pub fmpl_allreduce as allreduce(room: Room<'_>, whole: Whole, comm: fmpl_comm) -> c_int
        = (room.as_mut_ptr().cast() => *mut c_void, (room.len() / whole.size()) as c_int => c_int,
           whole.function() => fmpl_func, comm => fmpl_comm, null_mut() => *mut c_void);

    pub fmpl_send as send(bytes: Bytes<'_>, dst: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (bytes.as_ptr().cast() => *const c_void, bytes.len() => usize, dst => c_int, index => c_int, comm => fmpl_comm);
    pub fmpl_send_block as send_block(block: &Block<'_>, dst: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (block.at.cast_const() => *const c_void, block.block => fmpl_block, dst => c_int, index => c_int, comm => fmpl_comm);
    pub fmpl_send_list as send_list(list: &List<'_>, dst: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (list.0.as_ptr() => *const iovec, list.0.len() as c_int => c_int, dst => c_int, index => c_int, comm => fmpl_comm);
    pub fmpl_recv as recv(room: Room<'_>, src: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (room.as_mut_ptr().cast() => *mut c_void, room.len() => usize, src => c_int, index => c_int, comm => fmpl_comm);
    pub fmpl_recv_block as recv_block(block: &Block<'_>, src: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (block.at => *mut c_void, block.block => fmpl_block, src => c_int, index => c_int, comm => fmpl_comm);
    pub fmpl_recv_list as recv_list(list: &List<'_>, src: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (list.0.as_ptr() => *const iovec, list.0.len() as c_int => c_int, src => c_int, index => c_int, comm => fmpl_comm);
    pub fmpl_received as received(src: c_int, index: c_int, comm: fmpl_comm, len: &mut usize) -> c_int
        = (src => c_int, index => c_int, comm => fmpl_comm, len.into() => Out<usize>, Out::NULL => Out<c_int>);
    pub fmpl_sendrecv as sendrecv(out: Bytes<'_>, dst: c_int, into: Room<'_>, src: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (out.as_ptr().cast() => *const c_void, out.len() => usize, dst => c_int, index => c_int,
           into.as_mut_ptr().cast() => *mut c_void, into.len() => usize, src => c_int, index => c_int, comm => fmpl_comm);
    // What is begun by these outlives the call: see `Library::swap`.
    fmpl_isend as isend(bytes: Bytes<'_>, dst: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (bytes.as_ptr().cast() => *const c_void, bytes.len() => usize, dst => c_int, index => c_int, comm => fmpl_comm);
    fmpl_irecv as irecv(room: Room<'_>, src: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (room.as_mut_ptr().cast() => *mut c_void, room.len() => usize, src => c_int, index => c_int, comm => fmpl_comm);
    fmpl_isend_wait as isend_wait(dst: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (dst => c_int, index => c_int, comm => fmpl_comm);
    fmpl_irecv_wait as irecv_wait(src: c_int, index: c_int, comm: fmpl_comm) -> c_int
        = (src => c_int, index => c_int, comm => fmpl_comm);
}

impl Library {
    /// Sends to all of these peers and receives from them, at the same time: `out` says what, `into` where to. The receives begin first; then
    /// `before` is done, and then the sends begin. `check` ends the process if it does not like a code, so nothing is left open.
    pub fn swap<'a>(
        &self,
        (peers, index, comm): (impl Iterator<Item = (usize, c_int)> + Clone, c_int, fmpl_comm),
        into: impl Fn(usize) -> Room<'a>,
        before: impl FnOnce(),
        out: impl Fn(usize) -> Bytes<'a>,
        check: impl Fn(c_int),
    ) {
        peers.clone().for_each(|(k, peer)| check(self.irecv(into(k), peer, index, comm)));
        before();
        peers.clone().for_each(|(k, peer)| check(self.isend(out(k), peer, index, comm)));
        peers.clone().for_each(|(_, peer)| check(self.irecv_wait(peer, index, comm)));
        peers.for_each(|(_, peer)| check(self.isend_wait(peer, index, comm)));
    }

    /// The text of this thread's last FMPL error.
    pub fn last_error(&self) -> String {
        // SAFETY: a text that stays valid until the thread's next failing call.
        unsafe { CStr::from_ptr(self.last_error_at()) }.to_string_lossy().into_owned()
    }
}

/// A block within a room.
pub struct Block<'a> {
    at: *mut c_void,
    block: fmpl_block,
    _of: PhantomData<Room<'a>>,
}

impl<'a> Block<'a> {
    /// `count` runs of `run` bytes, `stride` bytes from one to the next.
    #[inline(always)]
    pub fn new(room: Room<'a>, run: usize, count: usize, stride: usize) -> Block<'a> {
        let span = if count == 0 { 0 } else { (count - 1) * stride + run };
        let block = fmpl_block { run, count, stride: stride as isize };
        Block { at: room.part(0, span).as_mut_ptr().cast(), block, _of: PhantomData }
    }
}

/// Parts of rooms, one after the other.
pub struct List<'a>(Vec<iovec>, PhantomData<Room<'a>>);

thread_local! {
    /// Memory for descriptors, kept from list to list.
    static KEPT: Cell<Vec<iovec>> = const { Cell::new(Vec::new()) };
}

impl<'a> FromIterator<Room<'a>> for List<'a> {
    fn from_iter<I: IntoIterator<Item = Room<'a>>>(parts: I) -> List<'a> {
        let mut list = KEPT.take();
        list.clear();
        list.extend(parts.into_iter().map(|p| iovec { iov_base: p.as_mut_ptr().cast(), iov_len: p.len() }));
        List(list, PhantomData)
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        KEPT.set(core::mem::take(&mut self.0));
    }
}

static LIBRARY: OnceLock<Library> = OnceLock::new();

/// FMPL's functions. Found at the first call.
#[inline(always)]
pub fn fmpl() -> &'static Library {
    match LIBRARY.get() {
        Some(library) => library,
        None => find(),
    }
}

#[cold]
fn find() -> &'static Library {
    LIBRARY.get_or_init(|| {
        let elsewhere = || library::Library::loaded(c"libfmpl.so.0").and_then(Library::of);
        let library = Library::of(library::Library::EVERYWHERE).or_else(elsewhere).unwrap_or_else(Library::own);
        let version = library.version();
        // Before 1.0 the second number tells interfaces apart.
        if version / 100 != own::FMPL_VERSION / 100 {
            eprintln!(
                "libfmpl_blacs is of FMPL version {}, but this process has already loaded version {version}: install both from one source",
                own::FMPL_VERSION
            );
            std::process::exit(1);
        }
        library
    })
}
