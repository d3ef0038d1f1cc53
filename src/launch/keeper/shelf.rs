//! What a keeper keeps of the job's values: those whose keys belong to it. Asked for by the ranks of its node, and by
//! other keepers.

use crate::launch::place::ranges;
use crate::launch::server::found;
use crate::launch::wire::{self, Line};
use std::collections::{BTreeSet, HashMap};

/// What a key stands for.
enum Held {
    /// A piece of a value, as it was put, and the mark of the question that did it.
    Piece(String, u64),
    /// Ranks that have been added one by one.
    Ranks(BTreeSet<u32>),
}

/// See the head of this file.
#[derive(Default)]
pub(super) struct Shelf {
    held: HashMap<String, Held>,
}

/// Of a value that is made when it is asked for; pieces of it are as long as those of others.
const PIECE: usize = 900;

impl Shelf {
    /// The answer to a line. `None`: it is no line that a shelf is asked by.
    pub(super) fn answer(&mut self, line: &Line) -> Option<String> {
        let key = line.get("key")?;
        Some(match line.cmd() {
            "put" => put_result(self.put(key, line.get("value")?, line.number("mark"))),
            "fmpl-add" => put_result(self.add(key, line.number("rank")?)),
            "get" => found(key, self.get(key).as_deref()),
            _ => return None,
        })
    }

    /// A question comes once more, with the same mark, if whoever asks has not heard what came of it.
    fn put(&mut self, key: &str, value: &str, mark: Option<u64>) -> Result<(), &'static str> {
        match self.held.get(key) {
            None => drop(self.held.insert(key.to_owned(), Held::Piece(value.to_owned(), mark.unwrap_or(0)))),
            Some(Held::Piece(_, held)) if mark == Some(*held) => {}
            Some(_) => return Err("duplicate_key"),
        }
        Ok(())
    }

    fn add(&mut self, key: &str, rank: u32) -> Result<(), &'static str> {
        match self.held.entry(key.to_owned()).or_insert_with(|| Held::Ranks(BTreeSet::new())) {
            Held::Ranks(ranks) => drop(ranks.insert(rank)),
            Held::Piece(..) => return Err("duplicate_key"),
        }
        Ok(())
    }

    fn get(&self, key: &str) -> Option<String> {
        if let Some(Held::Piece(value, _)) = self.held.get(key) {
            return Some(value.clone());
        }
        let (whole, piece) =
            key.split_once('~').map_or((key, 0), |(whole, n)| (whole, n.parse().unwrap_or(usize::MAX)));
        match self.held.get(whole) {
            Some(Held::Ranks(all)) => {
                wire::pieces(ranges(all.iter().copied()).as_bytes(), PIECE).into_iter().nth(piece)
            }
            _ => None,
        }
    }
}

fn put_result(result: Result<(), &'static str>) -> String {
    match result {
        Ok(()) => "cmd=put_result rc=0 msg=success\n".into(),
        Err(why) => format!("cmd=put_result rc=-1 msg={why}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(shelf: &mut Shelf, text: &str) -> String {
        shelf.answer(&Line::parse(text.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn values_and_sets_of_ranks() {
        let mut shelf = Shelf::default();
        assert_eq!(ask(&mut shelf, "cmd=put key=a value=1:61 mark=5"), "cmd=put_result rc=0 msg=success\n");
        assert!(ask(&mut shelf, "cmd=put key=a value=1:61").contains("duplicate_key"));
        assert!(ask(&mut shelf, "cmd=put key=a value=1:61 mark=5").contains("rc=0"));
        assert!(ask(&mut shelf, "cmd=put key=a value=1:61 mark=6").contains("duplicate_key"));
        assert!(ask(&mut shelf, "cmd=fmpl-add key=a rank=3").contains("duplicate_key"));
        assert_eq!(ask(&mut shelf, "cmd=get key=a"), "cmd=get_result rc=0 msg=success value=1:61\n");
        assert!(ask(&mut shelf, "cmd=get key=b").contains("key_b_not_found"));
        for rank in (0..3000).step_by(2) {
            assert!(ask(&mut shelf, &format!("cmd=fmpl-add key=s rank={rank}")).contains("rc=0"));
        }
        let piece = |shelf: &mut Shelf, k: usize| {
            let answer = ask(shelf, &format!("cmd=get key={}", wire::piece_key("s", k)));
            Line::parse(answer.trim_end().as_bytes()).unwrap().get("value").unwrap().to_owned()
        };
        let first = piece(&mut shelf, 0);
        let (count, digits) = wire::first_piece(&first).unwrap();
        let all = (1..count).fold(digits.to_owned(), |all, k| all + &piece(&mut shelf, k));
        let text = String::from_utf8(wire::unhex(&all).unwrap()).unwrap();
        assert!(count > 10 && text.starts_with("0,2,4,") && text.ends_with(",2998"), "{text}");
        assert!(ask(&mut shelf, "cmd=get key=s~99").contains("not_found"));
        assert_eq!(shelf.answer(&Line::parse(b"cmd=barrier_in key=a").unwrap()), None);
    }
}
