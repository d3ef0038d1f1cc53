//! Strided: a sub-matrix goes from rank 0 to rank 1 without being packed, and is transposed on the way by giving the other side
//! another shape; then a triangle goes as a list. Two ranks or more, of which two take part.
//!
//!     cargo build --examples
//!     fmpl run -n 2 target/debug/examples/strided

use fmpl::{Strided, StridedMut};

const ROWS: usize = 60;
const COLUMNS: usize = 80;
const N: usize = 20;

fn at(row: usize, column: usize) -> usize {
    row * COLUMNS + column
}

fn main() -> fmpl::Result<()> {
    let job = fmpl::init(2 + N)?;
    let world = job.world();
    let rank = world.rank();
    if world.size() < 2 {
        eprintln!("strided needs two ranks: fmpl run -n 2 strided");
        job.abort(2);
    }
    let mut matrix: Vec<f64> = (0..ROWS * COLUMNS).map(|k| if rank == 0 { k as f64 } else { -1.0 }).collect();

    // Rows 10 to 29 of columns 5 to 14: 20 runs of 10 numbers, a row of the matrix apart.
    if rank == 0 {
        world.send_block(Strided::new(&matrix[at(10, 5)..], 20, 10, COLUMNS)?, 1, 0)?;
    } else if rank == 1 {
        // It lands elsewhere in a matrix that is otherwise left alone.
        world.recv_block(StridedMut::new(&mut matrix[at(30, 40)..], 20, 10, COLUMNS)?, 0, 0)?;
        for i in 0..ROWS {
            for j in 0..COLUMNS {
                let inside = (30..50).contains(&i) && (40..50).contains(&j);
                let expected = if inside { at(i - 20, j - 35) as f64 } else { -1.0 };
                assert_eq!(matrix[at(i, j)], expected, "row {i}, column {j}");
            }
        }
    }

    // Row 2 + k of rank 0 becomes column k of rank 1: the same bytes, runs of one number on the other side.
    for k in 0..N {
        if rank == 0 {
            world.send(&matrix[at(2 + k, 0)..][..COLUMNS / 2], 1, 2 + k)?;
        } else if rank == 1 {
            world.recv_block(StridedMut::new(&mut matrix[k..], COLUMNS / 2, 1, COLUMNS)?, 0, 2 + k)?;
        }
    }
    if rank == 1 {
        for k in 0..N {
            for j in 0..COLUMNS / 2 {
                assert_eq!(matrix[at(j, k)], at(2 + k, j) as f64);
            }
        }
    }

    // The lower triangle of the first N rows, into one array without gaps.
    if rank == 0 {
        let rows: Vec<&[f64]> = (0..N).map(|i| &matrix[at(i, 0)..=at(i, i)]).collect();
        world.send_list(&rows, 1, 1)?;
    } else if rank == 1 {
        let mut packed = [0.0; N * (N + 1) / 2];
        world.recv(&mut packed, 0, 1)?;
        let expected = (0..N).flat_map(|i| (0..=i).map(move |j| at(i, j) as f64));
        assert!(packed.into_iter().eq(expected));
        println!("a block, {N} transposed rows and a triangle arrived");
    }
    job.finalize()
}
