//! The connection between a machine of a job and the one that started the daemon there: the daemon's standard input and output.
//!
//! ```text
//!   above ── cmd=fmpl-daemon version=V secret=S ─▶ daemon        over standard input, never on a command line
//!   above ◀─ cmd=fmpl-daemon version=V proof=HMAC(S) ── daemon    what a login script has printed before is passed over
//!   both: frames        length (4 bytes) │ payload │ the first 16 bytes of HMAC(key; number of the frame, payload)
//! ```
//! The secret is drawn by lot for this connection alone; each direction has a key of its own. So what a script in between adds, alters or
//! leaves out is noticed, as [`seal`](crate::launch::seal) does it for lines. What hides it from strangers is `ssh`.

use crate::base::error::Result;
use crate::base::key::{CHECK, Key, random};
use crate::base::system::{read, write};
use crate::launch::wire::{self, Line};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// Of what is said here: another version is refused by both sides.
pub(super) const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// No frame is longer: what a whole job is started with has to fit.
const FRAME_MAX: usize = 256 << 20;
/// What a login script may print before the daemon's first line.
const NOISE_MAX: usize = 64 << 10;
const HEAD: usize = 4;

/// One direction's key, and the number of the next frame.
struct Stamp {
    key: Key,
    next: u64,
}

impl Stamp {
    fn new(secret: &Key, who: &str) -> Stamp {
        Stamp { key: secret.derive(who, &[VERSION.as_bytes()]), next: 0 }
    }
}

/// See the head of this file.
pub(super) struct Link {
    from: OwnedFd,
    to: OwnedFd,
    says: Stamp,
    hears: Stamp,
    proof: Key,
    /// The other side has shown that it knows the secret.
    pub(super) greeted: bool,
    came: Vec<u8>,
    taken: usize,
    going: Vec<u8>,
    sent: usize,
}

/// Why nothing more comes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The other side has closed it.
    Closed,
    /// What came is not what it says.
    Wrong(String),
}

impl Link {
    fn new(from: OwnedFd, to: OwnedFd, secret: &Key, [own, other]: [&str; 2]) -> Link {
        let (says, hears) = (Stamp::new(secret, own), Stamp::new(secret, other));
        let proof = secret.derive("proof of the daemon", &[]);
        let (came, going) = (Vec::new(), Vec::new());
        Link { from, to, says, hears, proof, greeted: false, came, taken: 0, going, sent: 0 }
    }

    /// To a daemon that is being started. Neither may block.
    pub(super) fn below(from: OwnedFd, to: OwnedFd) -> Result<Link> {
        let secret = random::<32>()?;
        let mut link = Link::new(from, to, &Key::of(&secret), ["above", "below"]);
        link.going = format!("cmd=fmpl-daemon version={VERSION} secret={}\n", wire::hex(&secret)).into_bytes();
        Ok(link)
    }

    /// To whoever has started this daemon. Neither may block. The first line has been read.
    pub(super) fn above(from: OwnedFd, to: OwnedFd, line: &[u8]) -> std::result::Result<Link, String> {
        let parsed = Line::parse(line)
            .filter(|l| l.cmd() == "fmpl-daemon")
            .and_then(|l| Some((l.get("version")?, l.get("secret")?)));
        let (version, secret) =
            parsed.ok_or("what is on the standard input is not what `fmpl run` says to a daemon")?;
        let secret = wire::unhex(secret).filter(|s| s.len() == 32).ok_or("the secret is none")?;
        let mut link = Link::new(from, to, &Key::of(&secret), ["below", "above"]);
        let proof = wire::hex(&link.proof.check(&[version.as_bytes(), VERSION.as_bytes()]));
        link.going = format!("cmd=fmpl-daemon version={VERSION} proof={proof}\n").into_bytes();
        link.greeted = true;
        // Another version would not understand more; it says so itself, with what stands in the line.
        if version == VERSION {
            Ok(link)
        } else {
            drop(link.flush());
            Err(format!("this daemon is FMPL {VERSION}, and was started by {version}"))
        }
    }

    pub(super) fn from(&self) -> RawFd {
        self.from.as_raw_fd()
    }

    pub(super) fn to(&self) -> RawFd {
        self.to.as_raw_fd()
    }

    /// Says a frame, which [`flush`](Link::flush) sends.
    pub(super) fn say(&mut self, payload: &[u8]) {
        let check = self.says.key.check(&[&self.says.next.to_le_bytes(), payload]);
        self.says.next += 1;
        self.going.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        self.going.extend_from_slice(payload);
        self.going.extend_from_slice(&check);
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.sent == self.going.len()
    }

    /// Sends what can be sent. An error: nobody hears it any more.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while !self.is_flushed() {
            match write(&self.to(), &self.going[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(e),
            }
        }
        (self.sent, self.going) = (0, Vec::new());
        Ok(())
    }

    /// What has not been sent is not to be sent any more: nobody hears it.
    pub(super) fn forget(&mut self) {
        (self.sent, self.going) = (0, Vec::new());
    }

    /// Reads what has come. `Err`: there will be no more, behind what [`next`](Link::next) gives.
    pub(super) fn take_in(&mut self) -> std::result::Result<(), End> {
        self.came.drain(..self.taken);
        self.taken = 0;
        let mut bytes = vec![0; 64 << 10];
        // So much at a time, for the others' sake.
        for _ in 0..8 {
            match read(&self.from, &mut bytes) {
                Ok(0) => return Err(End::Closed),
                Ok(n) => self.came.extend_from_slice(&bytes[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return Err(End::Closed),
            }
        }
        Ok(())
    }

    /// The next frame that is here whole.
    pub(super) fn next(&mut self) -> std::result::Result<Option<&[u8]>, End> {
        while !self.greeted {
            let Some(line) = self.line() else {
                let much = self.came.len() - self.taken > NOISE_MAX;
                return if much { Err(End::Wrong("much text, and no word of a daemon".into())) } else { Ok(None) };
            };
            self.greeted = self.judge(&line)?;
        }
        let rest = &self.came[self.taken..];
        let Some(head) = rest.first_chunk::<HEAD>() else { return Ok(None) };
        let length = u32::from_le_bytes(*head) as usize;
        if length > FRAME_MAX {
            return Err(End::Wrong(format!("a frame of {length} bytes")));
        }
        let Some(body) = rest[HEAD..].get(..length + CHECK) else { return Ok(None) };
        let (payload, check) = body.split_at(length);
        let check = check.try_into().map_err(|_| End::Wrong("half a check".into()))?;
        if !self.hears.key.verifies(&[&self.hears.next.to_le_bytes(), payload], check) {
            return Err(End::Wrong("what is not the other side's next word: it was altered on its way".into()));
        }
        self.hears.next += 1;
        let at = self.taken + HEAD;
        self.taken = at + length + CHECK;
        Ok(Some(&self.came[at..at + length]))
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let rest = &self.came[self.taken..];
        let end = rest.iter().position(|b| *b == b'\n')?;
        self.taken += end + 1;
        Some(rest[..end].to_vec())
    }

    /// Is this the daemon's first line? Others come from login scripts.
    fn judge(&self, line: &[u8]) -> std::result::Result<bool, End> {
        let Some(line) = Line::parse(line).filter(|l| l.cmd() == "fmpl-daemon") else { return Ok(false) };
        let version = line.get("version").unwrap_or("unknown");
        if version != VERSION {
            return Err(End::Wrong(format!("fmpl there is version {version}, here it is {VERSION}")));
        }
        let proof = line.get("proof").and_then(wire::unhex).and_then(|p| <[u8; CHECK]>::try_from(p).ok());
        match proof.is_some_and(|p| self.proof.verifies(&[version.as_bytes(), version.as_bytes()], &p)) {
            true => Ok(true),
            false => Err(End::Wrong("what answers does not know the secret that it was given".into())),
        }
    }
}

/// The first line on a descriptor that blocks, without its end; nothing behind it is read.
pub(super) fn first_line(fd: &impl AsRawFd) -> io::Result<Vec<u8>> {
    let (mut line, mut byte) = (Vec::new(), [0u8]);
    while line.len() <= wire::LINE_MAX {
        match read(fd, &mut byte) {
            Ok(1) if byte[0] == b'\n' => return Ok(line),
            Ok(1) => line.push(byte[0]),
            Ok(_) => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    fn pair() -> (UnixStream, UnixStream) {
        let (a, b) = UnixStream::pair().unwrap();
        a.set_nonblocking(true).unwrap();
        (a, b)
    }

    fn both() -> (Link, Link) {
        let (ours, theirs) = pair();
        let mut above = Link::below(ours.try_clone().unwrap().into(), ours.into()).unwrap();
        above.flush().unwrap();
        let line = first_line(&theirs).unwrap();
        theirs.set_nonblocking(true).unwrap();
        let mut below = Link::above(theirs.try_clone().unwrap().into(), theirs.into(), &line).unwrap();
        below.flush().unwrap();
        (above, below)
    }

    fn all(link: &mut Link) -> std::result::Result<Vec<Vec<u8>>, End> {
        let _ = link.take_in();
        let mut frames = Vec::new();
        while let Some(frame) = link.next()? {
            frames.push(frame.to_vec());
        }
        Ok(frames)
    }

    #[test]
    fn frames_come_as_they_went() {
        let (mut above, mut below) = both();
        for payload in [&b"one"[..], b"", &[7; 100_000]] {
            above.say(payload);
        }
        let mut got = Vec::new();
        while got.len() < 3 {
            above.flush().unwrap();
            got.append(&mut all(&mut below).unwrap());
        }
        assert_eq!(got, [&b"one"[..], b"", &[7; 100_000]]);
        below.say(b"back");
        below.flush().unwrap();
        assert_eq!(all(&mut above), Ok(vec![b"back".to_vec()]));
        drop(below);
        assert_eq!(above.take_in(), Err(End::Closed));
    }

    #[test]
    fn what_a_login_script_prints_is_passed_over() {
        let (ours, mut theirs) = pair();
        let mut above = Link::below(ours.try_clone().unwrap().into(), ours.into()).unwrap();
        above.flush().unwrap();
        theirs.write_all(b"Welcome to b!\ncmd=nothing\n\xff\n").unwrap();
        let line = first_line(&theirs).unwrap();
        let mut below =
            Link::above(theirs.try_clone().unwrap().into(), theirs.try_clone().unwrap().into(), &line).unwrap();
        below.say(b"hello");
        below.flush().unwrap();
        assert_eq!(all(&mut above), Ok(vec![b"hello".to_vec()]));
        theirs.write_all(&[0; 30]).unwrap();
        assert!(matches!(all(&mut above), Err(End::Wrong(_))), "but not behind the first word");
    }

    #[test]
    fn another_version_and_another_secret_are_noticed() {
        let answer = |with: &dyn Fn(&str) -> String| {
            let (ours, mut theirs) = pair();
            let mut above = Link::below(ours.try_clone().unwrap().into(), ours.into()).unwrap();
            above.flush().unwrap();
            let line = String::from_utf8(first_line(&theirs).unwrap()).unwrap();
            theirs.write_all(with(&line).as_bytes()).unwrap();
            all(&mut above)
        };
        let e = answer(&|_| "cmd=fmpl-daemon version=9.9\n".into()).unwrap_err();
        assert!(matches!(&e, End::Wrong(text) if text.contains("version 9.9")), "{e:?}");
        let e = answer(&|line| format!("{line}\n")).unwrap_err();
        assert!(matches!(&e, End::Wrong(text) if text.contains("secret")), "{e:?}");

        let (mut ours, theirs) = pair();
        let line =
            b"cmd=fmpl-daemon version=0.0/0 secret=00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
        let e = Link::above(theirs.try_clone().unwrap().into(), theirs.into(), line).err().unwrap();
        assert!(e.contains("0.0/0") && e.contains(VERSION), "{e}");
        let mut said = String::new();
        ours.set_nonblocking(false).unwrap();
        ours.read_to_string(&mut said).unwrap();
        assert!(said.contains(VERSION), "the other side learns which version is here: {said}");
    }

    #[test]
    fn what_is_altered_left_out_or_said_twice_is_noticed() {
        for alter in [
            |b: &mut Vec<u8>| b[6] ^= 1,
            |b: &mut Vec<u8>| drop(b.drain(..25)),
            |b: &mut Vec<u8>| b.splice(0..0, b[..25].to_vec()).for_each(drop),
        ] {
            let (mut above, below) = both();
            let mut said = {
                let own = || below.to.try_clone().unwrap();
                Link::new(own(), own(), &Key::of(b"none"), ["below", "above"])
            };
            said.says = Stamp { key: below.says.key.clone(), next: 0 };
            said.say(b"first");
            said.say(b"later");
            alter(&mut said.going);
            said.flush().unwrap();
            assert!(matches!(all(&mut above), Err(End::Wrong(_))));
        }
    }
}
