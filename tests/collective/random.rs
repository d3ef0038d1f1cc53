use crate::begun;
use crate::ranks::bytes::*;
use crate::ranks::calls::*;
use crate::ranks::{Job, has_devices, long};
use fmpl::ffi::c::*;
use fmpl::launch::embedded::Nodes;
use std::ffi::c_void;
use std::ptr::null_mut;
use std::time::{Duration, Instant};

/// a ∘ b for matrices of two rows and columns: it does not commute.
unsafe extern "C" fn product(inout: *mut c_void, input: *const c_void, count: i32) {
    for k in 0..count as usize {
        // SAFETY: the library passes vectors of `count` elements of 16 bytes.
        unsafe {
            let (a, b) = (inout.cast::<[u32; 4]>().add(k), input.cast::<[u32; 4]>().add(k));
            let (x, y) = (a.read_unaligned(), b.read_unaligned());
            a.write_unaligned(times(x, y));
        }
    }
}

fn times(x: [u32; 4], y: [u32; 4]) -> [u32; 4] {
    let dot = |r: usize, c: usize| x[2 * r].wrapping_mul(y[c]).wrapping_add(x[2 * r + 1].wrapping_mul(y[2 + c]));
    [dot(0, 0), dot(0, 1), dot(1, 0), dot(1, 1)]
}

/// Elements of 1000 bytes: a is kept, its last byte replaced by b's, its first counts (which, but for the first ways, must be associative).
unsafe extern "C" fn large(inout: *mut c_void, input: *const c_void, count: i32) {
    for k in 0..count as usize {
        // SAFETY: the library passes vectors of `count` elements of 1000 bytes.
        unsafe {
            let (a, b) = (inout.cast::<u8>().add(1000 * k), input.cast::<u8>().add(1000 * k));
            *a = (*a).wrapping_mul(factor()).wrapping_add(*b);
            *a.add(999) = *b.add(999);
        }
    }
}

/// What a vector is made of and reduced with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    IntSum,
    DoubleSum,
    DoubleMax,
    DoubleMin,
    ComplexMax,
    FloatMinval,
    Product,
    Large,
}
const KINDS: [Kind; 8] = [
    Kind::IntSum,
    Kind::DoubleSum,
    Kind::DoubleMax,
    Kind::DoubleMin,
    Kind::ComplexMax,
    Kind::FloatMinval,
    Kind::Product,
    Kind::Large,
];

impl Kind {
    pub fn bytes(self) -> usize {
        match self {
            Kind::IntSum | Kind::FloatMinval => 4,
            Kind::DoubleSum | Kind::DoubleMax | Kind::DoubleMin => 8,
            Kind::ComplexMax | Kind::Product => 16,
            Kind::Large => 1000,
        }
    }
    pub fn function(self) -> fmpl_func {
        Some(match self {
            Kind::IntSum => fmpl_isum,
            Kind::DoubleSum => fmpl_dsum,
            Kind::DoubleMax => fmpl_damax,
            Kind::DoubleMin => fmpl_damin,
            Kind::ComplexMax => fmpl_zamax,
            Kind::FloatMinval => fmpl_sminval,
            Kind::Product => product,
            Kind::Large => large,
        })
    }
    /// A rank's vector of `count` elements in the call of this seed.
    pub fn vector(self, count: usize, seed: u64, rank: i32) -> Vec<u8> {
        let mut draw = Draw(seed ^ (rank as u64).wrapping_mul(0x1234_5678_9abc_def1));
        let mut v = Vec::with_capacity(count * self.bytes());
        let step = draw.number() | 1;
        let mut x = draw.number();
        for _ in 0..count {
            x = x.wrapping_mul(6364136223846793005).wrapping_add(step);
            let small = ((x >> 33) % 2001) as f64 - 1000.0;
            match self {
                Kind::IntSum => v.extend(((x >> 20) as i32).to_ne_bytes()),
                // Sums of thirds depend on their order.
                Kind::DoubleSum => v.extend((if whole_numbers() { small } else { small / 3.0 }).to_ne_bytes()),
                Kind::DoubleMax | Kind::DoubleMin => v.extend((small % 20.0).to_ne_bytes()),
                Kind::ComplexMax => {
                    v.extend((small % 5.0).to_ne_bytes());
                    v.extend(((small + 17.0) % 3.0).to_ne_bytes());
                }
                Kind::FloatMinval => v.extend((small as f32).to_ne_bytes()),
                Kind::Product => {
                    for k in 0..4u32 {
                        v.extend(((x >> (8 * k)) as u32).to_ne_bytes());
                    }
                }
                Kind::Large => v.extend((0..1000u32).map(|k| (x >> (k % 50)) as u8)),
            }
        }
        v
    }
    /// left = left ∘ right, as the definitions say.
    pub fn fold(self, left: &mut [u8], right: &[u8]) {
        let f64_at = |v: &[u8], at: usize| f64::from_ne_bytes(v[at..at + 8].try_into().unwrap());
        for (a, b) in left.chunks_exact_mut(self.bytes()).zip(right.chunks_exact(self.bytes())) {
            match self {
                Kind::IntSum => {
                    let sum = i32::from_ne_bytes((&*a).try_into().unwrap())
                        .wrapping_add(i32::from_ne_bytes(b.try_into().unwrap()));
                    a.copy_from_slice(&sum.to_ne_bytes());
                }
                Kind::DoubleSum => {
                    let sum = f64_at(a, 0) + f64_at(b, 0);
                    a.copy_from_slice(&sum.to_ne_bytes());
                }
                Kind::DoubleMax | Kind::DoubleMin => {
                    let (x, y) = (f64_at(a, 0), f64_at(b, 0));
                    let larger = self == Kind::DoubleMax;
                    let key = |z: f64| (z.abs(), z);
                    if (larger && key(y) > key(x)) || (!larger && key(y) < key(x)) {
                        a.copy_from_slice(b);
                    }
                }
                Kind::ComplexMax => {
                    let key = |v: &[u8]| (f64_at(v, 0).abs() + f64_at(v, 8).abs(), f64_at(v, 0), f64_at(v, 8));
                    if key(b) > key(a) {
                        a.copy_from_slice(b);
                    }
                }
                Kind::FloatMinval => {
                    let at = |v: &[u8]| f32::from_ne_bytes(v.try_into().unwrap());
                    if at(b) < at(a) {
                        a.copy_from_slice(b);
                    }
                }
                Kind::Product => {
                    let at = |v: &[u8]| -> [u32; 4] {
                        std::array::from_fn(|k| u32::from_ne_bytes(v[4 * k..4 * k + 4].try_into().unwrap()))
                    };
                    let z = times(at(a), at(b));
                    a.chunks_exact_mut(4).zip(z).for_each(|(to, x)| to.copy_from_slice(&x.to_ne_bytes()));
                }
                Kind::Large => {
                    a[0] = a[0].wrapping_mul(factor()).wrapping_add(b[0]);
                    a[999] = b[999];
                }
            }
        }
    }
    pub fn reference(self, count: usize, seed: u64, ranks: i32) -> Vec<u8> {
        let mut left = self.vector(count, seed, 0);
        for rank in 1..ranks {
            self.fold(&mut left, &self.vector(count, seed, rank));
        }
        left
    }
}

/// Ways whose sums are formed in another order than the ranks' get numbers whose sums do not show it.
pub fn whole_numbers() -> bool {
    std::env::var_os("WHOLE_NUMBERS").is_some()
}

fn factor() -> u8 {
    static FACTOR: std::sync::OnceLock<u8> = std::sync::OnceLock::new();
    *FACTOR.get_or_init(|| if whole_numbers() { 1 } else { 3 })
}

/// Memory for a call: from the heap, at an odd address, or from `fmpl_alloc`.
pub struct Memory {
    shared: *mut u8,
    own: Vec<u8>,
    at: usize,
    len: usize,
}

impl Memory {
    pub fn new(contents: &[u8], draw: &mut Draw) -> Memory {
        let (mut shared, mut own, at) = (null_mut(), Vec::new(), draw.below(9));
        if draw.one_in(4) {
            shared = fmpl_alloc(contents.len() + at).cast::<u8>();
            assert!(!shared.is_null(), "{}", last_error());
        } else {
            own = vec![0xee; contents.len() + at];
        }
        let mut m = Memory { shared, own, at, len: contents.len() };
        m.bytes().copy_from_slice(contents);
        m
    }
    pub fn bytes(&mut self) -> &mut [u8] {
        if self.shared.is_null() {
            return &mut self.own[self.at..];
        }
        // SAFETY: `at + len` bytes were allocated.
        unsafe { std::slice::from_raw_parts_mut(self.shared.add(self.at), self.len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if !self.shared.is_null() {
            // SAFETY: from `fmpl_alloc`, no longer used.
            ok(unsafe { fmpl_free(self.shared.cast()) });
        }
    }
}

#[track_caller]
pub fn same(got: &[u8], want: &[u8], what: &str) {
    if got != want {
        let at = (0..want.len()).find(|k| got[*k] != want[*k]).unwrap();
        panic!("{what}: {} bytes, wrong at {at}: {} instead of {}", got.len(), got[at], want[at]);
    }
}

/// Begins a rank of a random program: seed, calls, most bytes.
pub fn begins(indices: i32) -> (u64, usize, usize) {
    init(indices);
    // SAFETY: functions of elements of these sizes.
    unsafe {
        ok(fmpl_func_register(Some(product), 16, 0));
        ok(fmpl_func_register(Some(large), 1000, 0));
    }
    let number = |name: &str| std::env::var(name).unwrap().parse().unwrap();
    (number("SEED"), number("CALLS") as usize, number("MOST") as usize)
}

/// A rank of a random program: all ranks draw the same calls.
pub fn plays() {
    let (seed, calls, most) = begins(1);
    let (me, ranks) = (rank(), size());
    let mut draw = Draw(seed);
    // What only this rank does: pauses, places of buffers.
    let mut own = Draw(seed ^ (me as u64 + 1) << 40);
    for call in 0..calls {
        let drawn = Call::new(&mut draw, ranks, most);
        let text = format!("seed {seed}, call {call} of {ranks} ranks, rank {me}");
        if own.one_in(20) {
            std::thread::sleep(Duration::from_micros(own.below(3000) as u64));
        }
        drawn.plays(&mut own, &text);
    }
    finalize();
}

/// A call that all ranks of a communicator make.
pub struct Call {
    number: u64,
    what: usize,
    root: i32,
    kind: Kind,
    bytes: usize,
}

impl Call {
    pub fn new(draw: &mut Draw, ranks: i32, most: usize) -> Call {
        let (number, what) = (draw.number(), draw.below(32));
        let (root, kind) = (draw.below(ranks as usize) as i32, KINDS[draw.below(KINDS.len())]);
        Call { number, what, root, kind, bytes: draw.size(most) }
    }

    /// Makes the call on the current communicator, and compares what comes of it.
    pub fn plays(&self, own: &mut Draw, text: &str) {
        let Call { number, what, root, kind, bytes } = *self;
        let (me, ranks) = (rank(), size());
        let count = bytes / kind.bytes();
        match what {
            0 => barrier(),
            1..=3 => {
                let sent = message(bytes, number);
                let mine = if me == root { sent.clone() } else { vec![0x55; bytes] };
                let mut m = Memory::new(&mine, own);
                let p = m.bytes().as_mut_ptr().cast();
                // SAFETY: a buffer of that many bytes.
                ok(unsafe { fmpl_bcast(p, bytes, root, comm()) });
                same(m.bytes(), &sent, &format!("{text}: bcast from {root}"));
            }
            4..=6 => {
                let mine = kind.vector(count, number, me);
                let mut m = Memory::new(&mine, own);
                let p = m.bytes().as_mut_ptr().cast();
                // SAFETY: a buffer of that many elements.
                ok(unsafe { fmpl_reduce(p, count as i32, kind.function(), root, comm(), null_mut()) });
                let want = if me == root { kind.reference(count, number, ranks) } else { mine };
                same(m.bytes(), &want, &format!("{text}: reduce {kind:?} to {root}"));
            }
            7..=9 => {
                let mut m = Memory::new(&kind.vector(count, number, me), own);
                let p = m.bytes().as_mut_ptr().cast();
                // SAFETY: as above.
                ok(unsafe { fmpl_allreduce(p, count as i32, kind.function(), comm(), null_mut()) });
                same(m.bytes(), &kind.reference(count, number, ranks), &format!("{text}: allreduce {kind:?}"));
            }
            10..=13 => moves_blocks(what - 10, bytes / ranks as usize, root, number, own, text),
            14 => {
                // A part of everybody's blocks comes to each.
                let count = count / ranks as usize;
                let mut all = Memory::new(&kind.vector(count * ranks as usize, number, me), own);
                let mut part = Memory::new(&vec![0xaa; count * kind.bytes()], own);
                let (a, p) = (all.bytes().as_ptr().cast(), part.bytes().as_mut_ptr().cast());
                // SAFETY: buffers of that many elements.
                ok(unsafe { fmpl_reduce_scatter(a, p, count as i32, kind.function(), comm()) });
                let want = kind.reference(count * ranks as usize, number, ranks);
                let at = me as usize * count * kind.bytes();
                let want = &want[at..at + count * kind.bytes()];
                same(part.bytes(), want, &format!("{text}: reduce_scatter {kind:?}"));
            }
            15 => {
                let mut m = Memory::new(&kind.vector(count, number, me), own);
                let p = m.bytes().as_mut_ptr().cast();
                // SAFETY: as above.
                ok(unsafe { fmpl_scan(p, count as i32, kind.function(), comm()) });
                same(m.bytes(), &kind.reference(count, number, me + 1), &format!("{text}: scan {kind:?}"));
            }
            20 | 21 => reduces_in_a_group(kind, count, number, own, text),
            16..=19 => begun::one(number, root, kind, bytes, own, text),
            30 | 31 => with_neighbours(number, bytes, own, text),
            22..=25 => begun::several(number, root, kind, bytes, own, text),
            _ => begun::one(number, root, kind, bytes, own, text),
        }
    }
}

/// Gather, allgather, scatter, alltoall of blocks of `size` bytes.
fn moves_blocks(call: usize, size: usize, root: i32, number: u64, own: &mut Draw, text: &str) {
    let (me, ranks) = (rank() as usize, crate::ranks::calls::size() as usize);
    let block = |from: usize, to: usize| message(size, number ^ (from * 1000 + to) as u64);
    let all: Vec<usize> = (0..ranks).collect();
    let (to_all, is_root) = (call >= 2, me == root as usize);
    let gives: Vec<u8> = match call {
        2 if !is_root => vec![],
        _ if to_all => all.iter().flat_map(|to| block(me, *to)).collect(),
        _ => block(me, 0),
    };
    let want: Vec<u8> = match call {
        0 if !is_root => vec![],
        0 | 1 => all.iter().flat_map(|from| block(*from, 0)).collect(),
        2 => block(root as usize, me),
        _ => all.iter().flat_map(|from| block(*from, me)).collect(),
    };
    let mut give = Memory::new(&gives, own);
    let mut take = Memory::new(&vec![0x77; want.len()], own);
    let in_place = own.one_in(3);
    if in_place && call == 1 {
        take.bytes()[me * size..][..size].copy_from_slice(give.bytes());
    }
    let (mut g, t) = (give.bytes().as_ptr(), take.bytes().as_mut_ptr());
    // SAFETY: buffers as each call wants them.
    unsafe {
        match call {
            0 => ok(fmpl_gather(g.cast(), size, t.cast(), root, comm())),
            1 => {
                if in_place {
                    g = t.add(me * size);
                }
                ok(fmpl_allgather(g.cast(), size, t.cast(), comm()));
            }
            2 => ok(fmpl_scatter(g.cast(), size, t.cast(), root, comm())),
            _ => ok(fmpl_alltoall(g.cast(), size, t.cast(), comm())),
        }
    }
    let name = ["gather", "allgather", "scatter", "alltoall"][call];
    same(take.bytes(), &want, &format!("{text}: {name} of {size}, root {root}"));
    same(give.bytes(), &gives, &format!("{text}: {name} of {size}, what was given"));
}

/// A grid of all ranks or some, on which neighbours exchange blocks.
fn with_neighbours(number: u64, bytes: usize, own: &mut Draw, text: &str) {
    let (me, ranks) = (rank(), size());
    let rows = 1 + (number % 3) as i32 % ranks;
    let (dims, closes) = ([rows, ranks / rows], [(number >> 8) as i32 & 1, (number >> 9) as i32 & 1]);
    let mut cart = NULL;
    // SAFETY: two dimensions.
    ok(unsafe { fmpl_cart_create(comm(), 2, dims.as_ptr(), closes.as_ptr(), (&mut cart).into()) });
    assert_eq!(cart != NULL, me < dims[0] * dims[1], "{text}");
    if cart == NULL {
        return;
    }
    let (at, one) = ([me / dims[1], me % dims[1]], number >> 10 & 1 == 1);
    // Before and behind, along rows and columns.
    let around: Vec<Option<i32>> = (0..4)
        .map(|k| {
            let mut place = at;
            place[k / 2] += if k % 2 == 0 { -1 } else { 1 };
            for d in 0..2 {
                place[d] = if closes[d] == 1 { place[d].rem_euclid(dims[d]) } else { place[d] };
            }
            let inside = (0..2).all(|d| (0..dims[d]).contains(&place[d]));
            inside.then_some(place[0] * dims[1] + place[1])
        })
        .collect();
    let each = bytes / 4;
    let block = |from: i32, k: usize| message(each, number ^ (from as u64 * 100 + if one { 0 } else { k as u64 }));
    let given: Vec<u8> = (0..if one { 1 } else { 4 }).flat_map(|k| block(me, k)).collect();
    let want: Vec<u8> = (0..4).flat_map(|k| around[k].map_or(vec![0x77; each], |from| block(from, k ^ 1))).collect();
    let (mut give, mut take) = (Memory::new(&given, own), Memory::new(&vec![0x77; 4 * each], own));
    let (g, t) = (give.bytes().as_ptr().cast(), take.bytes().as_mut_ptr().cast());
    // SAFETY: four blocks, but for one that goes to all.
    ok(unsafe {
        match one {
            true => fmpl_neighbour_allgather(g, each, t, cart),
            false => fmpl_neighbour_alltoall(g, each, t, cart),
        }
    });
    same(take.bytes(), &want, &format!("{text}: neighbours of {each} on {dims:?} {closes:?}"));
    free(cart);
}

/// A reduction in a group drawn for it; the others do not take part.
fn reduces_in_a_group(kind: Kind, count: usize, number: u64, own: &mut Draw, text: &str) {
    let (me, ranks) = (rank(), size());
    // A tree combines them: these must be associative.
    let kind = if matches!(kind, Kind::DoubleSum | Kind::Large) && !whole_numbers() { Kind::Product } else { kind };
    let group: Vec<i32> = (0..ranks).filter(|r| number >> r & 1 == 1 || *r == ranks - 1).collect();
    let root = group[(number >> 32) as usize % group.len()];
    if !group.contains(&me) {
        return;
    }
    let bits = [group.iter().fold(0u64, |bits, r| bits | 1 << r)];
    let mine = kind.vector(count, number, me);
    let mut m = Memory::new(&mine, own);
    let p = m.bytes().as_mut_ptr().cast();
    // SAFETY: a vector of that many elements, a word for up to 64 ranks.
    ok(unsafe { fmpl_mcast_reduce(p, count as i32, kind.function(), bits.as_ptr(), root, comm()) });
    let mut want = kind.vector(count, number, group[0]);
    group[1..].iter().for_each(|r| kind.fold(&mut want, &kind.vector(count, number, *r)));
    let want = if me == root { want } else { mine };
    same(m.bytes(), &want, &format!("{text}: mcast_reduce {kind:?} to {root} of {group:?}"));
    // And an exchange in the same group.
    let (each, many) = (count % 5000 + 1, group.len());
    let block = |from: i32, to: i32| message(each, number ^ (from as u64 * 100 + to as u64));
    let given: Vec<u8> = group.iter().flat_map(|to| block(me, *to)).collect();
    let want: Vec<u8> = group.iter().flat_map(|from| block(*from, me)).collect();
    let (mut give, mut take) = (Memory::new(&given, own), Memory::new(&vec![0x55; each * many], own));
    let (g, t) = (give.bytes().as_ptr().cast(), take.bytes().as_mut_ptr().cast());
    // SAFETY: a block for each member, a word for up to 64 ranks.
    ok(unsafe { fmpl_mcast_alltoall(g, each, t, bits.as_ptr(), comm()) });
    same(take.bytes(), &want, &format!("{text}: mcast_alltoall of {each} in {group:?}"));
}

fn play(seed: u64, settings: &str) {
    let mut draw = Draw(seed);
    let most_ranks = if draw.one_in(4) { 16 } else { 6 };
    let ranks = 1 + draw.below(most_ranks);
    let most = [100, 5000, 100_000, 1_000_000][draw.below(4)];
    let calls = if most > 100_000 { 12 } else { 60 };
    program(ranks, "plays", seed, calls, most, settings).seconds(60).run();
}

pub fn program(ranks: usize, body: &str, seed: u64, calls: usize, most: usize, settings: &str) -> Job {
    Job::new(ranks, body).env("SEED", seed).env("CALLS", calls).env("MOST", most).settings(settings)
}

/// Between four nodes that share no memory, over RDMA: all calls of a random program, by every way between nodes. Emulated processors are
/// slow, so a short run has few.
pub fn over_rdma() {
    if !has_devices() {
        return;
    }
    let short = std::env::var_os("RIG_SHORT").is_some();
    let ways = [
        "FMPL_WAIT=adaptive",
        "FMPL_WAIT=block FMPL_COLL_FAR_BCAST=ring FMPL_COLL_FAR_ALLREDUCE=halving",
        "FMPL_COLL_BETWEEN=flat FMPL_COLL_FAR_BCAST=tree FMPL_COLL_FAR_ALLREDUCE=doubling",
        "FMPL_COLL_BETWEEN=flat FMPL_COLL_FAR_BCAST=chain FMPL_COLL_FAR_ALLREDUCE=halving",
    ];
    for (k, way) in ways.iter().enumerate().take(if short { 1 } else { ways.len() }) {
        let programs = if short { 1 } else { 2 };
        for (n, seed) in seeds().skip(400 + k * 10).take(programs).enumerate() {
            let (ranks, nodes) = if short || n == 0 { (5, Nodes::Blocks(4)) } else { (8, Nodes::Cyclic(4)) };
            let (calls, most) = if short { (30, 20_000) } else { (60, [5000, 200_000][k % 2]) };
            let since = Instant::now();
            program(ranks, "plays", seed, calls, most, &format!("WHOLE_NUMBERS=1 {way}"))
                .nodes(nodes)
                .seconds(240)
                .run();
            println!("  {calls} calls of {ranks} ranks on 4 nodes, {way}: {:.1} s", since.elapsed().as_secs_f64());
        }
    }
    if !short {
        for nodes in [Nodes::Blocks(4), Nodes::Cyclic(4)] {
            Job::new(5, "compares bits").nodes(nodes).seconds(240).run();
        }
    }
}

pub fn seeds() -> Box<dyn Iterator<Item = u64>> {
    if let Ok(seed) = std::env::var("FMPL_TEST_SEED") {
        return Box::new([seed.parse().unwrap()].into_iter());
    }
    // The same programs in every short run; the first one once used a cell twice in a call. A long run plays others each time.
    let first = if long() { std::process::id() as u64 * 1000 } else { 18_779_001 };
    Box::new(first..)
}

pub fn automatic() {
    let (since, limit) = (Instant::now(), Duration::from_secs(if long() { 60 } else { 5 }));
    let mut played = 0;
    for seed in seeds().take_while(|_| since.elapsed() < limit) {
        play(seed, ["FMPL_LOG=warn", "FMPL_WAIT=block", "FMPL_CMA=off", "FMPL_WAIT=adaptive"][played % 4]);
        played += 1;
    }
    println!("  {played} random programs");
}

/// Every way by itself, for all sizes that it can serve.
const WAYS: [&str; 19] = [
    "FMPL_TAKE_OVER=on",
    "FMPL_TAKE_OVER=off",
    "FMPL_COLL_BARRIER=flat",
    "FMPL_COLL_BARRIER=groups",
    "FMPL_COLL_BCAST=cells",
    "FMPL_COLL_BCAST=pull",
    "FMPL_COLL_BCAST=coop FMPL_COLL_PIECE=4k",
    "FMPL_COLL_BCAST=coop",
    "FMPL_COLL_REDUCE=cells",
    "FMPL_COLL_REDUCE=pull FMPL_COLL_PIECE=4k",
    "FMPL_COLL_ALLREDUCE=cells",
    "FMPL_COLL_ALLREDUCE=root",
    "FMPL_COLL_ALLREDUCE=slices",
    "FMPL_COLL_ALLREDUCE=pull FMPL_COLL_PIECE=4k",
    "FMPL_COLL_ALLREDUCE=pull FMPL_COLL_REDUCE=pull",
    "FMPL_COLL_EXCHANGE=cells",
    "FMPL_COLL_EXCHANGE=pull",
    "FMPL_COLL_SCAN=cells",
    "FMPL_COLL_SCAN=chain",
];

pub fn forced() {
    for (k, way) in WAYS.iter().enumerate() {
        for seed in seeds().skip(k * 10).take(if long() { 20 } else { 2 }) {
            play(seed, way);
        }
    }
}

/// Ways between nodes, on pretended ones.
const BETWEEN: [&str; 6] = [
    "FMPL_COLL_NODES=2",
    "FMPL_COLL_NODES=c2",
    "FMPL_COLL_NODES=3 FMPL_COLL_FAR_BCAST=ring FMPL_COLL_FAR_ALLREDUCE=halving",
    "FMPL_COLL_NODES=16 FMPL_COLL_FAR_BCAST=tree FMPL_COLL_FAR_ALLREDUCE=halving FMPL_WAIT=block",
    "FMPL_COLL_NODES=2 FMPL_COLL_BETWEEN=flat FMPL_COLL_FAR_ALLREDUCE=doubling FMPL_CMA=off",
    "FMPL_COLL_NODES=4 FMPL_COLL_BETWEEN=flat FMPL_COLL_FAR_BCAST=chain FMPL_COLL_FAR_ALLREDUCE=halving",
];

pub fn between() {
    for (k, way) in BETWEEN.iter().enumerate() {
        for seed in seeds().skip(300 + k * 10).take(if long() { 20 } else { 2 }) {
            play(seed, &format!("WHOLE_NUMBERS=1 {way}"));
        }
    }
    for ranks in [3, 5, 8] {
        for way in BETWEEN {
            Job::new(ranks, "compares bits").settings(way).run();
        }
    }
}

/// A sum whose bits depend on the order in which it is formed: the same at all ranks, and every time.
pub fn compares_bits() {
    init(1);
    let (me, ranks) = (rank(), size());
    for count in [3, 700, 20_000] {
        let mut results = Vec::new();
        for turn in 0..2 {
            if turn == me % 2 {
                sleep_ms(2);
            }
            let mut v = Kind::DoubleSum.vector(count, 77, me);
            // SAFETY: a vector of so many elements.
            ok(unsafe { fmpl_allreduce(v.as_mut_ptr().cast(), count as i32, Some(fmpl_dsum), comm(), null_mut()) });
            results.push(v);
        }
        same(&results[0], &results[1], "the second time");
        let mut all = vec![0; results[0].len() * ranks as usize];
        // SAFETY: room for everybody's vector.
        ok(unsafe { fmpl_allgather(results[0].as_ptr().cast(), results[0].len(), all.as_mut_ptr().cast(), comm()) });
        all.chunks_exact(results[0].len()).for_each(|theirs| same(theirs, &results[0], "at another rank"));
    }
    finalize();
}
