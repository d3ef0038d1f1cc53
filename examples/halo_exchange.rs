//! Halo exchange: Jacobi's method for the heat equation on a square, cut into as many columns of blocks as there are ranks. Each
//! rank keeps a copy of its neighbours' border columns. A column of a row-major array is strided: it is sent as a block, not packed.
//! The result is compared with the same computation on one rank. Up to 30 ranks.
//!
//!     cargo build --release --examples
//!     fmpl run -n 4 target/release/examples/halo_exchange

use std::ops::Range;

use fmpl::Strided;

const ROWS: usize = 48;
const COLUMNS: usize = 60;
/// Numbers in a row of the array: my columns between two columns of halo.
const WIDE: usize = COLUMNS + 2;
const STEPS: usize = 100;
const LEFTWARDS: usize = 0;
const RIGHTWARDS: usize = 1;

type Field = Vec<f64>;

/// The temperature at the beginning, and for ever at the border.
fn given(row: usize, column: usize) -> f64 {
    match (row, column) {
        (0, _) => 100.0,
        (_, 0) => 50.0,
        _ if row == ROWS - 1 || column == COLUMNS - 1 => 10.0,
        _ => 0.0,
    }
}

/// One step for the inner points of these columns.
fn step(old: &[f64], new: &mut [f64], columns: Range<usize>) {
    for i in 1..ROWS - 1 {
        for at in columns.clone().map(|j| i * WIDE + j) {
            new[at] = 0.25 * (old[at - WIDE] + old[at + WIDE] + old[at - 1] + old[at + 1]);
        }
    }
}

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(2)?;
    let world = job.world();
    let (rank, size) = (world.rank(), world.size());
    assert!(size <= COLUMNS / 2, "at most {} ranks", COLUMNS / 2);
    // My columns are first to first + width - 1; in my array they are 1 to width.
    let first = COLUMNS * rank / size;
    let width = COLUMNS * (rank + 1) / size - first;
    let left = rank.checked_sub(1);
    let right = Some(rank + 1).filter(|r| *r < size);

    let start: Field = (0..ROWS * WIDE).map(|k| given(k / WIDE, (first + k % WIDE).saturating_sub(1))).collect();
    let alone: Field = (0..ROWS * WIDE).map(|k| given(k / WIDE, (k % WIDE).saturating_sub(1))).collect();
    let (mut old, mut new) = (start.clone(), start);
    let (mut whole_old, mut whole_new) = (alone.clone(), alone);
    // What is lent for a receive cannot be read meanwhile, so the halo arrives in columns of its own.
    let mut halo = [[0.0; ROWS]; 2];

    for _ in 0..STEPS {
        let [halo_left, halo_right] = &mut halo;
        world.scope(|s| {
            // Posted first, so that the neighbours can write straight into the halo. Towards `None` nothing happens.
            let from_left = s.irecv(halo_left, left, RIGHTWARDS)?;
            let from_right = s.irecv(halo_right, right, LEFTWARDS)?;
            let to_left = s.isend_block(Strided::new(&old[1..], ROWS, 1, WIDE)?, left, LEFTWARDS)?;
            let to_right = s.isend_block(Strided::new(&old[width..], ROWS, 1, WIDE)?, right, RIGHTWARDS)?;
            // What needs no halo is computed meanwhile.
            step(&old, &mut new, 2..width);
            from_left.wait()?;
            from_right.wait()?;
            to_left.wait()?;
            to_right.wait()
        })?;
        for i in 0..ROWS {
            old[i * WIDE] = halo[0][i];
            old[i * WIDE + width + 1] = halo[1][i];
        }
        if left.is_some() {
            step(&old, &mut new, 1..2);
        }
        if right.is_some() {
            step(&old, &mut new, width..width + 1);
        }
        std::mem::swap(&mut old, &mut new);

        step(&whole_old, &mut whole_new, 2..COLUMNS);
        std::mem::swap(&mut whole_old, &mut whole_new);
    }
    for i in 0..ROWS {
        let mine = &old[i * WIDE + 1..][..width];
        assert_eq!(mine, &whole_old[i * WIDE + 1 + first..][..width], "row {i}");
    }
    world.barrier()?;
    if rank == 0 {
        println!("{STEPS} steps on {size} ranks: the same as on one");
    }
    job.finalize()
}
