//! A hash table over all ranks' memory: every rank puts and gets on its own, by remote atomic operations; no rank serves another. Any
//! number of ranks.
//!
//! A slot is two words, key and value, in the memory of the rank that the key's hash names. Who puts a key takes the first empty slot
//! from there by compare-and-swap, and then owns that key's value.
//!
//!     cargo build --examples
//!     fmpl run -n 4 target/debug/examples/hash_table

use fmpl::{Global, GlobalAddress, Result, Shared};

/// Slots of a rank.
const SLOTS: usize = 4096;
const KEYS: u64 = 1000;
const EMPTY: u64 = 0;

struct Table<'g> {
    global: &'g Global<'g>,
    /// This rank's part.
    own: Shared<'g, u64>,
    /// Where everybody's part is.
    parts: Vec<GlobalAddress>,
}

impl<'g> Table<'g> {
    fn new(global: &'g Global<'g>) -> Result<Table<'g>> {
        let own = global.shared::<u64>(2 * SLOTS)?;
        // Everybody writes its address into its starter memory and reads the others'.
        global.write(global.starter(global.rank())?, &[own.address(0).bits()])?;
        global.sync()?;
        let mut parts = Vec::new();
        for rank in 0..global.size() {
            let mut bits = [0];
            global.read(global.starter(rank)?, &mut bits)?;
            parts.push(GlobalAddress::from_bits(bits[0]));
        }
        Ok(Table { global, own, parts })
    }

    /// The addresses of the slots at which a key may be, in order.
    fn places(&self, key: u64) -> impl Iterator<Item = GlobalAddress> + '_ {
        let all = SLOTS * self.parts.len();
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % all;
        (0..all).map(move |n| {
            let slot = (first + n) % all;
            self.parts[slot % self.parts.len()] + slot / self.parts.len() * 16
        })
    }

    /// Puts a value under a key that is not 0.
    fn put(&self, key: u64, value: u64) -> Result<()> {
        for place in self.places(key) {
            let found = self.global.atomic(place).compare_exchange(EMPTY, key)?;
            if found == EMPTY || found == key {
                return self.global.atomic(place + 8).swap(value).map(|_| ());
            }
        }
        panic!("the table is full");
    }

    fn get(&self, key: u64) -> Result<Option<u64>> {
        for place in self.places(key) {
            match self.global.atomic::<u64>(place).load()? {
                EMPTY => return Ok(None),
                found if found == key => return self.global.atomic(place + 8).load().map(Some),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn main() -> Result<()> {
    let job = fmpl::init(0)?;
    let global = Global::open(&job)?;
    let (me, size) = (global.rank() as u64, global.size() as u64);
    let table = Table::new(&global)?;
    // Every rank's own keys, and one that all put.
    for n in 0..KEYS {
        table.put(1 + me + n * size, n * n + me)?;
    }
    table.put(u64::MAX, me)?;
    global.sync()?;
    for key in 0..KEYS * size {
        assert_eq!(table.get(1 + key)?, Some((key / size) * (key / size) + key % size), "key {key}");
    }
    assert!(table.get(u64::MAX)?.is_some_and(|rank| rank < size));
    assert_eq!(table.get(KEYS * size + 1)?, None);
    let here = (0..SLOTS).filter(|slot| table.own.get(2 * slot) != EMPTY).count();
    println!("rank {me} of {size} has {here} of the keys; {size} ranks put {KEYS} keys each and found all");
    global.sync()?;
    drop(table);
    global.close()?;
    job.finalize()
}
