use super::*;
use proptest::prelude::*;

#[path = "../../../tests/reference/mod.rs"]
mod reference;

/// A vector at an address that is no multiple of anything.
struct Vector(Vec<u8>, usize);

impl Vector {
    fn new(contents: &[u8], shift: usize) -> Vector {
        let mut bytes = vec![0xee; shift];
        bytes.extend(contents);
        Vector(bytes, shift)
    }
    fn room(&mut self) -> Room<'_> {
        Room::of(&mut self.0[self.1..])
    }
    fn contents(&self) -> &[u8] {
        &self.0[self.1..]
    }
}

/// Elements of a vector, each by its number.
fn elements(f: Predefined, seed: u64, n: usize) -> Vec<u8> {
    let mix =
        |k: u64| (seed ^ k.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29);
    (0..n as u64).flat_map(|k| reference::element(f.kind.name(), f.operation.name(), mix(k), true)).collect()
}

/// All loops of a function give what the reference does, wherever the result goes.
fn agrees(f: Predefined, seed: u64, n: usize, shift: usize) {
    let (kind, operation) = (f.kind.name(), f.operation.name());
    let size = reference::size(kind, operation);
    let (a, b) = (elements(f, seed, n), elements(f, !seed, n));
    let pairs = a.chunks_exact(size).zip(b.chunks_exact(size));
    let want: Vec<u8> = pairs.flat_map(|(a, b)| reference::combined(kind, operation, a, b)).collect();
    for (which, kernel) in Kernel::all(f).into_iter().enumerate() {
        assert_eq!(kernel.size, size, "{}", f.name());
        let (mut x, mut y) = (Vector::new(&a, shift), Vector::new(&b, shift / 2));
        let mut z = Vector::new(&vec![0xdd; a.len()], 8 - shift);
        kernel.run(z.room(), Bytes::of(x.contents()), Bytes::of(y.contents()), n);
        let room = x.room();
        kernel.run(room, *room, Bytes::of(y.contents()), n);
        let room = y.room();
        kernel.run(room, Bytes::of(&a), *room, n);
        for (where_to, got) in [("elsewhere", z), ("left", x), ("right", y)] {
            let same = |(got, want): &(&[u8], &[u8])| got == want;
            let wrong = got.contents().chunks_exact(size).zip(want.chunks_exact(size)).position(|p| !same(&p));
            if let Some(k) = wrong {
                let at = |v: &[u8]| v[k * size..][..size].to_vec();
                panic!(
                    "{} (loop {which}, result {where_to}), element {k} of {n}: {:?} ∘ {:?} gives {:?}, not {:?}",
                    f.name(),
                    at(&a),
                    at(&b),
                    at(got.contents()),
                    at(&want)
                );
            }
            assert!(got.0[..got.1].iter().all(|b| *b == 0xee));
        }
    }
}

/// Those that this processor has.
fn here() -> impl Iterator<Item = Predefined> {
    PREDEFINED.iter().copied().filter(|f| f.kind != Kind::f80 || cfg!(all(target_arch = "x86_64", not(miri))))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 1 } else { 60 }, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_function_does_what_a_scalar_one_does(seed: u64, n in 0usize..150, shift in 0usize..9) {
        for f in here() {
            agrees(f, seed, n, shift);
        }
    }
}

#[test]
fn every_name_has_a_loop_and_there_are_no_others() {
    for f in here() {
        assert!(LOOPS[f.kind as usize][f.operation as usize].size > 0, "{}", f.name());
    }
    let kinds: std::collections::BTreeSet<usize> = here().map(|f| f.kind as usize).collect();
    let there = kinds.iter().flat_map(|kind| &LOOPS[*kind]).filter(|l| l.size > 0).count();
    assert_eq!(there, here().count());
    let names: std::collections::BTreeSet<String> = PREDEFINED.iter().map(|f| f.name()).collect();
    assert_eq!(names.len(), PREDEFINED.len());
}

/// All pairs of bytes, and what vectors do where numbers end.
#[test]
fn bytes_and_ends_of_ranges() {
    let combined = |kind, operation, a: &[u8], b: &[u8]| {
        Kernel::all(Predefined { kind, operation }).map(|kernel| {
            let mut out = a.to_vec();
            let n = a.len() / kernel.size;
            let room = Room::of(&mut out);
            kernel.run(room, *room, Bytes::of(b), n);
            out
        })
    };
    let (a, b): (Vec<u8>, Vec<u8>) = (0..=u8::MAX).flat_map(|a| (0..=u8::MAX).map(move |b| (a, b))).unzip();
    for f in here().filter(|f| matches!(f.kind, Kind::i8 | Kind::u8 | Kind::b8) && !f.name().ends_with("loc")) {
        let pairs = a.iter().zip(&b);
        let want: Vec<u8> =
            pairs.flat_map(|(a, b)| reference::combined(f.kind.name(), f.operation.name(), &[*a], &[*b])).collect();
        assert!(combined(f.kind, f.operation, &a, &b).iter().all(|got| *got == want), "{}", f.name());
    }
    let sums = combined(Kind::i, Operation::sum, &i32::MAX.to_ne_bytes(), &1i32.to_ne_bytes());
    assert!(sums.iter().all(|s| *s == i32::MIN.to_ne_bytes()));
    let products = combined(Kind::u64, Operation::prod, &u64::MAX.to_ne_bytes(), &u64::MAX.to_ne_bytes());
    assert!(products.iter().all(|p| *p == 1u64.to_ne_bytes()));
    let most = combined(Kind::i, Operation::amax, &i32::MIN.to_ne_bytes(), &i32::MAX.to_ne_bytes());
    assert!(most.iter().all(|m| *m == i32::MIN.to_ne_bytes()));
}

/// The x87 rounds to 64 bits, where a double has 53; and its NaN is seen.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn long_doubles() {
    let long = |exponent: u16, fraction: u64| -> Vec<u8> {
        [&fraction.to_ne_bytes()[..], &exponent.to_ne_bytes(), &[0; 6]].concat()
    };
    let of = |operation, a: &[u8], b: &[u8]| {
        let mut out = a.to_vec();
        let room = Room::of(&mut out);
        Kernel::of(Predefined { kind: Kind::f80, operation }).run(room, *room, Bytes::of(b), 1);
        out
    };
    let (one, least) = (long(16383, 1 << 63), long(16383 - 63, 1 << 63));
    assert_eq!(of(Operation::sum, &one, &least), long(16383, (1 << 63) + 1));
    // Half of that is rounded to the even neighbour.
    assert_eq!(of(Operation::sum, &one, &long(16383 - 64, 1 << 63)), one);
    let near = long(16383, (1 << 63) + 1);
    assert_eq!(of(Operation::prod, &near, &near), long(16383, (1 << 63) + 2));
    let (nan, minus, zero, less) = (long(0x7fff, 3 << 62), long(0x8000, 0), long(0, 0), long(0x8000 | 16383, 1 << 63));
    for (a, b, most, fewest) in [
        (&one, &nan, &nan, &nan),
        (&nan, &one, &nan, &nan),
        (&minus, &zero, &zero, &minus),
        (&zero, &minus, &zero, &minus),
        (&one, &less, &one, &less),
        (&less, &one, &one, &less),
        (&one, &near, &near, &one),
        (&long(0x7fff, 1 << 63), &one, &long(0x7fff, 1 << 63), &one),
    ] {
        assert_eq!((&of(Operation::maxval, a, b), &of(Operation::minval, a, b)), (most, fewest));
    }
}
