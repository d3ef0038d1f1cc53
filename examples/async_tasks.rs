//! Async: one task for each message, on an executor of a page. The descriptor of [`fmpl::Event`] tells when something has
//! completed; a reactor such as tokio's `AsyncFd` would watch it together with sockets and timers. Any number of ranks.
//!
//!     cargo build --examples
//!     fmpl run -n 2 target/debug/examples/async_tasks

use std::future::Future;
use std::os::fd::AsRawFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use fmpl::{Event, Received, RecvRequest, Result, SendRequest};

/// A receive as a future.
struct Arrival<'scope, 'env, D>(RecvRequest<'scope, 'env, D>);

impl<D: Unpin> Future for Arrival<'_, '_, D> {
    type Output = Result<Received>;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.test() {
            Ok(Some(received)) => Poll::Ready(Ok(received)),
            Ok(None) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// A send as a future.
struct Departure<'scope, 'env>(SendRequest<'scope, 'env>);

impl Future for Departure<'_, '_> {
    type Output = Result<()>;
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.test() {
            Ok(true) => Poll::Ready(Ok(())),
            Ok(false) => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// All of these, in whatever order they come.
async fn all<'a>(mut tasks: Vec<Pin<Box<dyn Future<Output = Result<()>> + 'a>>>) -> Result<()> {
    std::future::poll_fn(|context| {
        let mut first = Ok(());
        tasks.retain_mut(|task| match task.as_mut().poll(context) {
            Poll::Pending => true,
            Poll::Ready(result) => {
                first = std::mem::replace(&mut first, Ok(())).and(result);
                false
            }
        });
        if first.is_err() || tasks.is_empty() { Poll::Ready(first) } else { Poll::Pending }
    })
    .await
}

/// The executor: looks at the future; sleeps until something has completed; looks again.
fn block_on<R>(event: &Event<'_>, future: impl Future<Output = Result<R>>) -> Result<R> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        // Drained before the look: what completes afterwards makes it readable again.
        event.drain()?;
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        let mut wanted = libc::pollfd { fd: event.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // A time-out, because a send's time in standard mode may run out with nobody to tell.
        // SAFETY: one descriptor, as said.
        unsafe { libc::poll(&raw mut wanted, 1, 10) };
    }
}

const MESSAGES: usize = 100;

fn main() -> Result<()> {
    let job = fmpl::init(MESSAGES)?;
    let world = job.world();
    let event = job.event()?;
    let (rank, size) = (world.rank(), world.size());
    let (next, last) = ((rank + 1) % size, (rank + size - 1) % size);
    let contents = |from: usize, k: usize| vec![(from * MESSAGES + k) as u32; 10 * k];

    let outgoing: Vec<_> = (0..MESSAGES).map(|k| contents(rank, k)).collect();
    let mut incoming: Vec<_> = (0..MESSAGES).map(|k| vec![0; 10 * k]).collect();
    world.scope(|s| {
        let mut tasks: Vec<Pin<Box<dyn Future<Output = Result<()>>>>> = Vec::new();
        for (k, data) in incoming.iter_mut().enumerate() {
            tasks.push(Box::pin(async move {
                let received = Arrival(s.irecv(data, last, k)?).await?;
                assert_eq!(received.len, 10 * k);
                Ok(())
            }));
        }
        for (k, data) in outgoing.iter().enumerate() {
            tasks.push(Box::pin(async move { Departure(s.isend(data, next, k)?).await }));
        }
        block_on(&event, all(tasks))
    })?;
    for (k, data) in incoming.iter().enumerate() {
        assert_eq!(*data, contents(last, k), "message {k}");
    }
    world.barrier()?;
    if rank == 0 {
        println!("{MESSAGES} messages to each of {size} ranks, by tasks of one thread");
    }
    job.finalize()
}
