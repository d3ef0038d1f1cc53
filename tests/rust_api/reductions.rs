use std::fmt::Debug;

use fmpl::base::located::Value;
use fmpl::{
    AbsMax, AbsMin, Band, Bf16, Bor, Bxor, Comm, F16, Land, Located, Lor, Lxor, MaxLoc, MaxVal, MinLoc, MinVal, Plain,
    Prod, Reduce, Result, Sum,
};

use crate::on_ranks;

/// A number that depends on rank and place; values come again.
fn drawn(rank: usize, k: usize) -> u64 {
    let x = ((rank as u64) << 32 | k as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(12345);
    let x = (x ^ x >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    if k.is_multiple_of(3) { (x >> 40) % 3 } else { x ^ x >> 31 }
}

fn small(x: u64) -> i32 {
    (x >> 7 & 15) as i32 - 7
}

/// One function in all calls, beside `fold` in the order of the ranks.
fn check<T: Plain + PartialEq + Debug, F: Reduce<T> + Copy + Send>(
    world: Comm<'_>,
    function: F,
    make: impl Fn(u64) -> T,
    fold: impl Fn(T, T) -> T,
) -> Result<()> {
    let (me, ranks) = (world.rank(), world.size());
    for n in [0, 1, 5, 130] {
        let vector = |rank: usize, n: usize| -> Vec<T> { (0..n).map(|k| make(drawn(rank, k))).collect() };
        let until = |last: usize, n: usize| {
            (1..=last).fold(vector(0, n), |left, rank| {
                left.into_iter().zip(vector(rank, n)).map(|(a, b)| fold(a, b)).collect()
            })
        };
        let (mut data, all) = (vector(me, n), until(ranks - 1, n));
        world.reduce(&mut data, function, n % ranks)?;
        assert_eq!(data, if me == n % ranks { all.clone() } else { vector(me, n) });
        data = vector(me, n);
        world.allreduce(&mut data, function)?;
        assert_eq!(data, all);
        data = vector(me, n);
        world.scope(|s| s.iallreduce(&mut data, function)?.wait())?;
        assert_eq!(data, all);
        world.reduce_scatter(&vector(me, n * ranks), &mut data, function)?;
        assert_eq!(data, until(ranks - 1, n * ranks)[me * n..][..n]);
        data = vector(me, n);
        world.scan(&mut data, function)?;
        assert_eq!(data, until(me, n));
        data = vector(me, n);
        world.exscan(&mut data, function)?;
        assert_eq!(data, until(me.saturating_sub(1), n));
    }
    Ok(())
}

macro_rules! integers {
    ($world:ident: $($t:ty)*) => { $( {
        let make = |x: u64| x as $t;
        check($world, Sum, make, <$t>::wrapping_add)?;
        check($world, Prod, make, <$t>::wrapping_mul)?;
        check($world, MaxVal, make, Ord::max)?;
        check($world, MinVal, make, Ord::min)?;
        check($world, Land, make, |a: $t, b: $t| (a != 0 && b != 0) as $t)?;
        check($world, Lor, make, |a: $t, b: $t| (a != 0 || b != 0) as $t)?;
        check($world, Lxor, make, |a: $t, b: $t| ((a != 0) != (b != 0)) as $t)?;
        check($world, Band, make, |a, b| a & b)?;
        check($world, Bor, make, |a, b| a | b)?;
        check($world, Bxor, make, |a, b| a ^ b)?;
        located($world, make)?;
    } )* };
}

fn located<T: Value + Debug>(world: Comm<'_>, make: impl Fn(u64) -> T + Copy) -> Result<()> {
    let make = |x: u64| Located::new(make(x), (x >> 33 & 3) as i32);
    let second = |a: Located<T>, b: Located<T>| a.value() == b.value() && b.index() < a.index();
    check(world, MaxLoc, make, |a, b| if b.value() > a.value() || second(a, b) { b } else { a })?;
    check(world, MinLoc, make, |a, b| if b.value() < a.value() || second(a, b) { b } else { a })
}

macro_rules! floats {
    ($world:ident: $($t:ty)*) => { $( {
        let make = |x: u64| small(x) as $t / 3.0;
        check($world, Sum, make, |a, b| a + b)?;
        check($world, Prod, make, |a, b| a * b)?;
        check($world, MaxVal, make, <$t>::max)?;
        check($world, MinVal, make, <$t>::min)?;
        located($world, make)?;
        let larger = |a: $t, b: $t| b.abs() > a.abs() || b.abs() == a.abs() && b > a;
        check($world, AbsMax, make, |a, b| if larger(a, b) { b } else { a })?;
        check($world, AbsMin, make, |a, b| if larger(a, b) { a } else { b })?;
        let complex = |x: u64| [small(x) as $t / 3.0, small(x >> 9) as $t];
        check($world, Sum, complex, |a: [$t; 2], b: [$t; 2]| [a[0] + b[0], a[1] + b[1]])?;
        check($world, Prod, complex, |a: [$t; 2], b: [$t; 2]| {
            [a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]]
        })?;
        let key = |z: [$t; 2]| (z[0].abs() + z[1].abs(), z[0], z[1]);
        check($world, AbsMax, complex, |a, b| if key(b) > key(a) { b } else { a })?;
        check($world, AbsMin, complex, |a, b| if key(b) < key(a) { b } else { a })?;
    } )* };
}

on_ranks!(every_predefined_function, crate::many_ranks(), 1, |_job, world| {
    integers!(world: i8 i16 i32 i64 u8 u16 u32 u64);
    floats!(world: f32 f64);
    // Whole numbers, of which no sum is rounded.
    check(world, Sum, |x| F16::from(small(x) as f32), |a, b| F16::from(f32::from(a) + f32::from(b)))?;
    check(world, Sum, |x| Bf16::from(small(x) as f32), |a, b| Bf16::from(f32::from(a) + f32::from(b)))?;
});

on_ranks!(what_is_no_number_is_seen, [1, 2, 3], 1, |_job, world| {
    let (me, last) = (world.rank(), world.size() - 1);
    let mine = if me == last { f64::NAN } else { me as f64 };
    let (mut most, mut least) = ([mine, -0.0, 0.0], [mine, -0.0, 0.0]);
    world.allreduce(&mut most, MaxVal)?;
    world.allreduce(&mut least, MinVal)?;
    assert!(most[0].is_nan() && least[0].is_nan());
    assert_eq!((most[1].to_bits(), least[2].to_bits()), ((-0.0f64).to_bits(), 0));
    let mut zeros = [if me == 0 { 0.0f64 } else { -0.0 }];
    world.allreduce(&mut zeros, MaxVal)?;
    assert!(zeros[0].is_sign_positive());
    let mut at = [Located::new(mine, me as i32)];
    world.allreduce(&mut at, MinLoc)?;
    assert!(at[0].value().is_nan() && at[0].index() == last as i32);
});
