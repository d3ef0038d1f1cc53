//! Point-to-point messages and broadcasts.

use crate::names::*;

use crate::Table;
use crate::grid::{ALL, Grid, letters, pinfo, system};
use crate::ranks::{Job, complaints, long};

pub const TABLE: Table = (
    &[
        ("messages_to_oneself_and_before_the_receive", buffered),
        ("contexts_and_scopes_do_not_mix", apart),
        ("broadcasts_of_every_topology", broadcasts),
        ("a_full_spool_says_what_to_set", full),
        ("send_and_receive_in_one_call", both),
        ("beyond_two_gigabytes", wide),
        ("two_gigabytes", huge),
    ],
    &[
        ("buffered", buffered_body),
        ("apart", apart_body),
        ("broadcasts", broadcasts_body),
        ("full", full_body),
        ("both", both_body),
        ("wide", wide_body),
        ("huge", huge_body),
    ],
);

fn value(from: i32, i: usize, j: usize) -> f64 {
    from as f64 * 1e6 + i as f64 * 1e3 + j as f64
}

fn buffered() {
    for ranks in [1, 2, 5] {
        Job::new(ranks, "buffered").run();
        Job::new(ranks, "buffered").env("FMPL_CMA", "off").run();
    }
}

/// Everybody sends to everybody, itself included, contiguous, strided and trapezoidal, before anybody receives.
fn buffered_body() {
    let (me, all) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, all);
    let (m, n) = (170usize, 160usize);
    for lda in [m, m + 13] {
        let matrix = |from: i32| (0..lda * n).map(|k| value(from, k % lda, k / lda)).collect::<Vec<f64>>();
        let mine = matrix(me);
        let (im, il) = (m as i32, lda as i32);
        for to in 0..all {
            // SAFETY: each is within the matrix of `lda` x `n`, which stays.
            unsafe {
                for _ in 0..3 {
                    Cdgesd2d(grid.handle, im, n as i32, mine.as_ptr(), il, 0, to);
                }
                Cdtrsd2d(grid.handle, letters(b"u\0"), letters(b"U\0"), im, n as i32, mine.as_ptr(), il, 0, to);
                Cdtrsd2d(grid.handle, letters(b"L\0"), letters(b"n\0"), 3, 2, mine.as_ptr(), il, 0, to);
                Cdgesd2d(grid.handle, 0, 7, mine.as_ptr(), il, 0, to);
                Cdgesd2d(grid.handle, 2, 3, mine.as_ptr(), il, 0, to);
            }
        }
        for from in 0..all {
            let theirs = matrix(from);
            let inside = |i: usize| i < m;
            for _ in 0..3 {
                let mut got = vec![-1.0; lda * n];
                // SAFETY: `m` x `n` elements, `lda` apart, are within `got`.
                unsafe { Cdgerv2d(grid.handle, im, n as i32, got.as_mut_ptr(), il, 0, from) };
                for k in 0..lda * n {
                    assert_eq!(got[k], if inside(k % lda) { theirs[k] } else { -1.0 }, "lda {lda}: element {k}");
                }
            }
            let mut got = vec![-1.0; lda * n];
            // SAFETY: as above.
            unsafe {
                Cdtrrv2d(grid.handle, letters(b"U\0"), letters(b"u\0"), im, n as i32, got.as_mut_ptr(), il, 0, from)
            };
            for k in 0..lda * n {
                let (i, j) = (k % lda, k / lda);
                assert_eq!(got[k], if inside(i) && i < j + m - n { theirs[k] } else { -1.0 }, "triangle {i}, {j}");
            }
            // A trapezoid may be received as a column, an empty message as one of three, six elements in another shape.
            let mut five = vec![-1.0; 5];
            // SAFETY: five elements.
            unsafe { Cdgerv2d(grid.handle, 5, 1, five.as_mut_ptr(), 5, 0, from) };
            assert_eq!(
                five,
                [value(from, 0, 0), value(from, 1, 0), value(from, 2, 0), value(from, 1, 1), value(from, 2, 1)]
            );
            assert_eq!(grid.receive(3, 0, from).iter().filter(|v| v.is_nan()).count(), 3);
            let six = grid.receive(6, 0, from);
            assert_eq!(six, [0, 1, 2].map(|j| [0, 1].map(|i| value(from, i, j))).concat());
        }
    }
    Cblacs_exit(0);
}

fn apart() {
    for ranks in [2, 4, 6] {
        Job::new(ranks, "apart").run();
    }
}

/// Two contexts of the same processes, and in each of them point-to-point messages beside broadcasts and sums in scopes.
fn apart_body() {
    let (me, all) = pinfo();
    let (a, b) = (Grid::init(system(), b"R\0", 2, all / 2), Grid::init(system(), b"R\0", 2, all / 2));
    let (next, last) = ((me + 1) % all, (me + all - 1) % all);
    let place = |p: i32| (p / (all / 2), p % (all / 2));
    let (to, from) = (place(next), place(last));
    for round in 0..50 {
        let sent = |k: i32| vec![(round * 100 + k * 10 + me) as f64; 1 + (k as usize * 700)];
        a.send(&sent(0), to.0, to.1);
        b.send(&sent(1), to.0, to.1);
        a.send(&sent(2), to.0, to.1);
        assert_eq!(a.sum(b"r\0", me), (0..all).filter(|p| place(*p).0 == a.row).sum::<i32>());
        assert_eq!(b.sum(ALL, 1), all);
        assert_eq!(a.sum(b"c\0", 1), 2);
        if round % 7 == 0 {
            b.barrier();
        }
        let expect = |k: i32| vec![(round * 100 + k * 10 + last) as f64; 1 + (k as usize * 700)];
        assert_eq!(b.receive(701, from.0, from.1), expect(1));
        assert_eq!(a.receive(1, from.0, from.1), expect(0));
        assert_eq!(a.receive(1401, from.0, from.1), expect(2));
    }
    Cblacs_exit(0);
}

fn broadcasts() {
    for ranks in [1, 2, 3, 6, 7, 8] {
        Job::new(ranks, "broadcasts").run();
    }
}

fn broadcasts_body() {
    let (_, all) = pinfo();
    let shapes: Vec<(i32, i32)> = (1..=all).filter(|r| all % r == 0).map(|r| (r, all / r)).collect();
    for (rows, columns) in shapes {
        let grid = Grid::init(system(), b"R\0", rows, columns);
        let mut round = 0;
        for top in b" hHtidsmf1239".map(|letter| &*Box::leak(Box::new([letter, 0]))) {
            for scope in [b"r\0", b"c\0", ALL] {
                for (m, n, lda) in [(1, 1, 1), (3, 4, 5), (90, 30, 90), (90, 30, 93), (0, 3, 1)] {
                    round += 1;
                    // The root moves on; in a row only its column is looked at, in a column only its row.
                    let root = (round % rows, (round / 2) % columns);
                    let at = match scope {
                        b"r\0" => (grid.row, root.1),
                        b"c\0" => (root.0, grid.col),
                        _ => root,
                    };
                    let number = (at.0 * columns + at.1) + round;
                    let whole: Vec<f64> =
                        (0..(lda * n) as usize).map(|k| value(number, k % lda as usize, k / lda as usize)).collect();
                    // SAFETY: letters with their ends; `m` x `n` elements, `lda` apart, are within each matrix.
                    unsafe {
                        if at == (grid.row, grid.col) {
                            Cdgebs2d(grid.handle, letters(scope), letters(top), m, n, whole.as_ptr(), lda);
                            Cdtrbs2d(
                                grid.handle,
                                letters(scope),
                                letters(top),
                                letters(b"L\0"),
                                letters(b"N\0"),
                                m,
                                n,
                                whole.as_ptr(),
                                lda,
                            );
                        } else {
                            let mut got = vec![-1.0; whole.len()];
                            Cdgebr2d(
                                grid.handle,
                                letters(scope),
                                letters(top),
                                m,
                                n,
                                got.as_mut_ptr(),
                                lda,
                                root.0,
                                root.1,
                            );
                            for (k, v) in got.iter().enumerate() {
                                assert_eq!(
                                    *v,
                                    if (k as i32 % lda) < m { whole[k] } else { -1.0 },
                                    "{top:?} {scope:?} {m}x{n}"
                                );
                            }
                            let mut got = vec![-1.0; whole.len()];
                            Cdtrbr2d(
                                grid.handle,
                                letters(scope),
                                letters(top),
                                letters(b"L\0"),
                                letters(b"N\0"),
                                m,
                                n,
                                got.as_mut_ptr(),
                                lda,
                                root.0,
                                root.1,
                            );
                            for (k, v) in got.iter().enumerate() {
                                let (i, j) = (k as i32 % lda, k as i32 / lda);
                                let in_it = i < m && i >= j - (n - m).max(0);
                                assert_eq!(
                                    *v,
                                    if in_it { whole[k] } else { -1.0 },
                                    "{top:?} {scope:?} trapezoid {m}x{n}"
                                );
                            }
                        }
                    }
                }
            }
        }
        grid.exit();
    }
    Cblacs_exit(0);
}

fn full() {
    let outcome = Job::new(2, "full").env("FMPL_BLACS_SPOOL", "1M").outcome();
    let text = complaints(&outcome);
    assert_ne!(outcome.code, 0);
    assert!(text.contains("FMPL_BLACS_SPOOL") && text.contains("BLACS ERROR"), "{text}");
    Job::new(2, "full").env("FMPL_BLACS_SPOOL", "40M").run();
    let outcome = Job::new(1, "full").env("FMPL_BLACS_SPOOL", "much").outcome();
    assert!(complaints(&outcome).contains("FMPL_BLACS_SPOOL=much: possible values: bytes"), "{}", complaints(&outcome));
}

/// Thirty messages of a megabyte before any receive.
fn full_body() {
    let (me, all) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, all);
    if me == 0 {
        (0..30).for_each(|k| grid.send(&vec![k as f64; 1 << 17], 0, all - 1));
    }
    grid.barrier();
    if me == all - 1 {
        (0..30).for_each(|k| assert_eq!(grid.receive(1 << 17, 0, 0), vec![k as f64; 1 << 17]));
    }
    Cblacs_exit(0);
}

fn both() {
    for ranks in [1, 2, 5] {
        Job::new(ranks, "both").run();
        Job::new(ranks, "both").env("FMPL_CMA", "off").run();
    }
}

/// Around in both directions and with the neighbour, of any shape, and between messages of the two calls that it stands for.
fn both_body() {
    let (me, all) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, all);
    for (round, (m, n, lda)) in
        [(1, 1, 1), (30, 4, 30), (30, 40, 33), (500, 300, 500), (500, 300, 501), (0, 3, 1), (1, 900, 7)]
            .into_iter()
            .enumerate()
    {
        for step in [1, all - 1, 0] {
            let (to, from) = ((me + step) % all, (me + all - step) % all);
            let matrix = |p: i32| (0..lda * n).map(|k| value(p, k % lda, k / lda + round)).collect::<Vec<f64>>();
            let (mine, theirs) = (matrix(me), matrix(from));
            let mut got = vec![-1.0; lda * n + 1];
            let (im, i_n, il) = (m as i32, n as i32, lda as i32);
            grid.send(&[round as f64, to as f64], 0, to);
            // SAFETY: both matrices are of `lda` x `n` elements, or of the one or two that are given.
            unsafe {
                // What came before is received before; a shorter message than there is room for is one.
                let mut before = [-1.0; 2];
                Cdsendrecv(grid.handle, im, i_n, mine.as_ptr(), il, 0, to, 2, 1, before.as_mut_ptr(), 2, 0, from);
                assert_eq!(before, [round as f64, me as f64]);
                Cdsendrecv(grid.handle, 1, 1, &6.5, 1, 0, to, im, i_n, got.as_mut_ptr(), il, 0, from);
            }
            assert_eq!(grid.receive(1, 0, from), [6.5]);
            for k in 0..lda * n {
                assert_eq!(got[k], if k % lda < m { theirs[k] } else { -1.0 }, "{m} x {n} / {lda}, element {k}");
            }
            assert_eq!(got[lda * n], -1.0);
            got.fill(-1.0);
            // SAFETY: as above.
            unsafe {
                Cdsendrecv(grid.handle, im, i_n, mine.as_ptr(), il, 0, to, im, i_n, got.as_mut_ptr(), il, 0, from)
            };
            assert!((0..lda * n).all(|k| got[k] == if k % lda < m { theirs[k] } else { -1.0 }), "{m} x {n} / {lda}");
        }
    }
    Cblacs_exit(0);
}

fn wide() {
    Job::new(2, "wide").run();
}

/// Matrices whose columns lie over more than 2 GiB of memory that is mostly never touched: every kind of call counts bytes in 64 bits.
fn wide_body() {
    let (me, _) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, 2);
    let (n, lda) = (5usize, 80_000_000usize);
    // All zero, and so not there until it is written.
    let mut a = vec![0.0f64; lda * n];
    assert!(size_of_val(&a[..]) > 1 << 31);
    // Packed, through the spool or the ring, and by the kernel.
    for m in [3, 300, 20_000] {
        a[..].chunks_mut(lda).for_each(|column| column[..m].fill(0.0));
        wide_one(&grid, me, &mut a, m, n, lda);
    }
    Cblacs_exit(0);
}

fn wide_one(grid: &Grid, me: i32, a: &mut [f64], m: usize, n: usize, lda: usize) {
    let (im, i_n, il) = (m as i32, n as i32, lda as i32);
    let place = |k: usize| (k / m * lda + k % m, value(7, k % m, k / m));
    let fill = |a: &mut [f64], factor: f64| (0..m * n).for_each(|k| a[place(k).0] = factor * place(k).1);
    let check = |a: &[f64], factor: f64, inside: &dyn Fn(usize, usize) -> bool, what: &str| {
        for k in 0..m * n {
            let wanted = if inside(k % m, k / m) { factor * place(k).1 } else { 0.0 };
            assert_eq!(a[place(k).0], wanted, "{what}: element {k}");
            // And nothing beside them.
            assert!(k % m != m - 1 || a[place(k).0 + 1] == 0.0, "{what}: behind element {k}");
        }
    };
    let (at, u, top) = (a.as_mut_ptr(), letters(b"U\0"), letters(b" \0"));
    // SAFETY: a matrix of `lda` x `n` elements; rows and columns have `m` x `n`.
    unsafe {
        if me == 0 {
            fill(a, 1.0);
            Cdgesd2d(grid.handle, im, i_n, at, il, 0, 1);
            Cdtrsd2d(grid.handle, u, letters(b"N\0"), im, i_n, at, il, 0, 1);
            Cdgebs2d(grid.handle, letters(ALL), top, im, i_n, at, il);
            Cdtrbs2d(grid.handle, letters(ALL), top, u, letters(b"U\0"), im, i_n, at, il);
        } else {
            Cdgerv2d(grid.handle, im, i_n, at, il, 0, 0);
            check(a, 1.0, &|_, _| true, "dgerv2d");
            fill(a, 0.0);
            Cdtrrv2d(grid.handle, u, letters(b"N\0"), im, i_n, at, il, 0, 0);
            check(a, 1.0, &|i, j| i <= j + m.saturating_sub(n), "dtrrv2d");
            fill(a, 0.0);
            Cdgebr2d(grid.handle, letters(ALL), top, im, i_n, at, il, 0, 0);
            check(a, 1.0, &|_, _| true, "dgebr2d");
            fill(a, 0.0);
            Cdtrbr2d(grid.handle, letters(ALL), top, u, letters(b"U\0"), im, i_n, at, il, 0, 0);
            check(a, 1.0, &|i, j| i < j + m.saturating_sub(n), "dtrbr2d");
        }
        fill(a, me as f64 + 1.0);
        Cdgsum2d(grid.handle, letters(ALL), top, im, i_n, at, il, -1, -1);
        check(a, 3.0, &|_, _| true, "dgsum2d");
        fill(a, me as f64 + 1.0);
        let (mut rows, mut columns) = (vec![-1; m * n], vec![-1; m * n]);
        Cdgamx2d(grid.handle, letters(ALL), top, im, i_n, at, il, rows.as_mut_ptr(), columns.as_mut_ptr(), im, -1, -1);
        check(a, 2.0, &|_, _| true, "dgamx2d");
        // Of elements that are all zero the nearest wins, of the others the larger.
        assert!(rows.iter().all(|r| *r == 0) && (0..m * n).all(|k| columns[k] == (place(k).1 != 0.0) as i32));
    }
}

fn huge() {
    if long() {
        Job::new(2, "huge").env("FMPL_BLACS_SPOOL", "5G").seconds(300).run();
    } else {
        println!("  only with FMPL_TEST_LONG=1: it takes 7 to 9 GB of memory");
    }
}

/// A matrix of more than 2 GiB there, part of it with gaps, and summed. The sender may come first: then all of it is spooled.
fn huge_body() {
    let (me, _) = pinfo();
    let grid = Grid::init(system(), b"R\0", 1, 2);
    let (m, n) = (16_400, 16_400);
    let mut matrix = vec![me as f64 + 1.0; m as usize * n as usize];
    // SAFETY: at most `m` x `n` elements, `m` apart, are within the matrix.
    unsafe {
        if me == 0 {
            matrix[0] = 5.0;
            Cdgesd2d(grid.handle, m, n, matrix.as_ptr(), m, 0, 1);
            Cdgesd2d(grid.handle, m - 1, n, matrix.as_ptr(), m, 0, 1);
        } else {
            for rows in [m, m - 1] {
                matrix.fill(-1.0);
                Cdgerv2d(grid.handle, rows, n, matrix.as_mut_ptr(), m, 0, 0);
                assert_eq!(matrix[0], 5.0);
                matrix[0] = 1.0;
                for column in matrix.chunks(m as usize) {
                    let (inside, behind) = column.split_at(rows as usize);
                    assert!(inside.iter().all(|v| *v == 1.0) && behind.iter().all(|v| *v == -1.0), "{rows} rows");
                }
            }
        }
        matrix.fill(me as f64 + 1.0);
        Cdgsum2d(grid.handle, letters(ALL), letters(b" \0"), m, n, matrix.as_mut_ptr(), m, -1, -1);
    }
    assert!(matrix.iter().all(|v| *v == 3.0));
    Cblacs_exit(0);
}
