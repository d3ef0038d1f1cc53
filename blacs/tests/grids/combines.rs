//! Combines: against a reference that is computed at each process, for all types; the same bits everywhere and every time.

use std::fmt::Debug;

use crate::names::*;

use crate::Table;
use crate::grid::{ALL, Grid, letters, pinfo, system};
use crate::ranks::{self, Job, said};

pub const TABLE: Table = (
    &[("combines_of_every_kind", combines), ("the_same_bits_everywhere_and_every_time", coherent)],
    &[("combines", combines_body), ("coherent", coherent_body)],
);

fn combines() {
    let (some, more) = ([1, 3, 4, 7], [2, 8]);
    for ranks in some.into_iter().chain(more.into_iter().filter(|_| ranks::long())) {
        Job::new(ranks, "combines").run();
    }
}

fn combines_body() {
    let (_, all) = pinfo();
    for rows in (1..=all).filter(|r| (all % r == 0 || *r == 2) && (*r < 4 || *r < all)) {
        let columns = all / rows;
        let grid = Grid::init(system(), b"C\0", rows, columns);
        if !grid.is_mine() {
            continue;
        }
        check::<i32>(&grid, &I);
        check::<f32>(&grid, &S);
        check::<f64>(&grid, &D);
        check::<[f32; 2]>(&grid, &C);
        check::<[f64; 2]>(&grid, &Z);
        grid.exit();
    }
    Cblacs_exit(0);
}

/// The three routines of a type, on raw memory: (grid, scope, topology, m, n, a, lda, rdest, cdest), and with RA, CA, LDIA.
struct Routines {
    sum: fn(&Grid, &'static [u8; 2], &'static [u8; 2], i32, i32, *mut u8, i32, i32, i32),
    extreme:
        [fn(&Grid, &'static [u8; 2], &'static [u8; 2], i32, i32, *mut u8, i32, *mut i32, *mut i32, i32, i32, i32); 2],
}

macro_rules! routines {
    ($($name:ident: $sum:ident $amx:ident $amn:ident;)*) => { $(
        const $name: Routines = Routines {
            sum: |g, s, t, m, n, a, lda, r, c| {
                // SAFETY: letters with their ends; `check`, which alone calls this, gives matrices of the type and size it says.
                unsafe { $sum(g.handle, letters(s), letters(t), m, n, a.cast(), lda, r, c) }
            },
            extreme: [
                // SAFETY: as above.
                |g, s, t, m, n, a, lda, ra, ca, ldia, r, c| unsafe {
                    $amx(g.handle, letters(s), letters(t), m, n, a.cast(), lda, ra, ca, ldia, r, c)
                },
                // SAFETY: as above.
                |g, s, t, m, n, a, lda, ra, ca, ldia, r, c| unsafe {
                    $amn(g.handle, letters(s), letters(t), m, n, a.cast(), lda, ra, ca, ldia, r, c)
                },
            ],
        };
    )* };
}
routines! {
    I: Cigsum2d Cigamx2d Cigamn2d;
    S: Csgsum2d Csgamx2d Csgamn2d;
    D: Cdgsum2d Cdgamx2d Cdgamn2d;
    C: Ccgsum2d Ccgamx2d Ccgamn2d;
    Z: Czgsum2d Czgamx2d Czgamn2d;
}

/// An element for the reference: made of two small integers, so that sums are exact.
trait Number: Copy + PartialEq + Debug {
    fn of(re: i32, im: i32) -> Self;
    fn parts(self) -> (i32, i32);
}
macro_rules! numbers {
    ($($t:ty)*) => { $(
        impl Number for $t {
            fn of(re: i32, _: i32) -> Self { re as $t }
            fn parts(self) -> (i32, i32) { (self as i32, 0) }
        }
    )* };
}
numbers!(i32 f32 f64);
impl Number for [f32; 2] {
    fn of(re: i32, im: i32) -> Self {
        [re as f32, im as f32]
    }
    fn parts(self) -> (i32, i32) {
        (self[0] as i32, self[1] as i32)
    }
}
impl Number for [f64; 2] {
    fn of(re: i32, im: i32) -> Self {
        [re as f64, im as f64]
    }
    fn parts(self) -> (i32, i32) {
        (self[0] as i32, self[1] as i32)
    }
}

/// Few different values, so that there are ties of one sign and of both.
fn element<T: Number>(process: i32, k: usize, salt: i32) -> T {
    let h =
        (process as u32).wrapping_mul(2_654_435_761) ^ (k as u32).wrapping_mul(40_503) ^ (salt as u32).wrapping_mul(97);
    let h = h ^ (h >> 15);
    T::of((h % 7) as i32 - 3, (h / 7 % 5) as i32 - 2)
}

fn size((re, im): (i32, i32)) -> i32 {
    re.abs() + im.abs()
}

fn check<T: Number>(grid: &Grid, routines: &Routines) {
    let mut round = 0;
    for scope in [b"r\0", b"c\0", ALL] {
        // The members of my scope, in its order.
        let members: Vec<(i32, i32)> = match scope {
            b"r\0" => (0..grid.columns).map(|c| (grid.row, c)).collect(),
            b"c\0" => (0..grid.rows).map(|r| (r, grid.col)).collect(),
            _ => (0..grid.rows).flat_map(|r| (0..grid.columns).map(move |c| (r, c))).collect(),
        };
        for (m, n, lda) in [(1, 1, 1), (3, 5, 3), (3, 5, 4), (0, 4, 1), (33, 70, 33), (33, 70, 34), (4000, 40, 4000)] {
            // -1, 0: the reference takes a column of -1 for all, too.
            for dest in [(-1, -1), (0, -1), (grid.rows - 1, 0), (0, grid.columns - 1)] {
                round += 1;
                // Long ones, and those of more than one piece, for some types and grids only.
                let real = T::of(0, 1) == T::of(0, 0);
                let (long, huge) = (m * n > 2000, m * n > 100_000);
                if long && size_of::<T>() != 8 || huge && (scope != ALL || !real || dest.0 == 0 || members.len() > 4) {
                    continue;
                }
                let top = [b" \0", b"h\0", b"i\0", b"t\0", b"2\0", b"f\0", b"m\0", b"s\0", b"d\0"][round as usize % 9];
                // In a row the destination is a column of my row, in a column a row of my column.
                let to_all = dest.1 == -1;
                let at = match scope {
                    b"r\0" => (grid.row, dest.1),
                    b"c\0" => (dest.0, grid.col),
                    _ => dest,
                };
                let mine = to_all || at == (grid.row, grid.col);
                let base = if to_all { 0 } else { members.iter().position(|p| *p == at).expect("a member") };
                let number = |p: (i32, i32)| p.0 * grid.columns + p.1;
                let count = (lda * n) as usize;
                let at_process = |p: i32| (0..count).map(|k| element::<T>(p, k, round)).collect::<Vec<T>>();
                let theirs: Vec<Vec<T>> = members.iter().map(|p| at_process(number(*p))).collect();
                let before = at_process(number((grid.row, grid.col)));
                let inside = |k: usize| ((k as i32) % lda) < m && k < count;

                let mut a = before.clone();
                (routines.sum)(grid, scope, top, m, n, a.as_mut_ptr().cast(), lda, dest.0, dest.1);
                for k in 0..count {
                    let parts = theirs.iter().map(|t| t[k].parts());
                    let sum = parts.fold((0, 0), |s, p| (s.0 + p.0, s.1 + p.1));
                    let wanted = if mine && inside(k) { T::of(sum.0, sum.1) } else { before[k] };
                    assert_eq!(a[k], wanted, "sum {scope:?} {m}x{n}/{lda} to {dest:?}, element {k}");
                }

                for (largest, extreme) in [true, false].into_iter().zip(routines.extreme) {
                    let better =
                        |x: (i32, i32), y: (i32, i32)| if largest { size(x) > size(y) } else { size(x) < size(y) };
                    let mut a = before.clone();
                    let none = std::ptr::null_mut();
                    extreme(grid, scope, top, m, n, a.as_mut_ptr().cast(), lda, none, none, -1, dest.0, dest.1);
                    for k in 0..count {
                        let mut best = theirs[0][k].parts();
                        for t in &theirs[1..] {
                            let p = t[k].parts();
                            if better(p, best) || size(p) == size(best) && p > best {
                                best = p;
                            }
                        }
                        let wanted = if mine && inside(k) { T::of(best.0, best.1) } else { before[k] };
                        assert_eq!(a[k], wanted, "extreme {largest} {scope:?} {m}x{n}/{lda} to {dest:?}, element {k}");
                    }
                    let ldia = m.max(1) + 2;
                    let (mut a, mut ra, mut ca) =
                        (before.clone(), vec![-7; (ldia * n) as usize], vec![-7; (ldia * n) as usize]);
                    extreme(
                        grid,
                        scope,
                        top,
                        m,
                        n,
                        a.as_mut_ptr().cast(),
                        lda,
                        ra.as_mut_ptr(),
                        ca.as_mut_ptr(),
                        ldia,
                        dest.0,
                        dest.1,
                    );
                    for j in 0..n {
                        for i in 0..ldia {
                            let place = (j * ldia + i) as usize;
                            if i >= m || !mine {
                                assert_eq!((ra[place], ca[place]), (-7, -7));
                                continue;
                            }
                            let k = (j * lda + i) as usize;
                            // From the destination on, the first one that nobody betters.
                            let order = (0..members.len()).map(|d| (base + d) % members.len());
                            let winner = order
                                .reduce(|w, c| if better(theirs[c][k].parts(), theirs[w][k].parts()) { c } else { w });
                            let winner = winner.expect("a member");
                            assert_eq!(
                                a[k], theirs[winner][k],
                                "placed {largest} {scope:?} {m}x{n} to {dest:?} ({i}, {j})"
                            );
                            assert_eq!(
                                (ra[place], ca[place]),
                                members[winner],
                                "{largest} {scope:?} {m}x{n} to {dest:?} ({i}, {j})"
                            );
                        }
                    }
                    assert!((0..count).all(|k| (mine && inside(k)) || a[k] == before[k]));
                }
            }
        }
    }
}

/// Also from run to run, where processes lie elsewhere and come at other times.
fn coherent() {
    for ranks in 1..=8 {
        let runs = [(); 2].map(|()| said(&Job::new(ranks, "coherent").run(), 0));
        assert!(runs[0].contains("bits") && runs[0] == runs[1], "{ranks} processes: {runs:?}");
    }
}

/// Sums of numbers of very different sizes: their bits depend on the order. Grids of one row and, of what processes there are, of two and
/// three rows; in all scopes; to all and to one.
fn coherent_body() {
    let (me, all) = pinfo();
    let mut bits = 0u64;
    for rows in (1..=3).filter(|r| *r <= all) {
        let grid = Grid::init(system(), b"R\0", rows, all / rows);
        if !grid.is_mine() {
            continue;
        }
        for (scope, to_all) in [(ALL, true), (b"R\0", true), (b"C\0", true), (ALL, false)] {
            for n in [7usize, 600, 3000, 200_000] {
                if n < 200_000 || scope == ALL && to_all && rows == 1 {
                    bits = bits.rotate_left(7) ^ coherent_one(&grid, me, scope, to_all, n);
                }
            }
        }
        grid.exit();
    }
    if me == 0 {
        println!("bits {bits:016x}");
    }
    Cblacs_exit(0);
}

/// Sums `n` elements a few times, with this process late now and then: the same bits every time, and at all members of the scope. Something
/// that tells the bits from others.
fn coherent_one(grid: &Grid, me: i32, scope: &'static [u8; 2], to_all: bool, n: usize) -> u64 {
    let mine: Vec<f64> = (0..n)
        .map(|k| {
            let h = (me as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_mul(k as u64 * 2 + 1);
            ((h >> 12) as f64 / 4e15 - 0.5) * 10f64.powi((h % 17) as i32 - 8)
        })
        .collect();
    let members: Vec<(i32, i32)> = match scope {
        b"R\0" => (0..grid.columns).map(|c| (grid.row, c)).collect(),
        b"C\0" => (0..grid.rows).map(|r| (r, grid.col)).collect(),
        _ => (0..grid.rows).flat_map(|r| (0..grid.columns).map(move |c| (r, c))).collect(),
    };
    let dest = if to_all { (-1, -1) } else { (grid.rows - 1, 0) };
    let has_result = to_all || dest == (grid.row, grid.col);
    let mut first: Option<Vec<u64>> = None;
    for repeat in 0..3 {
        let mut a = mine.clone();
        if (repeat + me) % 3 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        // SAFETY: letters with their ends, and a column of `n` elements, the call's alone.
        unsafe {
            let top = [letters(b" \0"), letters(b"1\0"), letters(b"i\0")][repeat as usize % 3];
            Cdgsum2d(grid.handle, letters(scope), top, n as i32, 1, a.as_mut_ptr(), n as i32, dest.0, dest.1)
        };
        let bits: Vec<u64> = a.iter().map(|v| v.to_bits()).collect();
        if let Some(first) = &first {
            assert_eq!(&bits, first, "{n} elements, scope {scope:?}, repeat {repeat}");
        }
        first = Some(bits);
        if !has_result {
            assert!(a.iter().zip(&mine).all(|(x, y)| x.to_bits() == y.to_bits()), "no destination, yet changed");
        } else if to_all && (grid.row, grid.col) == members[0] {
            members[1..].iter().for_each(|(row, col)| grid.send(&a, *row, *col));
        } else if to_all {
            let theirs = grid.receive(n, members[0].0, members[0].1);
            assert!(theirs.iter().zip(&a).all(|(x, y)| x.to_bits() == y.to_bits()), "{n} elements, scope {scope:?}");
        }
    }
    let bits = first.expect("several repeats");
    bits.iter().fold(0, |hash: u64, b| hash.rotate_left(5) ^ b)
}
