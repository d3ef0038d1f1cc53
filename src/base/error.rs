//! One error type: a code for programs, and a text for people that names rank, peer, index and sizes.

use core::fmt;

use super::variants::variants;

variants! {
    /// What went wrong. The numbers are those of `include/fmpl.h` (`FMPL_ERR_*`); they never change their meaning.
    #[non_exhaustive]
    #[derive(Hash)]
    pub enum Code: i32, text_nul {
        /// The library is not initialised, or has been finalized.
        Init = 1 => "FMPL is not initialised\0",
        /// A request on this (peer, index) is not completed yet.
        Busy = 2 => "a request on this peer and index is not completed yet\0",
        /// The index is outside the range that both sides agreed on.
        Index = 3 => "index out of range\0",
        /// The rank is outside the communicator.
        Rank = 4 => "rank out of range\0",
        /// Not a communicator.
        Comm = 5 => "not a communicator\0",
        /// Another argument is wrong: a null buffer with a size, a negative count, a size that overflows.
        Argument = 6 => "wrong argument\0",
        /// The message is longer than the receive buffer. Its first bytes have been delivered.
        Truncate = 7 => "message longer than the receive buffer\0",
        /// Buffered mode, and the spool has no room for the message. Nothing was sent.
        SpoolFull = 8 => "spool full, nothing was sent\0",
        /// Finalize found messages that nobody has received, or requests never completed.
        Pending = 9 => "messages or requests were left at finalize\0",
        /// The peer has died, or has finalized without doing its part.
        Peer = 10 => "the peer has died or left the job\0",
        /// This process was forked from one that had initialised the library; it cannot use it.
        Fork = 11 => "this process was forked after init and cannot use FMPL\0",
        /// No memory, or a limit on memory was met.
        Memory = 12 => "out of memory\0",
        /// A system call failed; the text has its name and errno.
        System = 13 => "a system call failed\0",
        /// The launcher could not be reached or answered nonsense.
        Launch = 14 => "the launcher failed\0",
        /// There is no such request to wait for, to test or to cancel.
        Request = 15 => "no such request\0",
        /// The ranks wait for each other in a cycle (reported only with `FMPL_DEADLOCK=abort`).
        Deadlock = 16 => "ranks wait for each other in a cycle\0",
        /// A setting has a value that cannot be used.
        Setting = 17 => "a setting has an unusable value\0",
        /// The two sides were built with different layouts of the shared records.
        Version = 18 => "the peer was built with another layout of the shared records\0",
        /// The library cannot do this here: the machine or the system lacks what it takes.
        Unsupported = 19 => "not supported here\0",
    }
}

impl Code {
    /// What the code means, in a few words: the text of `fmpl_strerror`. That of `text_nul` ends with a NUL so that C can have it as it is.
    pub fn text(self) -> &'static str {
        self.text_nul().trim_end_matches('\0')
    }

    /// The name in the C interface, such as `FMPL_ERR_BUSY`.
    pub fn c_name(self) -> &'static str {
        match self {
            Code::Init => "FMPL_ERR_INIT",
            Code::Busy => "FMPL_ERR_BUSY",
            Code::Index => "FMPL_ERR_INDEX",
            Code::Rank => "FMPL_ERR_RANK",
            Code::Comm => "FMPL_ERR_COMM",
            Code::Argument => "FMPL_ERR_ARGUMENT",
            Code::Truncate => "FMPL_ERR_TRUNCATE",
            Code::SpoolFull => "FMPL_ERR_SPOOL_FULL",
            Code::Pending => "FMPL_ERR_PENDING",
            Code::Peer => "FMPL_ERR_PEER",
            Code::Fork => "FMPL_ERR_FORK",
            Code::Memory => "FMPL_ERR_MEMORY",
            Code::System => "FMPL_ERR_SYSTEM",
            Code::Launch => "FMPL_ERR_LAUNCH",
            Code::Request => "FMPL_ERR_REQUEST",
            Code::Deadlock => "FMPL_ERR_DEADLOCK",
            Code::Setting => "FMPL_ERR_SETTING",
            Code::Version => "FMPL_ERR_VERSION",
            Code::Unsupported => "FMPL_ERR_UNSUPPORTED",
        }
    }
}

/// An error: its [`Code`], and a text that names what was being done, with which peer and index, and what to do about it.
///
/// One pointer wide, so that the `Result<()>` of a call on the path of a message travels in a register.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Inner>);

#[derive(Clone, PartialEq, Eq)]
struct Inner {
    code: Code,
    detail: Box<str>,
}

static_assertions::const_assert!(size_of::<Result<()>>() == size_of::<usize>());

/// What every fallible function of this crate returns.
pub type Result<T> = core::result::Result<T, Error>;

/// An error with a text as `format!` takes it: what fails is written out at one place, not where it is found.
macro_rules! error {
    ($code:expr, $($text:tt)+) => {
        $crate::base::error::Error::of($code, format_args!($($text)+))
    };
}
pub(crate) use error;

impl Error {
    /// An error with a text. Cold: errors are made off the message path.
    #[cold]
    pub fn new(code: Code, detail: impl Into<String>) -> Error {
        Error(Box::new(Inner { code, detail: detail.into().into_boxed_str() }))
    }

    /// The same with a text that is still to be made: [`error!`].
    #[cold]
    #[inline(never)]
    pub(crate) fn of(code: Code, detail: fmt::Arguments<'_>) -> Error {
        Error::new(code, detail.to_string())
    }

    /// The failure of a system call: `what` was being done, and the thread's `errno` says why it failed.
    #[cold]
    pub fn system(what: impl fmt::Display) -> Error {
        Error::new(Code::System, format!("{what}: {}", std::io::Error::last_os_error()))
    }

    /// As [`Error::system`], of a call that asked for memory or addresses.
    #[cold]
    pub fn memory(what: impl fmt::Display) -> Error {
        Error::new(Code::Memory, format!("{what}: {}", std::io::Error::last_os_error()))
    }

    /// The code, for programs.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The text without the code's own words.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.detail().is_empty() {
            f.write_str(self.code().text())
        } else {
            write!(f, "{}: {}", self.code().text(), self.detail())
        }
    }
}

/// The sentence and the code's name in C: what a `main` prints that ends with an error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} ({})", self.code().c_name())
    }
}

impl std::error::Error for Error {}

/// Says something on standard error, after the library's name: a line, by one call of the system, so that the lines of several
/// ranks that share it do not mix.
#[cold]
pub fn say(text: &str) {
    let line = format!("fmpl: {text}\n");
    let mut rest = line.as_bytes();
    while !rest.is_empty() {
        // SAFETY: `rest` is readable.
        let n = unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
        if n <= 0 {
            if n < 0 && std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                continue;
            }
            // There is nobody to tell.
            return;
        }
        rest = &rest[n as usize..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_come_back() {
        for c in Code::ALL {
            assert_eq!(Code::from_number(c as i32), Some(c));
            assert!(c.text_nul().ends_with('\0') && !c.text().contains('\0'));
        }
        assert_eq!(Code::from_number(0), None);
        assert_eq!(Code::from_number(999), None);
    }

    #[test]
    fn what_a_main_prints_is_a_sentence() {
        let error = Error::new(Code::Setting, "FMPL_EAGER=much: not a number");
        assert_eq!(format!("{error:?}"), format!("{error} (FMPL_ERR_SETTING)"));
    }
}
