//! Who am I, and who are the others: each rank publishes a value through the launcher and reads everybody's.
//!
//! `fmpl run -n 4 -- target/debug/examples/place [bytes [exit code]]`: rank r puts so many bytes (100 without a number),
//! meets the others, reads all, and prints one line. With an exit code, rank 0 aborts the job with it. With `--few` each reads but the values
//! of the ranks at distances of powers of two, with `--next` that of the next rank. With `--costs` each also says how many connections it
//! has had at a time, what it has read, and how many descriptors it has.

use fmpl::launch::Launch;

fn main() -> fmpl::Result<()> {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let bytes = numbers.first().copied().unwrap_or(100);
    let value_of = |rank: u32| -> Vec<u8> { (0..bytes).map(|i| (i as u8) ^ (rank as u8)).collect() };

    let launch = Launch::find()?;
    launch.put(&format!("value-{}", launch.rank()), &value_of(launch.rank()))?;
    launch.fence()?;
    let few = std::env::args().any(|a| a == "--few");
    let next = std::env::args().any(|a| a == "--next");
    let far = |rank: u32| (launch.size() + rank - launch.rank()) % launch.size();
    let near = |rank: &u32| if next { far(*rank) == 1 } else { !few || far(*rank).is_power_of_two() };
    for rank in (0..launch.size()).filter(near) {
        assert!(
            launch.get(rank, &format!("value-{rank}"))? == value_of(rank),
            "rank {rank}'s value came back different"
        );
    }
    let absent = format!("nobody-put-this-{}", launch.rank());
    assert!(launch.get(0, &absent).unwrap_err().detail().contains(&absent));
    println!(
        "rank {} of {}, here {:?}, {bytes} bytes of each read",
        launch.rank(),
        launch.size(),
        launch.local_ranks()
    );

    launch.fence()?;
    if std::env::args().any(|a| a == "--costs") {
        let (costs, open) = (launch.costs(), std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count));
        println!(
            "rank {}: {} connections, {} bytes read, {open} descriptors",
            launch.rank(),
            costs.connections,
            costs.bytes_read
        );
    }
    if let (Some(code), 0) = (numbers.get(1), launch.rank()) {
        launch.abort(*code as i32);
    }
    launch.fence()?;
    launch.finalize()
}
