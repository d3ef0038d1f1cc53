//! Ranks from outside: processes that something else has started, and that have a directory in common, become a job.
//!
//! `outside DIRECTORY RANK SIZE exchange|id`, once for each rank: by an allgather through files, or by an identifier that rank 0 leaves there.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Leaves bytes under a name, whole or not at all.
fn leave(at: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let part = at.with_extension("part");
    std::fs::write(&part, bytes)?;
    std::fs::rename(part, at)
}

/// Bytes that somebody leaves there.
fn find(at: &Path) -> std::io::Result<Vec<u8>> {
    let since = Instant::now();
    loop {
        match std::fs::read(at) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound && since.elapsed() < Duration::from_secs(60) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            found => return found,
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let [_, directory, rank, size, how] = &args[..] else {
        return Err("outside DIRECTORY RANK SIZE exchange|id".into());
    };
    let (directory, rank, size): (PathBuf, usize, usize) = (directory.into(), rank.parse()?, size.parse()?);
    let mut calls = 0;
    let job = match how.as_str() {
        "id" => {
            let at = directory.join("id");
            if rank == 0 {
                leave(&at, fmpl::Id::create()?.as_bytes())?;
            }
            let bytes: [u8; 128] = find(&at)?.try_into().map_err(|_| "no identifier")?;
            fmpl::init_id(&fmpl::Id::from(bytes), rank, size, 4)?
        }
        _ => fmpl::init_with(rank, size, 4, |mine, all| {
            calls += 1;
            leave(&directory.join(format!("{calls}-{rank}")), mine)?;
            for (of, part) in all.chunks_exact_mut(mine.len()).enumerate() {
                part.copy_from_slice(&find(&directory.join(format!("{calls}-{of}")))?);
            }
            std::io::Result::Ok(())
        })?,
    };
    let world = job.world();
    let mut sum = [rank as i32];
    world.allreduce(&mut sum, fmpl::Sum)?;
    println!("rank {} of {}: {}", world.rank(), world.size(), sum[0]);
    job.finalize()?;
    Ok(())
}
