//! The lines of PMI-1: `key=value` pairs separated by blanks, ended by a newline; the first pair is `cmd=…`.
//!
//! Both sides of the wire are here in so far as they agree: cutting a stream into lines of bounded length, cutting a line
//! into pairs, and the way bytes travel in values. A value may hold neither blanks nor newlines and is bounded by the
//! launcher (1024 characters with Hydra and Slurm), so ours are written in hexadecimal and cut into pieces:
//!
//! ```text
//!   key     "3:68656c6c6f…"   the number of pieces, a colon, the first piece
//!   key~1   "…"               the second piece
//!   key~2   "…"               the third
//! ```

use std::borrow::Cow;

/// The longest line that either side takes. The wire's own limits make lines of at most some 1500 characters.
pub(crate) const LINE_MAX: usize = 8192;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line<'a> {
    pairs: Vec<(&'a str, &'a str)>,
}

impl<'a> Line<'a> {
    /// Parses a line without its newline. `None`: not text, not pairs, or the first pair is not `cmd`.
    pub(crate) fn parse(line: &'a [u8]) -> Option<Line<'a>> {
        let text = std::str::from_utf8(line).ok()?;
        let pairs = text
            .split_ascii_whitespace()
            .map(|t| t.split_once('=').filter(|(k, _)| !k.is_empty()))
            .collect::<Option<Vec<_>>>()?;
        (pairs.first()?.0 == "cmd").then_some(Line { pairs })
    }

    /// The command.
    pub(crate) fn cmd(&self) -> &'a str {
        self.pairs[0].1
    }

    /// The value of the first pair with this key.
    pub(crate) fn get(&self, key: &str) -> Option<&'a str> {
        self.pairs.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    /// The value of the first pair with this key, a list with commas.
    pub(crate) fn list(&self, key: &str) -> Option<impl Iterator<Item = &'a str>> {
        self.get(key).map(|all| all.split(',').filter(|one| !one.is_empty()))
    }

    /// The value as a number.
    pub(crate) fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        self.get(key)?.parse().ok()
    }
}

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pairs: Vec<String> = self.pairs.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&pairs.join(" "))
    }
}

/// What arrived and has not been taken as a line yet.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    taken: usize,
}

/// More than [`LINE_MAX`] bytes arrived without a newline.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Inbox {
    /// Adds bytes as they came from the socket.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line without its newline.
    pub(crate) fn line(&mut self) -> Result<Option<&[u8]>, TooLong> {
        let rest = &self.bytes[self.taken..];
        match rest.iter().position(|b| *b == b'\n') {
            Some(n) if n <= LINE_MAX => {
                self.taken += n + 1;
                Ok(Some(&rest[..n]))
            }
            None if rest.len() <= LINE_MAX => Ok(None),
            _ => Err(TooLong),
        }
    }

    /// Bytes that no [`line`](Inbox::line) has taken yet.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }
}

/// Something that came over the wire, fit to be printed: escaped, and cut when it is long.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const MOST: usize = 160;
    let text: Cow<str> = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]);
    let more = if bytes.len() > MOST { "…" } else { "" };
    format!("\"{}{more}\"", text.escape_debug())
}

/// The bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|b| [DIGITS[(b >> 4) as usize] as char, DIGITS[(b & 15) as usize] as char]).collect()
}

/// The bytes that were written as `text`. `None`: an odd number of digits, or none.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| (c as char).to_digit(16).map(|d| d as u8);
    if !text.len().is_multiple_of(2) {
        return None;
    }
    text.as_bytes().chunks_exact(2).map(|p| Some(digit(p[0])? << 4 | digit(p[1])?)).collect()
}

/// The values, in order, under which `bytes` travels when one value takes at most `most` characters (at least 16).
pub(crate) fn pieces(bytes: &[u8], most: usize) -> Vec<String> {
    // The first piece carries the count in front of it: at most ten digits and the colon.
    let digits = (most - 11) & !1;
    let all = hex(bytes);
    let mut out: Vec<String> = all.as_bytes().chunks(digits).map(|c| String::from_utf8_lossy(c).into_owned()).collect();
    if out.is_empty() {
        out.push(String::new());
    }
    out[0] = format!("{}:{}", out.len(), out[0]);
    out
}

/// The key of the piece `i` of a value.
pub(crate) fn piece_key(key: &str, i: usize) -> String {
    if i == 0 { key.to_owned() } else { format!("{key}~{i}") }
}

/// Splits a first piece into the number of pieces and its own digits.
pub(crate) fn first_piece(value: &str) -> Option<(usize, &str)> {
    let (count, digits) = value.split_once(':')?;
    Some((count.parse().ok().filter(|n| *n >= 1)?, digits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn recorded_lines() {
        let l = Line::parse(b"cmd=get_result rc=0 msg=success value=(vector,(0,1,1))").unwrap();
        assert_eq!((l.cmd(), l.get("value"), l.number::<i32>("rc")), ("get_result", Some("(vector,(0,1,1))"), Some(0)));
        let l = Line::parse(b"cmd=universe_size size=-1 ").unwrap();
        assert_eq!((l.number::<i32>("size"), l.number::<u32>("size"), l.get("none")), (Some(-1), None, None));
        let l = Line::parse(b"cmd=put key=k value=a=b").unwrap();
        assert_eq!(l.get("value"), Some("a=b"));
        for bad in [&b""[..], b" ", b"cmd", b"=x", b"key=v cmd=x", b"cmd=x y", b"cmd=x =y", b"cmd=\xff"] {
            assert_eq!(Line::parse(bad), None, "{}", shown(bad));
        }
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let mut inbox = Inbox::default();
        inbox.push(&[b'x'; LINE_MAX]);
        assert_eq!(inbox.line(), Ok(None));
        inbox.push(b"xx\n");
        assert_eq!(inbox.line(), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_bytes_parse_or_do_not(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Some(line) = Line::parse(&bytes) {
                prop_assert!(bytes.trim_ascii_start().starts_with(b"cmd="));
                prop_assert!(bytes.windows(line.cmd().len().max(1)).any(|w| w == line.cmd().as_bytes()) || line.cmd().is_empty());
            }
            prop_assert!(shown(&bytes).chars().count() <= 2 * 1600 + 3);
        }

        #[test]
        fn pairs_come_back(pairs in proptest::collection::vec(("[a-z_]{1,20}", "[!-~]{0,60}"), 0..12)) {
            let mut text = String::from("cmd=put");
            for (k, v) in &pairs {
                text += &format!(" {k}={v}");
            }
            let line = Line::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(line.cmd(), "put");
            for (k, _) in &pairs {
                let first = if k == "cmd" { "put" } else { &pairs.iter().find(|(other, _)| other == k).unwrap().1 };
                prop_assert_eq!(line.get(k), Some(first));
            }
        }

        #[test]
        fn lines_do_not_depend_on_how_the_stream_is_cut(
            lines in proptest::collection::vec("[a-z= ]{0,300}", 0..20),
            cuts in proptest::collection::vec(1usize..200, 1..50),
        ) {
            let stream: Vec<u8> = lines.iter().flat_map(|l| format!("{l}\n").into_bytes()).collect();
            let (mut inbox, mut got, mut rest) = (Inbox::default(), Vec::new(), &stream[..]);
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*cut).min(rest.len()));
                inbox.push(now);
                rest = later;
                while let Some(l) = inbox.line().unwrap() {
                    got.push(String::from_utf8(l.to_vec()).unwrap());
                }
            }
            prop_assert_eq!(got, lines);
            prop_assert!(inbox.rest().is_empty());
        }

        #[test]
        fn values_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..3000), most in 16usize..1100) {
            let pieces = pieces(&bytes, most);
            prop_assert!(pieces.iter().all(|p| p.len() <= most));
            let (count, first) = first_piece(&pieces[0]).unwrap();
            prop_assert_eq!(count, pieces.len());
            let all = first.to_owned() + &pieces[1..].concat();
            prop_assert_eq!(unhex(&all), Some(bytes));
        }
    }
}
