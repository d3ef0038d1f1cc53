//! The C interface as the benchmarks call it: through a table of function pointers that the compiler cannot see through, since a
//! user's calls cross the boundary of a shared library too. Nothing of the library is inlined into the loops that are timed.
//!
//! Each line of a table says how a function is called: what Rust hands over, and what of it the C function gets. A line is right if it
//! keeps what `include/fmpl.h` and `include/acp.h` ask of a caller, so nothing is asked of who calls through the table: memory is a
//! [`Room`], and whatever outlives the call is given one that stays until the process ends.

use std::ffi::{c_int, c_void};

use fmpl::base::bytes::Room;
use fmpl::ffi::c;
use fmpl::p2p::layout::Block;

use super::rank::size;

/// What the benchmarks make of a function's value.
pub trait Answer {
    /// What it is for them.
    type Of;
    /// It, as that.
    fn of(self) -> Self::Of;
}

impl Answer for c_int {
    type Of = Result<(), String>;
    #[inline]
    fn of(self) -> Result<(), String> {
        if self == 0 { Ok(()) } else { Err(error_text(self)) }
    }
}

macro_rules! as_they_are {
    ($($t:ty)*) => { $(
        impl Answer for $t {
            type Of = $t;
            #[inline]
            fn of(self) -> $t {
                self
            }
        }
    )* };
}
as_they_are!(() i64 u64 *mut c_void);

/// The text of the last error of this thread.
#[cold]
pub fn error_text(code: c_int) -> String {
    format!("code {code}: {}", fmpl::ffi::last_error_text())
}

/// Makes such a table: `Name of module { function as short(…) -> … = (what it gets => its type, …); … }`.
macro_rules! calls {
    ($(#[$doc:meta])* $name:ident of $module:ident {
        $($(#[$about:meta])* $function:ident as $short:ident($($argument:ident: $type:ty),*) $(-> $out:ty)?
            = ($($given:expr => $c:ty),* $(,)?);)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $name { $($short: unsafe extern "C" fn($($c),*) $(-> $out)?,)* }

        impl $name {
            /// The table, hidden from the optimiser.
            pub fn new() -> $name {
                std::hint::black_box($name { $($short: $module::$function,)* })
            }

            $(
                $(#[$about])*
                #[inline]
                pub fn $short(&self, $($argument: $type),*)
                    -> <$crate::bench::calls::calls!(@ $($out)?) as $crate::bench::calls::Answer>::Of
                {
                    // SAFETY: the line of the table keeps what the interface asks for.
                    $crate::bench::calls::Answer::of(unsafe { (self.$short)($($given),*) })
                }
            )*
        }
    };
    (@) => { () };
    (@ $out:ty) => { $out };
}
pub(super) use calls;

const WORLD: c_int = fmpl::p2p::COMM_WORLD;

/// Doubles in a room.
fn doubles(room: Room<'_>) -> c_int {
    (room.len() / 8) as c_int
}

/// The room if it has that of each rank.
fn of_all(room: Room<'_>, each: usize) -> *mut c_void {
    room.part(0, each * size()).as_mut_ptr().cast()
}

/// The room if the block lies within it.
fn of_block(room: Room<'_>, block: Block) -> *mut c_void {
    let span = block.count.saturating_sub(1) * block.stride.unsigned_abs() + block.run;
    assert!(block.stride >= 0);
    room.part(0, span).as_mut_ptr().cast()
}

/// The bitmap if it has a bit for each rank.
fn of_ranks(members: &[u64]) -> *const u64 {
    assert!(members.len() * 64 >= size());
    members.as_ptr()
}

calls! {
    /// The functions that the loops use.
    Calls of c {
        fmpl_init as init(indices: c_int) -> c_int
            = (std::ptr::null_mut() => *mut c_void, std::ptr::null_mut() => *mut c_void, indices => c_int);
        fmpl_finalize as finalize() -> c_int = ();
        fmpl_comm_rank as comm_rank(rank: &mut c_int) -> c_int = (WORLD => c_int, rank.into() => c::Out<c_int>);
        fmpl_comm_size as comm_size(size: &mut c_int) -> c_int = (WORLD => c_int, size.into() => c::Out<c_int>);
        fmpl_progress as progress() -> c_int = ();
        fmpl_counter as counter(which: c_int, value: &mut usize) -> c_int = (which => c_int, value.into() => c::Out<usize>);

        fmpl_send as send(p: Room<'_>, dst: i32, index: i32) -> c_int
            = (p.as_ptr().cast() => *const c_void, p.len() => usize, dst => c_int, index => c_int, WORLD => c_int);
        fmpl_recv as recv(p: Room<'_>, src: i32, index: i32) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, p.len() => usize, src => c_int, index => c_int, WORLD => c_int);
        fmpl_isend as isend(p: Room<'static>, dst: i32, index: i32) -> c_int
            = (p.as_ptr().cast() => *const c_void, p.len() => usize, dst => c_int, index => c_int, WORLD => c_int);
        fmpl_irecv as irecv(p: Room<'static>, src: i32, index: i32) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, p.len() => usize, src => c_int, index => c_int, WORLD => c_int);
        fmpl_isend_wait as isend_wait(dst: i32, index: i32) -> c_int = (dst => c_int, index => c_int, WORLD => c_int);
        fmpl_irecv_wait as irecv_wait(src: i32, index: i32) -> c_int = (src => c_int, index => c_int, WORLD => c_int);
        fmpl_irecv_test as irecv_test_into(src: i32, index: i32, done: &mut c_int) -> c_int
            = (src => c_int, index => c_int, WORLD => c_int, done.into() => c::Out<c_int>);
        fmpl_received as received(src: i32, index: i32, len: &mut usize, found: &mut c_int) -> c_int
            = (src => c_int, index => c_int, WORLD => c_int, len.into() => c::Out<usize>, found.into() => c::Out<c_int>);
        fmpl_sendrecv as sendrecv(out: Room<'_>, into: Room<'_>, dst: i32, src: i32, index: i32) -> c_int
            = (out.as_ptr().cast() => *const c_void, out.len() => usize, dst => c_int, index => c_int,
               into.as_mut_ptr().cast() => *mut c_void, into.len() => usize, src => c_int, index => c_int, WORLD => c_int);
        fmpl_send_block as send_block(p: Room<'_>, block: Block, dst: i32, index: i32) -> c_int
            = (of_block(p, block) => *const c_void, block => Block, dst => c_int, index => c_int, WORLD => c_int);
        fmpl_recv_block as recv_block(p: Room<'_>, block: Block, src: i32, index: i32) -> c_int
            = (of_block(p, block) => *mut c_void, block => Block, src => c_int, index => c_int, WORLD => c_int);
        fmpl_send_any as send_any(p: Room<'_>, dst: i32, index: i32) -> c_int
            = (p.as_ptr().cast() => *const c_void, p.len() => usize, dst => c_int, index => c_int, WORLD => c_int);
        fmpl_recv_any_from as recv_any_from(p: Room<'_>, index: i32, src: &mut c_int, len: &mut usize) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, p.len() => usize, index => c_int, WORLD => c_int,
               src.into() => c::Out<c_int>, len.into() => c::Out<usize>);

        fmpl_mcast as mcast_begin(p: Room<'static>, members: &[u64], ticket: &mut u64) -> c_int
            = (p.as_ptr().cast() => *const c_void, p.len() => usize, of_ranks(members) => *const u64, WORLD => c_int,
               ticket.into() => c::Out<u64>);
        fmpl_mcast_wait as mcast_wait(ticket: u64) -> c_int = (ticket => u64);
        fmpl_mcast_recv as mcast_recv(p: Room<'_>) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, p.len() => usize, WORLD => c_int,
               c::Out::NULL => c::Out<usize>, c::Out::NULL => c::Out<c_int>);
        /// With a spool that the library allocates.
        fmpl_sendbuf_set as sendbuf_set(bytes: usize, ms: i32) -> c_int
            = (std::ptr::null_mut() => *mut c_void, bytes => usize, ms => c_int);

        /// All ranks meet.
        fmpl_barrier as barrier() -> c_int = (WORLD => c_int);
        fmpl_bcast as bcast(p: Room<'_>, root: i32) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, p.len() => usize, root => c_int, WORLD => c_int);
        /// The sum of doubles.
        fmpl_reduce as reduce(p: Room<'_>, root: i32) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, doubles(p) => c_int, Some(c::fmpl_dsum) => c::fmpl_func,
               root => c_int, WORLD => c_int, std::ptr::null_mut() => *mut c_void);
        /// As above.
        fmpl_allreduce as allreduce(p: Room<'_>) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, doubles(p) => c_int, Some(c::fmpl_dsum) => c::fmpl_func,
               WORLD => c_int, std::ptr::null_mut() => *mut c_void);
        /// The sum of one int.
        fmpl_allreduce as allreduce_int(p: Room<'_>) -> c_int
            = (p.part(0, 4).as_mut_ptr().cast() => *mut c_void, 1 => c_int, Some(c::fmpl_isum) => c::fmpl_func,
               WORLD => c_int, std::ptr::null_mut() => *mut c_void);
        /// The largest double.
        fmpl_allreduce as largest(value: &mut f64) -> c_int
            = ((&raw mut *value).cast() => *mut c_void, 1 => c_int, Some(c::fmpl_dmaxval) => c::fmpl_func,
               WORLD => c_int, std::ptr::null_mut() => *mut c_void);
        fmpl_scan as scan(p: Room<'_>) -> c_int
            = (p.as_mut_ptr().cast() => *mut c_void, doubles(p) => c_int, Some(c::fmpl_dsum) => c::fmpl_func,
               WORLD => c_int);
        /// As many bytes of each rank as there are in `own`, which may be this rank's part of them all.
        fmpl_allgather as allgather(own: Room<'_>, all: Room<'_>) -> c_int
            = (own.as_ptr().cast() => *const c_void, own.len() => usize, of_all(all, own.len()) => *mut c_void,
               WORLD => c_int);
        fmpl_scatter as scatter(all: Room<'_>, own: Room<'_>, root: i32) -> c_int
            = (of_all(all, own.len()) => *const c_void, own.len() => usize, own.as_mut_ptr().cast() => *mut c_void,
               root => c_int, WORLD => c_int);
    }
}
