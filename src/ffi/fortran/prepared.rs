//! The Fortran names of messages that are prepared once and begun over and over.

use super::entry::{Buffer, Data, In, entries};

entries! {
    // # Prepared messages

    fmpl_send_init_, fmpl_send_init8_(buf: Data, size: Size, dst: In, mai: In, comm: In) = fmpl_send_init;
    fmpl_recv_init_, fmpl_recv_init8_(buf: Buffer, size: Size, src: In, mai: In, comm: In) = fmpl_recv_init;
    fmpl_send_start_(dst: In, mai: In, comm: In) = fmpl_send_start;
    fmpl_recv_start_(src: In, mai: In, comm: In) = fmpl_recv_start;
}
