//! What is said over a [`Link`](super::link::Link), as bytes: whole numbers in four bytes, the lowest first; texts and lists with their
//! lengths in front. Whoever hears bytes that are not of this making gets `None`.

use crate::base::system::process::End;
use crate::launch::embedded::{Bind, Map, Program};
use crate::launch::server::Word;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// From above to a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launch) enum Down {
    /// What the job is, and this machine's part of it; the first that is said.
    Start(Box<Plan>),
    Exchange(Word),
    /// A signal for all ranks but one.
    Signal(i32, Option<u32>),
    /// What rank 0 reads; nothing: the end.
    Input(Vec<u8>),
    /// That daemon may say so many more bytes of output.
    Credit(u32, u32),
    /// Nobody reads this stream any more: output (0) or error (1).
    Close(u8),
    /// What are these ranks at?
    Activity(Vec<u32>),
    /// All ranks have ended: clean up, say the rest, and end.
    Finish,
}

/// From a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launch) enum Up {
    /// The daemon of this number has started its ranks, with these process ids.
    Started(u32, Vec<i32>),
    /// It could not: the exit code that says so, and why.
    Refused(u32, i32, String),
    Exchange(Word),
    /// A rank has ended, and did not leave the job in good order.
    Ended(u32, End, bool),
    /// The numbers that a rank has left; before the news of its end.
    Stats(u32, String),
    /// A rank asks for the end of the job, with this exit code.
    Abort(u32, i32),
    /// A rank has sent what is not PMI-1.
    Garbage(u32, String),
    /// Bytes of a rank's output (0) or error (1).
    Output(u32, u8, Vec<u8>),
    /// There will be no more of it.
    Closed(u32, u8),
    /// Rank 0 has taken so many bytes.
    Taken(u32),
    /// For people.
    Say(String),
    /// The daemons of these numbers, first and last, are gone, for this reason.
    Lost(u32, u32, String),
    /// Nothing to say. Where the other machine is gone without a word, this is what the system notices it by.
    Beat(u32),
    /// Nothing more comes from here.
    Done,
}

/// A job, as a daemon has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launch) struct Plan {
    pub(in crate::launch) size: u32,
    pub(in crate::launch) programs: Vec<Program>,
    pub(in crate::launch) env: Vec<(OsString, OsString)>,
    pub(in crate::launch) wdir: Option<OsString>,
    pub(in crate::launch) bind: Bind,
    pub(in crate::launch) map: Map,
    pub(in crate::launch) verbose: bool,
    /// Rank 0 reads what comes from above.
    pub(in crate::launch) stdin: bool,
    /// The numbers of the ranks are wanted.
    pub(in crate::launch) stats: bool,
    /// Standard output and error go nowhere.
    pub(in crate::launch) silent: [bool; 2],
    /// Where all ranks are, in PMI's words.
    pub(in crate::launch) mapping: String,
    pub(in crate::launch) agent: Agent,
    /// This machine first, then those below it.
    pub(in crate::launch) posts: Vec<Post>,
}

/// How daemons are started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launch) struct Agent {
    /// The command in front of the host's name.
    pub(in crate::launch) words: Vec<OsString>,
    /// The program `fmpl`, there.
    pub(in crate::launch) fmpl: OsString,
}

/// A machine of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::launch) struct Post {
    /// The number of its daemon. Those below it have the next ones.
    pub(in crate::launch) number: u32,
    pub(in crate::launch) host: String,
    /// Its ranks, with the numbers of their programs.
    pub(in crate::launch) ranks: Vec<(u32, u32)>,
}

/// Bytes that become values again.
struct Read<'a>(&'a [u8]);

/// What can be said.
trait Said: Sized {
    fn put(&self, to: &mut Vec<u8>);
    fn get(from: &mut Read) -> Option<Self>;
}

impl Said for u8 {
    fn put(&self, to: &mut Vec<u8>) {
        to.push(*self);
    }
    fn get(from: &mut Read) -> Option<u8> {
        let (byte, rest) = from.0.split_first()?;
        from.0 = rest;
        Some(*byte)
    }
}

impl Said for u32 {
    fn put(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.to_le_bytes());
    }
    fn get(from: &mut Read) -> Option<u32> {
        let (bytes, rest) = from.0.split_first_chunk::<4>()?;
        from.0 = rest;
        Some(u32::from_le_bytes(*bytes))
    }
}

/// A type that is said as another: how it becomes that, and back.
macro_rules! said_as {
    ($($type:ty as $other:ty: $there:expr, $back:expr;)*) => {$(
        impl Said for $type {
            fn put(&self, to: &mut Vec<u8>) {
                let there: fn(&$type) -> $other = $there;
                there(self).put(to);
            }
            fn get(from: &mut Read) -> Option<$type> {
                let back: fn($other) -> Option<$type> = $back;
                back(<$other>::get(from)?)
            }
        }
    )*};
}

said_as! {
    i32 as u32: |n| *n as u32, |n| Some(n as i32);
    usize as u32: |n| *n as u32, |n| Some(n as usize);
    bool as u8: |b| *b as u8, |b| (b < 2).then_some(b == 1);
    String as Vec<u8>: |s| s.clone().into_bytes(), |b| String::from_utf8(b).ok();
    OsString as Vec<u8>: |s| s.as_bytes().to_vec(), |b| Some(OsString::from_vec(b));
    End as (u8, i32, bool): |e| match *e {
        End::Exit(code) => (0, code, false),
        End::Signal { signal, core } => (1, signal, core),
    }, |(kind, n, core)| match kind {
        0 => Some(End::Exit(n)),
        1 => Some(End::Signal { signal: n, core }),
        _ => None,
    };
    Bind as u8: |b| BINDS.iter().position(|x| x == b).unwrap_or(0) as u8, |n| BINDS.get(n as usize).copied();
    Map as u8: |m| MAPS.iter().position(|x| x == m).unwrap_or(0) as u8, |n| MAPS.get(n as usize).copied();
}

const BINDS: [Bind; 6] = [Bind::Auto, Bind::Core, Bind::L3, Bind::Numa, Bind::Socket, Bind::None];
const MAPS: [Map; 4] = [Map::Core, Map::L3, Map::Numa, Map::Socket];

impl<T: Said> Said for Vec<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (self.len() as u32).put(to);
        self.iter().for_each(|x| x.put(to));
    }
    fn get(from: &mut Read) -> Option<Vec<T>> {
        let n = u32::get(from)? as usize;
        // Each takes a byte at least: no number makes us take memory for nothing.
        (n <= from.0.len()).then_some(())?;
        (0..n).map(|_| T::get(from)).collect()
    }
}

impl<T: Said> Said for Option<T> {
    fn put(&self, to: &mut Vec<u8>) {
        self.is_some().put(to);
        self.iter().for_each(|x| x.put(to));
    }
    fn get(from: &mut Read) -> Option<Option<T>> {
        if bool::get(from)? { T::get(from).map(Some) } else { Some(None) }
    }
}

macro_rules! said_in_turn {
    ($(($($name:ident),*))*) => {$(
        impl<$($name: Said),*> Said for ($($name,)*) {
            #[allow(non_snake_case)]
            fn put(&self, to: &mut Vec<u8>) {
                let ($($name,)*) = self;
                $($name.put(to);)*
            }
            fn get(from: &mut Read) -> Option<Self> {
                Some(($($name::get(from)?,)*))
            }
        }
    )*};
}

said_in_turn! { (A, B) (A, B, C) }

/// Structures, field by field.
macro_rules! said_by_fields {
    ($($type:ident { $($field:ident),* })*) => {$(
        impl Said for $type {
            fn put(&self, to: &mut Vec<u8>) {
                $(self.$field.put(to);)*
            }
            fn get(from: &mut Read) -> Option<$type> {
                Some($type { $($field: Said::get(from)?),* })
            }
        }
    )*};
}

said_by_fields! {
    Program { n, argv, env, wdir }
    Agent { words, fmpl }
    Post { number, host, ranks }
    Plan { size, programs, env, wdir, bind, map, verbose, stdin, stats, silent, mapping, agent, posts }
}

impl Said for std::path::PathBuf {
    fn put(&self, to: &mut Vec<u8>) {
        self.as_os_str().to_owned().put(to);
    }
    fn get(from: &mut Read) -> Option<Self> {
        OsString::get(from).map(Into::into)
    }
}

impl<T: Said> Said for Box<T> {
    fn put(&self, to: &mut Vec<u8>) {
        (**self).put(to);
    }
    fn get(from: &mut Read) -> Option<Box<T>> {
        T::get(from).map(Box::new)
    }
}

impl Said for [bool; 2] {
    fn put(&self, to: &mut Vec<u8>) {
        (self[0], self[1]).put(to);
    }
    fn get(from: &mut Read) -> Option<[bool; 2]> {
        <(bool, bool)>::get(from).map(<[bool; 2]>::from)
    }
}

/// Enumerations: a byte for the variant, then its values.
macro_rules! said_by_variants {
    ($($type:ident { $($number:literal $variant:ident($($value:ident),+))* $(; $last:literal $unit:ident)? })*) => {$(
        impl Said for $type {
            fn put(&self, to: &mut Vec<u8>) {
                match self {
                    $($type::$variant($($value),+) => {
                        to.push($number);
                        $($value.put(to);)+
                    })*
                    $($type::$unit => to.push($last),)?
                }
            }
            fn get(from: &mut Read) -> Option<$type> {
                Some(match u8::get(from)? {
                    $($number => {
                        $(let $value = Said::get(from)?;)+
                        $type::$variant($($value),+)
                    })*
                    $($last => $type::$unit,)?
                    _ => return None,
                })
            }
        }
    )*};
}

said_by_variants! {
    Word {
        0 Put(round, pairs)
        1 Fence(round)
        2 Get(round, key)
        3 Value(round, key, value)
        4 Release(round, why)
        5 LostRound(round, why)
        6 Lost(why)
        7 All(round)
    }
    Down {
        0 Start(plan)
        1 Exchange(word)
        2 Signal(signal, but)
        3 Input(bytes)
        4 Credit(daemon, bytes)
        5 Activity(ranks)
        6 Close(stream)
        ; 7 Finish
    }
    Up {
        0 Started(daemon, pids)
        1 Refused(daemon, code, text)
        2 Exchange(word)
        3 Ended(rank, end, badly)
        4 Abort(rank, code)
        5 Garbage(rank, what)
        6 Output(rank, stream, bytes)
        7 Closed(rank, stream)
        8 Taken(bytes)
        9 Say(text)
        10 Lost(first, last, why)
        11 Beat(daemon)
        12 Stats(rank, text)
        ; 13 Done
    }
}

macro_rules! spoken {
    ($($type:ident)*) => {$(
        impl $type {
            pub(in crate::launch) fn encode(&self) -> Vec<u8> {
                let mut bytes = Vec::new();
                self.put(&mut bytes);
                bytes
            }

            /// `None`: the bytes are not of this making.
            pub(in crate::launch) fn decode(bytes: &[u8]) -> Option<$type> {
                let mut from = Read(bytes);
                let word = <$type>::get(&mut from)?;
                from.0.is_empty().then_some(word)
            }
        }
    )*};
}

spoken! { Down Up }

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plan() -> Plan {
        let program = |n: usize| Program {
            n,
            argv: vec!["./a b".into(), OsString::from_vec(vec![0xff, 1])],
            env: vec![("A".into(), "".into())],
            wdir: (n > 1).then(|| "/d".into()),
        };
        Plan {
            size: 5,
            programs: vec![program(1), program(4)],
            env: vec![("B".into(), "c=d".into())],
            wdir: Some("/".into()),
            bind: Bind::Numa,
            map: Map::L3,
            verbose: true,
            stdin: false,
            stats: true,
            silent: [false, true],
            mapping: "(vector,(0,1,5))".into(),
            agent: Agent { words: vec!["ssh".into(), "-T".into()], fmpl: "/opt/fmpl/bin/fmpl".into() },
            posts: vec![Post { number: 3, host: "b".into(), ranks: vec![(4, 1)] }],
        }
    }

    #[test]
    fn words_come_as_they_went() {
        let (text, lost) = (|| "text".to_owned(), Word::Lost("why".into()));
        for word in [
            Down::Start(Box::new(plan())),
            Down::Exchange(Word::Value(2, "k".into(), None)),
            Down::Exchange(Word::Release(3, Some("w".into()))),
            Down::Signal(15, Some(7)),
            Down::Input(vec![0, 255]),
            Down::Credit(1, 2),
            Down::Activity(vec![1, 2]),
            Down::Close(1),
            Down::Finish,
        ] {
            assert_eq!(Down::decode(&word.encode()), Some(word));
        }
        for word in [
            Up::Started(1, vec![2, i32::MAX]),
            Up::Refused(1, -2, text()),
            Up::Exchange(lost),
            Up::Exchange(Word::All(4)),
            Up::Exchange(Word::Put(1, vec![("a".into(), "b".into())])),
            Up::Ended(1, End::Signal { signal: 9, core: true }, false),
            Up::Ended(1, End::Exit(-1), true),
            Up::Stats(1, text()),
            Up::Abort(1, 2),
            Up::Garbage(3, text()),
            Up::Output(1, 2, vec![]),
            Up::Closed(1, 2),
            Up::Taken(9),
            Up::Say(text()),
            Up::Lost(1, 2, text()),
            Up::Beat(3),
            Up::Done,
        ] {
            let mut bytes = word.encode();
            assert_eq!(Up::decode(&bytes), Some(word));
            bytes.push(0);
            assert_eq!(Up::decode(&bytes), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_word_or_not(bytes in proptest::collection::vec(0u8..15, 0..60), cut in 0usize..200) {
            for bytes in [&bytes[..], &plan_bytes()[..cut.min(plan_bytes().len())]] {
                prop_assert!(Up::decode(bytes).is_none_or(|w| w.encode() == bytes));
                prop_assert!(Down::decode(bytes).is_none_or(|w| w.encode() == bytes));
            }
        }
    }

    fn plan_bytes() -> Vec<u8> {
        Down::Start(Box::new(plan())).encode()
    }
}
