//! Sorting of what is short or is sorted seldom, by one function for all types. The standard library's is several kilobytes of code for
//! each type and order; where many numbers are sorted, or often, it is the one to call.

use core::cmp::Ordering;
use core::mem::replace;

/// Sorts by `compare`; what it calls equal stays in its order.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let from = sources(items.len(), &mut |a, b| compare(&items[a], &items[b]));
    put_in_place(items, from);
}

/// Sorts by what `key` makes of each, which it is asked for once.
pub fn sort_by_key<T, K: Ord>(items: &mut [T], key: impl FnMut(&T) -> K) {
    let keys: Vec<K> = items.iter().map(key).collect();
    let from = sources(items.len(), &mut |a, b| keys[a].cmp(&keys[b]));
    put_in_place(items, from);
}

/// Each goes from where it is to the place that has it as its source.
fn put_in_place<T>(items: &mut [T], mut from: Vec<usize>) {
    for start in 0..items.len() {
        let mut to = start;
        loop {
            let next = replace(&mut from[to], to);
            if next == start {
                break;
            }
            items.swap(to, next);
            to = next;
        }
    }
}

/// Where what belongs at each place is.
#[inline(never)]
fn sources(n: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut from: Vec<usize> = (0..n).collect();
    from.sort_by(|a, b| compare(*a, *b));
    from
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn as_the_standard_library_sorts(mut items: Vec<(u8, String)>) {
            let mut theirs = items.clone();
            theirs.sort_by_key(|(key, _)| *key % 8);
            sort_by_key(&mut items, |(key, _)| *key % 8);
            prop_assert_eq!(items, theirs);
        }
    }
}
