//! The installed library from Rust, by the C interface. (A Rust program takes the crate `fmpl` from its source.)

#[link(name = "fmpl")]
unsafe extern "C" {
    fn fmpl_init(ma: *mut u8, fa: *mut u8, count: i32) -> i32;
    fn fmpl_comm_rank(comm: i32, rank: *mut i32) -> i32;
    fn fmpl_comm_size(comm: i32, size: *mut i32) -> i32;
    fn fmpl_barrier(comm: i32) -> i32;
    fn fmpl_finalize() -> i32;
}

fn main() {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: as fmpl.h has them; the pointers are null, which they may be, or to what is written.
    let code = unsafe {
        fmpl_init(std::ptr::null_mut(), std::ptr::null_mut(), 1)
            | fmpl_comm_rank(0, &mut rank)
            | fmpl_comm_size(0, &mut size)
            | fmpl_barrier(0)
            | fmpl_finalize()
    };
    assert_eq!(code, 0);
    println!("rank {rank} of {size} from Rust");
}
