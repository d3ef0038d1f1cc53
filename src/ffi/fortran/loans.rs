//! The Fortran names of the calls for messages that are handed over, and for counters. Addresses are TYPE(C_PTR), or INTEGER(8)
//! without the module.

use super::entry::{Address, In, Lent, Members, NewAddress, Out, Out8, entries};
use crate::ffi::c;

entries! {
    // # Messages that are handed over

    fmpl_loan_, fmpl_loan8_(size: Size, buf: NewAddress) = fmpl_loan;
    fmpl_send_loan_, fmpl_send_loan8_(buf: Address, size: Size, dst: In, mai: In, comm: In) = fmpl_send_loan;
    fmpl_recv_loan_, fmpl_recv_loan8_(buf: Lent, size: Length, src: In, mai: In, comm: In) = fmpl_recv_loan;
    fmpl_irecv_loan_(src: In, mai: In, comm: In) = fmpl_irecv_loan;
    fmpl_irecv_loan_wait_, fmpl_irecv_loan_wait8_(buf: Lent, size: Length, src: In, mai: In, comm: In)
        = fmpl_irecv_loan_wait;
    fmpl_irecv_loan_test_, fmpl_irecv_loan_test8_(buf: Lent, size: Length, src: In, mai: In, comm: In, done: Out)
        = fmpl_irecv_loan_test;

    /// As [`c::fmpl_mcast_loan`].
    ///
    /// * buf: the beginning of a loan from `fmpl_loan`.
    /// * size: bytes of the message, no more than the loan has.
    /// * members: the bitmap: bit mod(r, 64) of element r / 64 + 1 for rank r.
    /// * mai: the index.
    /// * comm: the communicator.
    /// * ier: the return code.
    fmpl_mcast_loan_, fmpl_mcast_loan8_(buf: Address, size: Size, members: Members, mai: In, comm: In)
        = fmpl_mcast_loan;
    fmpl_send_loan_any_, fmpl_send_loan_any8_(buf: Address, size: Size, dst: In, mai: In, comm: In)
        = fmpl_send_loan_any;
    fmpl_recv_loan_any_, fmpl_recv_loan_any8_(buf: Lent, size: Length, mai: In, comm: In, src: Out)
        = fmpl_recv_loan_any;
    fmpl_irecv_loan_any_(mai: In, comm: In) = fmpl_irecv_loan_any;
    fmpl_irecv_loan_any_wait_, fmpl_irecv_loan_any_wait8_(buf: Lent, size: Length, mai: In, comm: In, src: Out)
        = fmpl_irecv_loan_any_wait;
    fmpl_irecv_loan_any_test_, fmpl_irecv_loan_any_test8_(buf: Lent, size: Length, mai: In, comm: In, done: Out, src: Out)
        = fmpl_irecv_loan_any_test;
    fmpl_loan_return_(buf: Address) = fmpl_loan_return;

    // # Counters

    /// As [`c::fmpl_counter`]; the value is an INTEGER(8).
    fmpl_counter_(which: In, value: Out8) = {
        let mut n = 0;
        let code = c::fmpl_counter(which, (&mut n).into());
        if code == 0 {
            value.set(n as u64);
        }
        code
    };
}
