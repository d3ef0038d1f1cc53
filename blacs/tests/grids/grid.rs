//! Grids, and the calls by which the bodies use them.

use std::ffi::c_char;
use std::ptr;

use crate::names::*;

use crate::Table;
use crate::ranks::{self, Job};

pub const TABLE: Table = (
    &[("hundreds_of_grids", hundreds), ("grids_of_grids", grids_of_grids), ("maps_that_differ", differ)],
    &[("hundreds", hundreds_body), ("nested", nested_body), ("differ", differ_body)],
);

/// A grid as one of its processes sees it.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub handle: i32,
    pub rows: i32,
    pub columns: i32,
    pub row: i32,
    pub col: i32,
}

pub fn letters(text: &'static [u8; 2]) -> *const c_char {
    text.as_ptr().cast()
}
pub const ALL: &[u8; 2] = b"A\0";

/// (this process, all)
pub fn pinfo() -> (i32, i32) {
    let (mut me, mut all) = (-1, -1);
    // SAFETY: places for the two answers.
    unsafe { Cblacs_pinfo(&mut me, &mut all) };
    (me, all)
}

pub fn system() -> i32 {
    let mut handle = -1;
    // SAFETY: a place for the one answer.
    unsafe { Cblacs_get(-1, 0, &mut handle) };
    handle
}

impl Grid {
    /// The first processes of a system context.
    pub fn init(system: i32, order: &'static [u8; 2], rows: i32, columns: i32) -> Grid {
        let mut handle = system;
        // SAFETY: a place for the handle, and a letter with its end.
        unsafe { Cblacs_gridinit(&mut handle, letters(order), rows, columns) };
        Grid::look(handle)
    }
    /// These processes, given by columns.
    pub fn map(system: i32, map: &[i32], rows: i32, columns: i32) -> Grid {
        let mut handle = system;
        // SAFETY: a place for the handle; the map has `rows` x `columns` numbers, as callers give it.
        unsafe { Cblacs_gridmap(&mut handle, map.as_ptr(), rows, rows, columns) };
        Grid::look(handle)
    }
    pub fn look(handle: i32) -> Grid {
        let mut grid = Grid { handle, rows: 0, columns: 0, row: 0, col: 0 };
        // SAFETY: places for the four answers.
        unsafe { Cblacs_gridinfo(handle, &mut grid.rows, &mut grid.columns, &mut grid.row, &mut grid.col) };
        grid
    }
    pub fn is_mine(&self) -> bool {
        self.row >= 0
    }
    pub fn exit(self) {
        Cblacs_gridexit(self.handle);
    }
    pub fn barrier(&self) {
        // SAFETY: a letter with its end.
        unsafe { Cblacs_barrier(self.handle, letters(ALL)) };
    }
    pub fn send(&self, data: &[f64], row: i32, col: i32) {
        // SAFETY: a column of so many elements, which stay for the length of the call.
        unsafe { Cdgesd2d(self.handle, data.len() as i32, 1, data.as_ptr(), data.len() as i32, row, col) };
    }
    pub fn receive(&self, n: usize, row: i32, col: i32) -> Vec<f64> {
        let mut data = vec![f64::NAN; n];
        // SAFETY: a column of so many elements, the call's alone.
        unsafe { Cdgerv2d(self.handle, n as i32, 1, data.as_mut_ptr(), n as i32, row, col) };
        data
    }
    /// The sum over a scope, to all.
    pub fn sum(&self, scope: &'static [u8; 2], value: i32) -> i32 {
        let mut value = value;
        // SAFETY: letters with their ends, and one element.
        unsafe { Cigsum2d(self.handle, letters(scope), letters(b" \0"), 1, 1, &mut value, 1, -1, -1) };
        value
    }
}

fn hundreds() {
    for ranks in [1, 4, 7] {
        Job::new(ranks, "hundreds").run();
    }
}

/// Grids of the first, the last, the odd processes, kept for a while and freed in another order; handles stay small.
fn hundreds_body() {
    let (me, all) = pinfo();
    let mut kept: Vec<Grid> = Vec::new();
    for round in 0..if ranks::long() { 300 } else { 90 } {
        let members: Vec<i32> = match round % 4 {
            0 => (0..all).collect(),
            1 => (0..all).rev().collect(),
            2 => (0..all).filter(|p| p % 2 == 0).collect(),
            _ => (all / 2..all).collect(),
        };
        let rows = if members.len().is_multiple_of(2) { 2 } else { 1 };
        let grid = Grid::map(system(), &members, rows, members.len() as i32 / rows);
        let mine = members.iter().position(|p| *p == me);
        assert_eq!(grid.is_mine(), mine.is_some(), "round {round}");
        if let Some(at) = mine {
            assert_eq!((grid.row, grid.col), (at as i32 % rows, at as i32 / rows));
            assert_eq!(grid.sum(ALL, 1 + round), (1 + round) * members.len() as i32);
            assert_eq!(grid.sum(b"r\0", 1), grid.columns);
            assert_eq!(grid.sum(b"C\0", 1), grid.rows);
            assert_eq!(Cblacs_pnum(grid.handle, grid.row, grid.col), grid.row * grid.columns + grid.col);
            assert!(grid.handle < 40, "handle {}", grid.handle);
        } else {
            assert_eq!((grid.handle, grid.rows, grid.columns, grid.col), (-1, -1, -1, -1));
        }
        // Everybody lists all grids, also those of others, so that the members of one free it at the same time.
        kept.push(grid);
        if kept.len() > 30 {
            let old = kept.swap_remove(round as usize % 30);
            if old.is_mine() {
                old.exit();
            }
        }
        let last = kept.iter().rev().take(3).filter(|old| old.is_mine());
        last.for_each(|old| assert_eq!(old.sum(ALL, 1), old.rows * old.columns));
    }
    kept.retain(Grid::is_mine);
    let last = kept[0].handle;
    kept.into_iter().for_each(Grid::exit);
    assert!(!Grid::look(last).is_mine());
    // Grids are gone, the message layer stays.
    Cblacs_exit(1);
    let again = Grid::init(system(), b"R\0", 1, all);
    assert_eq!(again.sum(ALL, 1), all);
    Cblacs_exit(0);
}

fn differ() {
    for ranks in [2, 5, 8] {
        Job::new(ranks, "differ").run();
    }
}

/// In one call each process gives the map of its own grid: thirds of the processes, of which the last takes no part at times.
fn differ_body() {
    let (me, all) = pinfo();
    for round in 0..20 {
        let mut members: Vec<i32> = (0..all).filter(|p| p % 3 == me % 3).collect();
        let turn = round % members.len();
        members.rotate_left(turn);
        if round % 2 == 1 && me % 3 == 2 {
            members = vec![0]; // this process is not in it
        }
        let grid = Grid::map(system(), &members, 1, members.len() as i32);
        let mine = members.iter().position(|p| *p == me);
        assert_eq!(grid.is_mine(), mine.is_some());
        let Some(at) = mine else { continue };
        assert_eq!((grid.columns as usize, grid.col as usize), (members.len(), at));
        assert_eq!(grid.sum(ALL, me), members.iter().sum::<i32>());
        let (next, last) = ((at + 1) % members.len(), (at + members.len() - 1) % members.len());
        grid.send(&[me as f64], 0, next as i32);
        assert_eq!(grid.receive(1, 0, last as i32), [members[last] as f64]);
        if round % 3 == 0 {
            grid.exit();
        }
    }
    Cblacs_exit(0);
}

fn grids_of_grids() {
    for ranks in [4, 6, 8] {
        Job::new(ranks, "nested").run();
    }
}

/// A grid is a system context for further grids, whose map holds its numbers.
fn nested_body() {
    let (me, all) = pinfo();
    let columns = all / 2;
    let whole = Grid::init(system(), b"C\0", 2, columns);
    assert_eq!((whole.row, whole.col), (me % 2, me / 2));
    let mut inner_system = -1;
    // SAFETY: a place for the one answer.
    unsafe { Cblacs_get(whole.handle, 10, &mut inner_system) };
    // The second row of the grid: its numbers are columns .. 2 * columns, whatever their numbers in the world.
    let row = Grid::map(inner_system, &(columns..2 * columns).collect::<Vec<_>>(), 1, columns);
    assert_eq!(row.is_mine(), whole.row == 1);
    if row.is_mine() {
        assert_eq!((row.rows, row.columns, row.row, row.col), (1, columns, 0, whole.col));
        assert_eq!(row.sum(ALL, me), (0..all).filter(|p| p % 2 == 1).sum::<i32>());
    }
    let first = Grid::init(inner_system, b"R\0", 1, 2);
    if first.is_mine() {
        assert_eq!(whole.row, 0);
        assert_eq!(first.sum(b"r\0", me), 2);
    }
    let (mut prow, mut pcol) = (0, 0);
    // SAFETY: places for the two answers.
    unsafe { Cblacs_pcoord(whole.handle, columns + 1, &mut prow, &mut pcol) };
    assert_eq!((prow, pcol), (1, 1));
    // SAFETY: as above.
    unsafe { Cblacs_pcoord(whole.handle, all, &mut prow, &mut pcol) };
    assert_eq!((prow, pcol), (-1, -1));
    // What is set reads back; what cannot be set warns only.
    for what in 11..=16 {
        let (two, mut read) = (2, 0);
        // SAFETY: one number, and a place for one.
        unsafe {
            Cblacs_set(whole.handle, what, &two);
            Cblacs_get(whole.handle, what, &mut read);
        }
        assert_eq!(read, 2, "what {what}");
    }
    let (wrong, mut ids) = (0, [-1, -1]);
    for (context, what) in
        [(-1, 0), (-1, 1), (-1, 2), (whole.handle, 10), (whole.handle, 11), (whole.handle, 12), (whole.handle, 99)]
    {
        // SAFETY: one number.
        unsafe { Cblacs_set(context, what, &wrong) };
    }
    // SAFETY: places for the two answers.
    unsafe { Cblacs_get(-1, 1, ids.as_mut_ptr()) };
    assert!(ids[0] == 0 && ids[1] > 30_000);
    // SAFETY: what is not known writes nothing.
    unsafe { Cblacs_get(-1, 99, ptr::null_mut()) };
    Cblacs_exit(0);
}
