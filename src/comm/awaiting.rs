//! Requests as futures, for any executor: tokio, smol, one of the program's own.
//!
//! A look at a request that is not over leaves the task's waker here. A thread of the library's, begun by the first one, sleeps on the event
//! descriptor and wakes all tasks that are left here when something has completed; they look again. It also wakes them a hundred times a
//! second, because the time-out of a send in standard mode may run out with nobody to tell.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;

use crate::base::error::{Error, Result};
use crate::base::{system, thread};
use crate::comm::{AnyRequest, CollectiveRequest, FromAny, Plain, Received, RecvRequest, SendRequest, job};

/// From one look to the next, in milliseconds, when nothing rings.
const LOOKS_MS: i32 = 10;

#[derive(Default)]
struct Tasks {
    wakers: Vec<Waker>,
    thread: Option<JoinHandle<()>>,
    /// The job ends, and with it the thread.
    over: bool,
}

static TASKS: Mutex<Tasks> = Mutex::new(Tasks { wakers: Vec::new(), thread: None, over: false });
/// Rung for the thread when there is a task, and at the end.
static NEWS: Condvar = Condvar::new();

fn tasks() -> MutexGuard<'static, Tasks> {
    TASKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The task is woken at the next completion, if this is called before it looks once more.
fn wake_later(waker: &Waker) -> Result<()> {
    let mut tasks = tasks();
    if !tasks.wakers.iter().any(|known| known.will_wake(waker)) {
        tasks.wakers.push(waker.clone());
        NEWS.notify_one();
    }
    if tasks.thread.is_none() {
        let event = job::event_fd()?;
        let thread = thread::spawn("fmpl-tasks", 64 << 10, move || wake(event));
        tasks.thread = Some(thread.map_err(|_| Error::system("starting the thread that wakes tasks"))?);
    }
    Ok(())
}

/// The thread.
fn wake(event: i32) {
    loop {
        let mut tasks = tasks();
        while tasks.wakers.is_empty() && !tasks.over {
            tasks = NEWS.wait(tasks).unwrap_or_else(PoisonError::into_inner);
        }
        if tasks.over {
            return;
        }
        drop(tasks);
        // It is open until `end` has this thread's end.
        let _ = system::poll(&mut [libc::pollfd { fd: event, events: libc::POLLIN, revents: 0 }], LOOKS_MS);
        // Quiet before the tasks look: what completes afterwards rings again.
        let _ = system::hear(&event);
        let all = std::mem::take(&mut self::tasks().wakers);
        all.into_iter().for_each(Waker::wake);
    }
}

/// The job ends: the thread goes before the descriptor does. Tasks that are left here are woken, and told by their requests.
pub(super) fn end() {
    let thread = {
        let mut tasks = tasks();
        tasks.over = true;
        NEWS.notify_one();
        tasks.thread.take()
    };
    if let Some(thread) = thread {
        let _ = thread.join();
    }
    let left = std::mem::take(&mut *tasks());
    left.wakers.into_iter().for_each(Waker::wake);
}

/// Looks, and looks once more when the task is sure to be woken by what comes behind.
fn poll<R>(context: &Context<'_>, mut test: impl FnMut() -> Result<Option<R>>) -> Poll<Result<R>> {
    for first in [true, false] {
        match test() {
            Ok(Some(outcome)) => return Poll::Ready(Ok(outcome)),
            Err(error) => return Poll::Ready(Err(error)),
            Ok(None) if first => {
                if let Err(error) = wake_later(context.waker()) {
                    return Poll::Ready(Err(error));
                }
            }
            Ok(None) => {}
        }
    }
    Poll::Pending
}

/// A request that a task awaits: what `.await` makes of it.
pub struct Awaited<R>(R);

/// A request that can be looked at.
#[doc(hidden)]
pub trait Look {
    /// What it comes to.
    type Outcome;
    /// The outcome, once it is over.
    fn look(&mut self) -> Result<Option<Self::Outcome>>;
}

impl<R: Look + Unpin> Future for Awaited<R> {
    type Output = Result<R::Outcome>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        poll(context, || self.0.look())
    }
}

/// How a request becomes a future. It is none by itself: one that is let go is not forgotten, but completed by its scope.
macro_rules! awaited {
    ($(#[$doc:meta])* [$($generics:tt)*] $request:ty => $outcome:ty, $self:ident: $look:expr) => {
        impl<$($generics)*> Look for $request {
            type Outcome = $outcome;
            fn look(&mut $self) -> Result<Option<$outcome>> {
                $look
            }
        }

        $(#[$doc])*
        impl<$($generics)*> IntoFuture for $request {
            type Output = Result<$outcome>;
            type IntoFuture = Awaited<Self>;
            fn into_future(self) -> Awaited<Self> {
                Awaited(self)
            }
        }
    };
}

awaited! {
    /// ```
    /// # let job = fmpl::init(1)?;
    /// # let world = job.world();
    /// let mut got = [0u64; 2];
    /// world.scope(|s| {
    ///     // Or on tokio: runtime.block_on(…), with tasks of a LocalSet.
    ///     smol::block_on(async {
    ///         let arriving = s.irecv(&mut got, 0, 0)?;
    ///         s.isend(&[3u64, 4], 0, 0)?.await?;
    ///         assert_eq!(arriving.await?.len, 2);
    ///         Ok(())
    ///     })
    /// })?;
    /// assert_eq!(got, [3, 4]);
    /// # Ok::<(), fmpl::Error>(())
    /// ```
    ['scope, 'env, D: Unpin] RecvRequest<'scope, 'env, D> => Received, self: self.test()
}
awaited!(['scope, 'env] SendRequest<'scope, 'env> => (), self: self.test().map(|done| done.then_some(())));
awaited!(['scope, 'env] CollectiveRequest<'scope, 'env> => (), self: self.test().map(|done| done.then_some(())));
awaited!(['scope, 'env, T: Plain] AnyRequest<'scope, 'env, T> => FromAny, self: self.test());
