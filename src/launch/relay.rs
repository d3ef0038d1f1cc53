//! What ranks print and read: their output line by line with the rank in front, or kept for the caller; the terminal for rank 0.
//!
//! The launcher must go on serving ranks and obeying Ctrl-C while whoever reads its output does not. So it never writes
//! where it could block: output waits in a [`Sink`] of bounded length, and a rank whose output finds it full has to wait.

use crate::base::system::{in_foreground, is_ready, read, write};
use std::io::{self, IsTerminal};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// A line that is longer than this comes out in parts, each with the rank in front.
const LINE_MAX: usize = 1 << 20;
/// Beyond this the ranks have to wait.
const SINK_FULL: usize = 1 << 20;
/// A pipe that polls writable takes so many bytes without blocking.
const PIPE_BUF: usize = 4096;

/// The launcher's own standard output or standard error.
pub(crate) struct Sink {
    fd: RawFd,
    queue: Vec<u8>,
    /// Nobody reads it any more.
    pub(crate) closed: bool,
    /// It could not be written, for another reason than that, which nobody has told yet.
    pub(crate) lost: Option<io::Error>,
}

impl Sink {
    pub(crate) fn new(fd: RawFd) -> Sink {
        Sink { fd, queue: Vec::new(), closed: false, lost: None }
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.queue.extend_from_slice(bytes);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.queue.len() >= SINK_FULL
    }

    /// What nobody writes anywhere.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.queue)
    }

    /// Writes what the descriptor takes without blocking.
    pub(crate) fn drain(&mut self) {
        let mut done = 0;
        while done < self.queue.len() && is_ready(&self.fd, libc::POLLOUT) {
            let part = &self.queue[done..self.queue.len().min(done + PIPE_BUF)];
            match write(&self.fd, part) {
                Ok(n) => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) => {
                    self.closed = true;
                    done = self.queue.len();
                    self.lost = Some(e).filter(|e| e.kind() != io::ErrorKind::BrokenPipe);
                }
            }
        }
        self.queue.drain(..done);
    }
}

/// What of a rank's output is not a whole line yet, or all of it.
pub(crate) struct Lines {
    tag: Option<String>,
    /// Tagged: the begun line. Captured: everything.
    pub(crate) held: Vec<u8>,
    /// Lines are dropped before the first of this kind.
    from: Option<fn(&[u8]) -> bool>,
}

impl Lines {
    /// Lines go to a sink with `tag` in front; without a tag everything is kept.
    pub(crate) fn new(tag: Option<String>) -> Lines {
        Lines { tag, held: Vec::new(), from: None }
    }

    pub(crate) fn arrived(&mut self, bytes: &[u8], sink: &mut Sink) {
        let Some(tag) = &self.tag else { return self.held.extend_from_slice(bytes) };
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            self.held.extend_from_slice(part);
            if part.ends_with(b"\n") || self.held.len() >= LINE_MAX {
                if self.from.is_some_and(|is_first| !is_first(&self.held)) {
                    self.held.clear();
                    continue;
                }
                self.from = None;
                put_line(tag, &mut self.held, sink);
            }
        }
    }

    /// There will be no more: a last line without an end gets one, if it is tagged.
    pub(crate) fn finish(&mut self, sink: &mut Sink) {
        if let Some(tag) = &self.tag
            && !self.held.is_empty()
            && self.from.is_none()
        {
            put_line(tag, &mut self.held, sink);
        }
    }
}

/// One rank's output stream.
pub(crate) struct Source {
    /// `None`: nothing is read any more, and the rank's writes fail.
    fd: Option<OwnedFd>,
    pub(crate) lines: Lines,
}

impl Source {
    /// Lines go to the sink with `tag` in front; without a tag everything is kept. The descriptor must not block.
    pub(crate) fn new(fd: OwnedFd, tag: Option<String>) -> Source {
        Source { fd: Some(fd), lines: Lines::new(tag) }
    }

    /// The same, from the first line on of which `is_first` says so.
    pub(crate) fn from_line(fd: OwnedFd, tag: String, is_first: fn(&[u8]) -> bool) -> Source {
        let mut source = Source::new(fd, Some(tag));
        source.lines.from = Some(is_first);
        source
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Whether it goes to the sink.
    pub(crate) fn is_tagged(&self) -> bool {
        self.lines.tag.is_some()
    }

    /// Whether the stream can still bring something.
    pub(crate) fn is_open(&self) -> bool {
        self.fd.is_some()
    }

    /// Takes over what has arrived, up to `most` reads. `false`: there will be no more.
    pub(crate) fn take_in(&mut self, sink: &mut Sink, most: usize) -> bool {
        let mut bytes = [0u8; 16384];
        for _ in 0..most {
            match read(&self.fd(), &mut bytes) {
                Ok(0) => return false,
                Ok(n) => self.lines.arrived(&bytes[..n], sink),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return e.kind() == io::ErrorKind::WouldBlock,
            }
        }
        true
    }

    /// The stream has ended. A rank that goes on writing learns that nobody reads.
    pub(crate) fn finish(&mut self, sink: &mut Sink) {
        self.fd = None;
        self.lines.finish(sink);
    }
}

fn put_line(tag: &str, line: &mut Vec<u8>, sink: &mut Sink) {
    sink.push(tag.as_bytes());
    sink.push(line);
    if !line.ends_with(b"\n") && !tag.is_empty() {
        sink.push(b"\n");
    }
    line.clear();
    // A line as long as a book leaves no memory behind.
    line.shrink_to(4096);
}

/// Hands what is typed at the launcher's terminal to rank 0.
///
/// On this machine only a terminal needs this: rank 0 has a process group of its own, which is not the terminal's foreground, and would be
/// stopped when it reads. Files and pipes are simply inherited. To a rank 0 on another machine all goes this way.
pub(crate) struct Typing {
    to: Target,
    pending: Vec<u8>,
}

enum Target {
    Here(OwnedFd),
    /// Another machine, which takes so many bytes more. And do we read a terminal?
    Away(usize, bool),
}

/// Bytes on their way to another machine.
const INPUT_WINDOW: usize = 64 << 10;

impl Typing {
    /// The descriptor must not block.
    pub(crate) fn new(to: OwnedFd) -> Typing {
        Typing { to: Target::Here(to), pending: Vec::new() }
    }

    /// To another machine.
    pub(crate) fn away() -> Typing {
        Typing { to: Target::Away(INPUT_WINDOW, io::stdin().is_terminal()), pending: Vec::new() }
    }

    /// What to poll for: the terminal when it is ours to read, or the pipe when rank 0 has not taken the last line yet.
    pub(crate) fn interest(&self) -> Option<(RawFd, i16)> {
        let stdin = Some((libc::STDIN_FILENO, libc::POLLIN));
        match &self.to {
            Target::Here(to) if !self.pending.is_empty() => Some((to.as_raw_fd(), libc::POLLOUT)),
            Target::Away(room, terminal) => stdin.filter(|_| *room > 0 && (!terminal || in_foreground())),
            Target::Here(_) => stdin.filter(|_| in_foreground()),
        }
    }

    /// Nothing tells when there is something to poll for again.
    pub(crate) fn looks_again(&self) -> bool {
        self.interest().is_none() && !matches!(self.to, Target::Away(0, _))
    }

    /// Moves on by a step. `false`: the end of the input, or rank 0 reads no more.
    pub(crate) fn step(&mut self) -> bool {
        if self.pending.is_empty() {
            let mut bytes = [0u8; 4096];
            match read(&libc::STDIN_FILENO, &mut bytes) {
                Ok(0) => return false,
                Ok(n) => self.pending.extend_from_slice(&bytes[..n]),
                // EIO: in the background by now, asked again later.
                Err(e) => return matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EIO)),
            }
        }
        let Target::Here(to) = &self.to else { return true };
        match write(to, &self.pending) {
            Ok(n) => {
                self.pending.drain(..n);
                true
            }
            Err(e) => matches!(e.raw_os_error(), Some(libc::EINTR | libc::EAGAIN)),
        }
    }

    /// The next bytes for another machine; none: the end of the input.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let goes_on = self.step();
        let bytes = std::mem::take(&mut self.pending);
        if let Target::Away(room, _) = &mut self.to {
            *room = room.saturating_sub(bytes.len());
        }
        (!bytes.is_empty() || !goes_on).then_some(bytes)
    }

    /// The other machine has taken so many bytes.
    pub(crate) fn taken(&mut self, bytes: u32) {
        if let Target::Away(room, _) = &mut self.to {
            *room += bytes as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    fn tagged(pieces: &[&[u8]]) -> Vec<u8> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let (mut source, mut sink) = (Source::new(ours.into(), Some("[3] ".into())), Sink::new(-1));
        for p in pieces {
            theirs.write_all(p).unwrap();
            assert!(source.take_in(&mut sink, 100));
        }
        drop(theirs);
        assert!(!source.take_in(&mut sink, 100));
        source.finish(&mut sink);
        sink.queue
    }

    #[test]
    fn lines_are_whole_and_tagged() {
        assert_eq!(tagged(&[b"a", b"b\nc\n\nd", b"e"]), b"[3] ab\n[3] c\n[3] \n[3] de\n");
        assert_eq!(tagged(&[]), b"");
        let long = vec![b'x'; 100_000];
        assert_eq!(tagged(&[&long]), [b"[3] ", &long[..], b"\n"].concat());
    }

    #[test]
    fn a_sink_nobody_reads_takes_no_more_and_does_not_block() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut sink = Sink::new(ours.as_raw_fd());
        sink.push(&vec![b'x'; 4 << 20]);
        sink.drain();
        assert!(sink.is_full() && !sink.closed);
        drop(theirs);
        sink.drain();
        assert!(sink.closed && sink.is_empty());
        sink.push(b"more");
        assert!(sink.is_empty() && sink.lost.is_none());
    }

    #[test]
    fn a_sink_that_cannot_be_written_says_why() {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut sink = Sink::new(full.as_raw_fd());
        sink.push(b"a line\n");
        sink.drain();
        let lost = sink.lost.take().and_then(|e| e.raw_os_error());
        assert!(sink.closed && sink.is_empty() && lost == Some(libc::ENOSPC), "{lost:?}");
    }
}
