//! Words of a model: as in memory, and as the checker has them.

use super::*;

macro_rules! word {
    ($name:ident, $int:ty, $words:ident) => {
        /// The machine's atomic of this name outside of models, its shadow inside.
        #[repr(transparent)]
        #[derive(Default, Debug)]
        pub struct $name(real::$name);

        impl $name {
            /// A word of this value.
            pub const fn new(value: $int) -> $name {
                $name(real::$name::new(value))
            }
            fn shadow(&self) -> Option<Rc<checked::$name>> {
                // What is dropped on the way out of a thread that has failed, or died, is nobody's any more.
                if !ACTIVE.get() || std::thread::panicking() {
                    return None;
                }
                interrupted();
                let at = self as *const $name as usize;
                let found = with(|m| {
                    if let Some(word) = m.$words.get(&at) {
                        return Some(word.clone());
                    }
                    if !m.shares(at) {
                        return None;
                    }
                    m.known_words.insert(at, size_of::<$int>());
                    m.grew = true;
                    let word = Rc::new(checked::$name::new(self.0.load(Ordering::Relaxed)));
                    m.$words.insert(at, word.clone());
                    Some(word)
                });
                if found.is_some() {
                    guard(at);
                }
                found
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn load(&self, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.load(order), |w| w.load(order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn store(&self, value: $int, order: Ordering) {
                let loss = loss();
                if loss == Some(Loss::All) {
                    return;
                }
                let order = without(order, loss);
                self.shadow().map_or_else(|| self.0.store(value, order), |w| w.store(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn compare_exchange(&self, old: $int, new: $int, good: Ordering, bad: Ordering) -> Result<$int, $int> {
                let loss = loss();
                let (good, bad) = (without(good, loss), without(bad, loss));
                self.shadow().map_or_else(
                    || self.0.compare_exchange(old, new, good, bad),
                    |w| w.compare_exchange(old, new, good, bad),
                )
            }
            /// As [`core::sync::atomic`]; it fails only when the values differ.
            #[track_caller]
            pub fn compare_exchange_weak(
                &self,
                old: $int,
                new: $int,
                good: Ordering,
                bad: Ordering,
            ) -> Result<$int, $int> {
                self.compare_exchange(old, new, good, bad)
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn swap(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.swap(value, order), |w| w.swap(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_add(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_add(value, order), |w| w.fetch_add(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_sub(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_sub(value, order), |w| w.fetch_sub(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_and(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_and(value, order), |w| w.fetch_and(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_or(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_or(value, order), |w| w.fetch_or(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_xor(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_xor(value, order), |w| w.fetch_xor(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_max(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_max(value, order), |w| w.fetch_max(value, order))
            }
            /// As [`core::sync::atomic`].
            #[track_caller]
            pub fn fetch_min(&self, value: $int, order: Ordering) -> $int {
                let order = without(order, loss());
                self.shadow().map_or_else(|| self.0.fetch_min(value, order), |w| w.fetch_min(value, order))
            }
        }
    };
}

word!(AtomicU8, u8, words8);

word!(AtomicU16, u16, words16);

word!(AtomicU32, u32, words32);

word!(AtomicU64, u64, words64);

/// A number that each model has for itself: models run beside each other, each in a thread of the machine.
pub struct Setting(u64);

impl Setting {
    /// A setting that has this value until it is set.
    pub const fn new(value: u64) -> Setting {
        Setting(value)
    }
    /// Its value.
    pub fn get(&self) -> u64 {
        with(|m| m.settings.get(&(&raw const *self as usize)).copied()).unwrap_or(self.0)
    }
    /// Changes it.
    pub fn set(&self, value: u64) {
        with(|m| m.settings.insert(&raw const *self as usize, value));
    }
}
