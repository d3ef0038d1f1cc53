//! Messages that are handed over, as values: [`LoanMut`] is filled and sent, [`Loan`] is what a receiver gets. Both return themselves.

use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, size_of};
use std::ops::{Deref, DerefMut};

use crate::base::error::{Code, Error, Result, error};
use crate::base::values::Values;
use crate::comm::claim::{Claim, Direction};
use crate::comm::communicator::number;
use crate::comm::{Comm, Job, Peer, Plain, Receiver, Sender};
use crate::lane::loan::LOAN_GRAIN;
use crate::p2p::{self, Lent, any_source};

/// Memory to fill and to hand over. On a node its receiver gets this memory itself, so that a message of any length takes as long as any
/// other. Made by [`Job::loan`]; returned when it is dropped without having been sent.
///
/// ```
/// let job = fmpl::init(1)?;
/// let world = job.world();
/// let mut picture = job.loan::<f32>(1920 * 1080)?;
/// picture.fill(0.5);
/// world.send_loan(picture, 0, 0)?;
/// let picture = world.recv_loan::<f32>(0, 0)?;
/// assert_eq!(picture[1920 * 1080 - 1], 0.5);
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// Who has sent it has it no more, and what was received can be neither written nor sent on:
///
/// ```compile_fail,E0382
/// # let job = fmpl::init(1)?;
/// let mut loan = job.loan::<u64>(8)?;
/// job.world().send_loan(loan, 0, 0)?;
/// loan[0] = 1; // borrow of moved value
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// ```compile_fail,E0594
/// # let job = fmpl::init(1)?;
/// let loan = job.world().recv_loan::<u64>(0, 0)?;
/// loan[0] = 1; // cannot assign to data behind an immutable reference
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// ```compile_fail,E0308
/// # let job = fmpl::init(1)?;
/// let loan = job.world().recv_loan::<u64>(0, 0)?;
/// job.world().send_loan(loan, 0, 0)?; // mismatched types
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// It holds plain data only, and does not outlive the job:
///
/// ```compile_fail,E0277
/// # let job = fmpl::init(1)?;
/// job.loan::<String>(8)?; // `String` is not plain
/// # Ok::<(), fmpl::Error>(())
/// ```
///
/// ```compile_fail,E0505
/// let job = fmpl::init(1)?;
/// let loan = job.loan::<u64>(8)?;
/// job.finalize()?; // cannot move out of `job` because it is borrowed
/// println!("{}", loan[0]);
/// # Ok::<(), fmpl::Error>(())
/// ```
pub struct LoanMut<'job, T: Plain> {
    values: Values<T>,
    _job: PhantomData<&'job Job>,
}

/// A message in the memory of who sent it, to be read; returned when it is dropped, by whatever thread. It stays readable when its sender has
/// ended or died. Made by [`Comm::recv_loan`] and its relatives.
///
/// ```compile_fail,E0505
/// let job = fmpl::init(1)?;
/// let loan = job.world().recv_loan::<u64>(0, 0)?;
/// job.finalize()?; // cannot move out of `job` because it is borrowed
/// println!("{}", loan[0]);
/// # Ok::<(), fmpl::Error>(())
/// ```
pub struct Loan<'job, T: Plain> {
    values: Values<T>,
    _job: PhantomData<&'job Job>,
}

static_assertions::assert_impl_all!(LoanMut<'static, u64>: Send, Sync);
static_assertions::assert_impl_all!(Loan<'static, u64>: Send, Sync);

impl Job {
    /// Memory for `len` elements, with whatever bytes are there, to be filled and handed over.
    ///
    /// [`Code::Memory`] when as many loans or bytes are out as `FMPL_LOANS` allows.
    #[inline]
    pub fn loan<T: Plain>(&self, len: usize) -> Result<LoanMut<'_, T>> {
        let bytes = len.checked_mul(size_of::<T>()).filter(|b| *b <= isize::MAX as usize);
        let Some(bytes) = bytes.filter(|_| align_of::<T>() <= LOAN_GRAIN) else {
            return Err(unfit::<T>(&format!("{len} elements")));
        };
        // SAFETY: memory of the heap is shared, and mapped, so that it has contents; it is this value's until it is handed over.
        let values = unsafe { Values::new(p2p::loan(bytes)?.cast(), len) };
        Ok(LoanMut { values, _job: PhantomData })
    }
}

#[cold]
fn unfit<T>(what: &str) -> Error {
    let (size, align) = (size_of::<T>(), align_of::<T>());
    error!(Code::Argument, "a loan of {what} of {size} bytes, aligned to {align}")
}

impl<'job, T: Plain> LoanMut<'job, T> {
    /// Only the first `len` elements are to be sent; more than there are: all.
    pub fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
    }

    fn send(self, comm: i32, dst: i32, index: i32) -> std::result::Result<(), Refused<'job, T>> {
        let sent = p2p::send_loan(comm, self.values.address(), size_of_val(&self.values[..]), dst, index);
        self.handed_over(sent)
    }

    /// The loan is the receiver's if it was sent; else it comes back with the error.
    #[inline]
    fn handed_over(self, sent: Result<()>) -> std::result::Result<(), Refused<'job, T>> {
        match sent {
            Ok(()) => {
                std::mem::forget(self);
                Ok(())
            }
            Err(error) => Err(Refused { error, loan: self }),
        }
    }
}

impl<'job, T: Plain> Loan<'job, T> {
    /// What a receive has got. It is returned if it cannot be had as `T`.
    fn of(lent: Lent) -> Result<Loan<'job, T>> {
        if align_of::<T>() > LOAN_GRAIN {
            p2p::loan_return(lent.at)?;
            return Err(unfit::<T>(&format!("{} bytes in elements", lent.len)));
        }
        let len = lent.len.checked_div(size_of::<T>()).unwrap_or(0);
        // SAFETY: aligned memory of a message of that length, or none; nobody writes there until it is returned, which this value does.
        let values = unsafe { Values::new(lent.at.cast(), len) };
        Ok(Loan { values, _job: PhantomData })
    }
}

impl<T: Plain> Drop for LoanMut<'_, T> {
    fn drop(&mut self) {
        // In a forked child it stays.
        let _ = p2p::loan_return(self.values.address());
    }
}

impl<T: Plain> Drop for Loan<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // In a forked child it stays.
        let _ = p2p::loan_return(self.values.address());
    }
}

impl<T: Plain> Deref for LoanMut<'_, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T: Plain> DerefMut for LoanMut<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.values
    }
}

impl<T: Plain> Deref for Loan<'_, T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for LoanMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

impl<T: Plain + fmt::Debug> fmt::Debug for Loan<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

/// A loan that could not be sent, and why. `?` keeps the error and returns the loan.
pub struct Refused<'job, T: Plain> {
    /// Why.
    pub error: Error,
    /// It is the caller's as before.
    pub loan: LoanMut<'job, T>,
}

impl<T: Plain> From<Refused<'_, T>> for Error {
    fn from(refused: Refused<'_, T>) -> Error {
        refused.error
    }
}

impl<T: Plain> fmt::Debug for Refused<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused").field("error", &self.error).finish_non_exhaustive()
    }
}

impl<'job> Comm<'job> {
    /// Hands a loan over; the call waits for no receive, whatever the [`Mode`](crate::Mode). An ordinary receive on the other side gets it as
    /// a message like any other, and copies it.
    #[inline]
    pub fn send_loan<'a, T: Plain>(
        &self,
        loan: LoanMut<'a, T>,
        dst: impl Into<Peer>,
        index: usize,
    ) -> std::result::Result<(), Refused<'a, T>> {
        let dst = dst.into();
        match self.claim(Direction::Send, dst, index) {
            Ok(_claim) => loan.send(self.id, dst.number(), number(index)),
            Err(error) => Err(Refused { error, loan }),
        }
    }

    /// Receives a message in place. One that was not handed over is copied into a loan of this rank's.
    ///
    /// [`Code::Memory`] when that is needed and there is no loan for it: the message waits for the next receive.
    #[inline]
    pub fn recv_loan<T: Plain>(&self, src: impl Into<Peer>, index: usize) -> Result<Loan<'job, T>> {
        let src = src.into();
        let _claim = self.claim(Direction::Receive, src, index)?;
        Loan::of(p2p::recv_loan(self.id, src.number(), number(index))?)
    }

    /// Hands one loan over to several ranks, who read the same memory; each receives it from this rank on `index`, with
    /// [`Comm::recv_loan`] or any other receive. It comes back when each has returned it.
    pub fn mcast_loan<'a, T: Plain>(
        &self,
        loan: LoanMut<'a, T>,
        members: impl IntoIterator<Item = usize>,
        index: usize,
    ) -> std::result::Result<(), Refused<'a, T>> {
        let send = || {
            let bits = self.bitmap("mcast_loan", members)?;
            let claims = (0..self.size).filter(|rank| bits[rank / 64] >> (rank % 64) & 1 != 0);
            let _claims = claims.map(|r| self.claim(Direction::Send, r.into(), index)).collect::<Result<Vec<_>>>()?;
            p2p::mcast_loan(self.id, loan.values.address(), size_of_val(&loan.values[..]), &bits, number(index))
        };
        let sent = send();
        loan.handed_over(sent)
    }

    /// Hands a loan over to whoever receives from any source on `index` of rank `dst`. It needs a place there, and waits for one as
    /// [`Comm::send_any`] does.
    pub fn send_loan_any<'a, T: Plain>(
        &self,
        loan: LoanMut<'a, T>,
        dst: impl Into<Peer>,
        index: usize,
    ) -> std::result::Result<(), Refused<'a, T>> {
        let (bytes, dst) = (size_of_val(&loan.values[..]), dst.into().number());
        let sent = any_source::send_loan_any(self.id, loan.values.address(), bytes, dst, number(index));
        loan.handed_over(sent)
    }

    /// Receives the next message on `index` in place, whoever sends it, and tells who did. Errors as of [`Comm::recv_any`] and
    /// [`Comm::recv_loan`].
    pub fn recv_loan_any<T: Plain>(&self, index: usize) -> Result<(Loan<'job, T>, usize)> {
        let (lent, source) = any_source::recv_loan_any(self.id, number(index))?;
        Ok((Loan::of(lent)?, source as usize))
    }

    /// Begins to receive a message of any source in place. Dropped, it is withdrawn, or its message is lost.
    pub fn irecv_loan_any<T: Plain>(&self, index: usize) -> Result<AnyLoanRequest<'job, T>> {
        any_source::irecv_loan_any(self.id, number(index))?;
        Ok(AnyLoanRequest { comm: self.id, index: number(index), _loan: PhantomData })
    }

    /// Begins to receive a message in place. Nothing is lent, so it needs no scope; dropped, it is withdrawn, or its message is lost.
    pub fn irecv_loan<T: Plain>(&self, src: impl Into<Peer>, index: usize) -> Result<LoanRequest<'job, T>> {
        let src = src.into();
        let claim = self.claim(Direction::Receive, src, index)?;
        p2p::irecv_loan(self.id, src.number(), number(index))?;
        Ok(LoanRequest { comm: self.id, src, index: number(index), claim, _loan: PhantomData })
    }
}

/// A message in place that is on its way; made by [`Comm::irecv_loan`].
pub struct LoanRequest<'job, T: Plain> {
    comm: i32,
    src: Peer,
    index: i32,
    claim: Option<Claim<'job>>,
    _loan: PhantomData<Loan<'job, T>>,
}

impl<'job, T: Plain> LoanRequest<'job, T> {
    /// Waits for it.
    pub fn wait(self) -> Result<Loan<'job, T>> {
        let mut this = ManuallyDrop::new(self);
        let lent = p2p::irecv_loan_wait(this.comm, this.src.number(), this.index);
        // The request is over.
        drop(this.claim.take());
        Loan::of(lent?)
    }

    /// The message if it is there, else the request again.
    pub fn test(self) -> Result<std::result::Result<Loan<'job, T>, LoanRequest<'job, T>>> {
        let mut this = ManuallyDrop::new(self);
        let lent = p2p::irecv_loan_test(this.comm, this.src.number(), this.index);
        if let Ok(None) = lent {
            return Ok(Err(ManuallyDrop::into_inner(this)));
        }
        drop(this.claim.take());
        Loan::of(lent?.unwrap_or(Lent::NOTHING)).map(Ok)
    }
}

impl<T: Plain> Drop for LoanRequest<'_, T> {
    fn drop(&mut self) {
        let (comm, src, index) = (self.comm, self.src.number(), self.index);
        // What cannot be withdrawn is there, or about to be.
        if let Ok(false) = p2p::irecv_cancel(comm, src, index)
            && let Ok(lent) = p2p::irecv_loan_wait(comm, src, index)
        {
            let _ = p2p::loan_return(lent.at);
        }
    }
}

/// A message of any source in place that is on its way; made by [`Comm::irecv_loan_any`].
pub struct AnyLoanRequest<'job, T: Plain> {
    comm: i32,
    index: i32,
    _loan: PhantomData<Loan<'job, T>>,
}

impl<'job, T: Plain> AnyLoanRequest<'job, T> {
    /// Waits for it, and tells who sent it.
    pub fn wait(self) -> Result<(Loan<'job, T>, usize)> {
        let this = ManuallyDrop::new(self);
        let (lent, source) = any_source::irecv_loan_any_wait(this.comm, this.index)?;
        Ok((Loan::of(lent)?, source as usize))
    }

    /// The message and who sent it if it is there, else the request again.
    #[expect(clippy::type_complexity, reason = "either of two values, or an error")]
    pub fn test(self) -> Result<std::result::Result<(Loan<'job, T>, usize), AnyLoanRequest<'job, T>>> {
        let this = ManuallyDrop::new(self);
        match any_source::irecv_loan_any_test(this.comm, this.index)? {
            None => Ok(Err(ManuallyDrop::into_inner(this))),
            Some((lent, source)) => Ok(Ok((Loan::of(lent)?, source as usize))),
        }
    }
}

impl<T: Plain> Drop for AnyLoanRequest<'_, T> {
    fn drop(&mut self) {
        // What cannot be withdrawn is being fetched.
        if let Ok(false) = any_source::irecv_any_cancel(self.comm, self.index)
            && let Ok((lent, _)) = any_source::irecv_loan_any_wait(self.comm, self.index)
        {
            let _ = p2p::loan_return(lent.at);
        }
    }
}

impl Sender<'_> {
    /// As [`Comm::send_loan`].
    #[inline]
    pub fn send_loan<'a, T: Plain>(&mut self, loan: LoanMut<'a, T>) -> std::result::Result<(), Refused<'a, T>> {
        loan.send(self.comm, self.dst.number(), self.index)
    }
}

impl<'job> Receiver<'job> {
    /// As [`Comm::recv_loan`].
    #[inline]
    pub fn recv_loan<T: Plain>(&mut self) -> Result<Loan<'job, T>> {
        Loan::of(p2p::recv_loan(self.comm, self.src.number(), self.index)?)
    }
}
