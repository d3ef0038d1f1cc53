//! Contexts: grids of processes, made from a system context, which is all processes or those of another grid.

use core::sync::atomic::Ordering::Relaxed;

use crate::matrix::{Matrix, Slot};
use crate::process::process;
use crate::report::{self, fatal, warn};
use crate::scope::{Group, Scope, Which};
use crate::{AtomicInt, Int};

/// A grid that this process is part of.
pub struct Context {
    /// Its number here.
    pub handle: Int,
    pub rows: i32,
    pub columns: i32,
    /// Where this process is.
    pub row: i32,
    pub col: i32,
    /// The processes, row by row.
    pub group: Group,
    pub settings: Settings,
}

/// What `blacs_set` changes.
pub struct Settings {
    /// Rings of a multi-ring broadcast (11).
    pub rings: AtomicInt,
    /// Branches of a tree broadcast (12).
    pub branches: AtomicInt,
    /// The same for combines (13, 14). The order of a combine is fixed, so these are only kept.
    combine_rings: AtomicInt,
    combine_branches: AtomicInt,
    /// Repeatable and coherent results (15, 16): they always are.
    repeatable: AtomicInt,
    coherent: AtomicInt,
}

impl Context {
    /// A process's number in the grid.
    #[inline(always)]
    pub fn number(&self, row: Int, col: Int) -> Option<usize> {
        let inside = (0..self.rows as Int).contains(&row) && (0..self.columns as Int).contains(&col);
        inside.then(|| row as usize * self.columns as usize + col as usize)
    }

    /// Where the process of a number is.
    pub fn coordinates(&self, number: usize) -> (Int, Int) {
        ((number / self.columns as usize) as Int, (number % self.columns as usize) as Int)
    }

    /// The processes of a scope, by its first letter; `None` for another one.
    #[inline]
    pub fn scope(&self, letter: u8, routine: &'static str) -> Option<(Which, Scope<'_>)> {
        let which = Which::of(letter)?;
        let (rows, columns) = (self.rows as usize, self.columns as usize);
        let (start, step, size) = match which {
            Which::Row => (self.row as usize * columns, 1, columns),
            Which::Column => (self.col as usize, columns, rows),
            Which::All => (0, 1, rows * columns),
        };
        Some((which, self.group.scope(which, start, step, size, self.handle, routine)))
    }

    /// Single processes.
    #[inline(always)]
    pub fn pairs(&self, routine: &'static str) -> Scope<'_> {
        self.group.pairs(self.handle, routine)
    }
}

/// The system handle of all processes; that of a context's is one more than its handle.
const WORLD: Int = 0;

fn group_of(system: Int) -> &'static Group {
    if system == WORLD {
        return process().world();
    }
    match process().find(system - 1) {
        Some(context) => &context.group,
        None => fatal(-1, "BLACS_GRIDINIT/BLACS_GRIDMAP", format_args!("Invalid system context handle: {system}")),
    }
}

/// `blacs_gridinit`: a grid of the first processes of a system context, in the order of columns for 'C', else of rows.
pub fn grid_init(system: Int, order: u8, rows: Int, columns: Int) -> Int {
    process().join();
    check_size(rows, columns, group_of(system).size());
    let by_column = order.eq_ignore_ascii_case(&b'c');
    let member = |i: Int, j: Int| if by_column { j * rows + i } else { i * columns + j };
    grid(system, rows, columns, &member)
}

/// `blacs_gridmap`: a grid of these processes of a system context; their numbers are what `map` says of them, if they are so many.
pub fn grid_map(system: Int, rows: Int, columns: Int, map: impl FnOnce() -> Matrix<'static>) -> Int {
    process().join();
    check_size(rows, columns, group_of(system).size());
    let map: Vec<Int> = map().slots(0, (rows * columns) as usize).map(Slot::get).collect();
    grid(system, rows, columns, &|i, j| map[(j * rows + i) as usize])
}

fn check_size(rows: Int, columns: Int, processes: usize) {
    if rows < 1 || columns < 1 || rows.saturating_mul(columns) > processes as Int {
        fatal(
            -1,
            "BLACS_GRIDINIT/BLACS_GRIDMAP",
            format_args!("Illegal grid ({rows} x {columns}), #procs={processes}"),
        );
    }
}

fn grid(system: Int, rows: Int, columns: Int, member: &dyn Fn(Int, Int) -> Int) -> Int {
    let parent = group_of(system);
    let mut members = Vec::with_capacity((rows * columns) as usize);
    let mut seen = vec![false; parent.size()];
    for (i, j) in (0..rows).flat_map(|i| (0..columns).map(move |j| (i, j))) {
        let number = member(i, j);
        let known = usize::try_from(number).ok().filter(|n| *n < parent.size());
        match known {
            Some(number) if !core::mem::replace(&mut seen[number], true) => members.push(number),
            _ => fatal(
                -1,
                "BLACS_GRIDINIT/BLACS_GRIDMAP",
                format_args!(
                    "Illegal process {number} at ({i},{j}) of the map: there are {}, each may be there once",
                    parent.size()
                ),
            ),
        }
    }
    let Some(group) = parent.of(&members, "BLACS_GRIDINIT/BLACS_GRIDMAP") else { return -1 };
    let (row, col) = (group.me as i32 / columns as i32, group.me as i32 % columns as i32);
    let one = || AtomicInt::new(1);
    let zero = || AtomicInt::new(0);
    process().keep(Context {
        handle: -1,
        rows: rows as i32,
        columns: columns as i32,
        row,
        col,
        group,
        settings: Settings {
            rings: one(),
            branches: one(),
            combine_rings: one(),
            combine_branches: one(),
            repeatable: zero(),
            coherent: zero(),
        },
    })
}

// What `blacs_get` and `blacs_set` know.
const SYSTEM: Int = 0;
const MESSAGE_IDS: Int = 1;
const DEBUG_LEVEL: Int = 2;
const SYSTEM_OF_CONTEXT: Int = 10;
const BROADCAST_RINGS: Int = 11;
const BROADCAST_BRANCHES: Int = 12;
const COMBINE_RINGS: Int = 13;
const COMBINE_BRANCHES: Int = 14;
const REPEATABLE: Int = 15;
const COHERENT: Int = 16;

fn setting(handle: Int, what: Int, routine: &str) -> Option<&'static AtomicInt> {
    let find = || &process().context(handle, routine).settings;
    Some(match what {
        BROADCAST_RINGS => &find().rings,
        BROADCAST_BRANCHES => &find().branches,
        COMBINE_RINGS => &find().combine_rings,
        COMBINE_BRANCHES => &find().combine_branches,
        REPEATABLE => &find().repeatable,
        COHERENT => &find().coherent,
        _ => return None,
    })
}

/// `blacs_get`: what it says, and a second number for the range of message ids. `None`: unknown.
pub fn get(handle: Int, what: Int) -> Option<(Int, Option<Int>)> {
    Some(match what {
        SYSTEM => {
            process().join();
            (WORLD, None)
        }
        MESSAGE_IDS => (0, Some(i32::MAX as Int)),
        DEBUG_LEVEL => (0, None),
        SYSTEM_OF_CONTEXT => (process().context(handle, "BLACS_GET").handle + 1, None),
        _ => match setting(handle, what, "BLACS_GET") {
            Some(cell) => (cell.load(Relaxed), None),
            None => {
                warn(handle, "BLACS_GET", format_args!("Unknown WHAT ({what})"));
                return None;
            }
        },
    })
}

/// `blacs_set`
pub fn set(handle: Int, what: Int, value: Int) {
    let refused = match what {
        SYSTEM => "Cannot set BLACS system context, can only BLACS_GET",
        MESSAGE_IDS => "No need to set message ID range due to contexts with messages of their own",
        DEBUG_LEVEL => "Cannot set BLACS debug level",
        SYSTEM_OF_CONTEXT => "Cannot set BLACS context, can only BLACS_GET",
        _ => match setting(handle, what, "BLACS_SET") {
            Some(cell) => return set_cell(handle, what, cell, value),
            None => return warn(handle, "BLACS_SET", format_args!("Unknown WHAT ({what})")),
        },
    };
    warn(handle, "BLACS_SET", refused);
}

fn set_cell(handle: Int, what: Int, cell: &AtomicInt, value: Int) {
    let wrong = match what {
        BROADCAST_RINGS | COMBINE_RINGS => value == 0,
        BROADCAST_BRANCHES | COMBINE_BRANCHES => value < 1,
        _ => false,
    };
    if wrong {
        let what = if what == BROADCAST_RINGS || what == COMBINE_RINGS { "rings" } else { "branches" };
        return warn(
            handle,
            "BLACS_SET",
            format_args!("Illegal number of {what} ({value}); it stays {}", cell.load(Relaxed)),
        );
    }
    cell.store(value, Relaxed);
}

/// `blacs_gridinfo`: rows, columns, and this process's place; all -1 when the handle is no context of this process.
pub fn grid_info(handle: Int) -> [Int; 4] {
    match process().find(handle) {
        Some(c) => [c.rows as Int, c.columns as Int, c.row as Int, c.col as Int],
        None => [-1; 4],
    }
}

/// `blacs_barrier`; a scope that is none is ignored.
pub fn barrier(handle: Int, letter: u8) {
    if let Some((_, scope)) = process().context(handle, "BLACS_BARRIER").scope(letter, "BLACS_BARRIER") {
        scope.barrier();
    }
}

/// The number of a process in a grid; the job ends if it is not there.
#[inline(always)]
pub fn number_of(context: &Context, row: Int, col: Int, routine: &str) -> usize {
    match context.number(row, col) {
        Some(number) => number,
        None => report::fatal(
            context.handle,
            routine,
            format_args!("process {{{row},{col}}} is not in the grid of {} x {}", context.rows, context.columns),
        ),
    }
}
