//! Frames: rank 0 is a camera that hands its pictures to the other ranks in turn; none is ever copied. Any number of ranks.
//!
//!     cargo build --examples
//!     fmpl run -n 3 target/debug/examples/frames

const WIDTH: usize = 640;
const HEIGHT: usize = 480;
const FRAMES: u32 = 100;

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(1)?;
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    // Alone, rank 0 looks at its pictures itself.
    let viewers = if size == 1 { 0..1 } else { 1..size };
    let viewer_of = |frame: u32| viewers.start + frame as usize % viewers.len();
    let mut seen = 0;
    for frame in 0..FRAMES {
        let viewer = viewer_of(frame);
        if rank == 0 {
            let mut picture = job.loan::<u32>(WIDTH * HEIGHT)?;
            for (at, pixel) in picture.iter_mut().enumerate() {
                *pixel = frame ^ at as u32;
            }
            // The picture is the viewer's from here on.
            world.send_loan(picture, viewer, 0)?;
        }
        if rank == viewer {
            let picture = world.recv_loan::<u32>(0, 0)?;
            assert!(picture.iter().enumerate().all(|(at, pixel)| *pixel == frame ^ at as u32));
            seen += 1;
            // Dropped, the picture goes back to the camera.
        }
    }
    world.barrier()?;
    let copied = job.counter(fmpl::Counter::LoanCopied)?;
    assert_eq!(seen, (0..FRAMES).filter(|frame| viewer_of(*frame) == rank).count());
    if rank == 0 {
        println!("{FRAMES} frames were handed to {} viewers, {copied} bytes were copied", viewers.len());
    }
    job.finalize()
}
