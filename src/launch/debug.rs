//! Ranks under a debugger (gdb): one that prints where a rank died, or one for each rank in a window of tmux.
//!
//! A rank stays what it is without: the launcher's own child, with its variables, pipes and process group, and the launcher learns
//! how it ended in the same way. It is only *held* at the first instruction of its program until its gdb, another process, has
//! attached to it. So nothing that a program does depends on gdb, and neither does its exit code.
//!
//! ```text
//! launcher ──fork──▶ rank: PTRACE_TRACEME, exec ──stops──▶ let go with SIGSTOP, stopped ──▶ runs under gdb
//!          ──spawn─▶ gdb (or: types the rank's pid at the gdb of its window) ──attaches, sends SIGCONT──▲
//! ```
//!
//! *Backtraces*: gdb says nothing until a signal that means a defect has come. Then it prints the stacks of all threads, and
//! lets the rank go with that signal, which does what it does without gdb: it kills the rank, or a handler takes it. All other signals
//! pass. gdb has a process group of its own: when the first of several ranks that have crashed at once has ended, the others' stacks
//! can still be printed within the time that they have for ending. It ends when its rank does.
//!
//! *Windows*: the rank reads and writes the terminal of its window, as a program that gdb has started.

use super::embedded::{Debugger, Refused};
use super::exec;
use super::relay::Source;
use crate::base::system::{pipe, set_waiting};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// What debugs the ranks of this machine, until each has its own gdb.
pub(super) enum Debug {
    Backtraces { gdb: PathBuf },
    Windows(Windows),
}

/// A gdb that prints where its rank died; ended with this.
pub(super) struct Gdb(Child);

impl Drop for Gdb {
    fn drop(&mut self) {
        // Its rank has ended, so it is about to end as well, and may have.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Debug {
    /// Before any rank is started: looks for what is needed, and opens the windows of these ranks.
    pub(super) fn prepare(how: &Debugger, ranks: impl Iterator<Item = u32>) -> Result<Debug, Refused> {
        let gdb = tool("gdb")?;
        match how {
            Debugger::Backtraces => Ok(Debug::Backtraces { gdb }),
            Debugger::Windows { session } => Windows::open(tool("tmux")?, session, ranks).map(Debug::Windows),
        }
    }

    /// The terminal that the rank at this place has instead of the launcher's streams.
    pub(super) fn terminal(&self, place: usize) -> io::Result<Option<[OwnedFd; 3]>> {
        let Debug::Windows(windows) = self else { return Ok(None) };
        let path = &windows.panes[place].terminal;
        // It is gdb's terminal; a launcher without one would make it its own.
        let open = || File::options().read(true).write(true).custom_flags(libc::O_NOCTTY).open(path).map(OwnedFd::from);
        Ok(Some([open()?, open()?, open()?]))
    }

    /// Has gdb attached to a rank that is held; and what it will print, when that is for the launcher.
    pub(super) fn attach(&self, place: usize, rank: u32, pid: i32) -> io::Result<Option<(Gdb, Source)>> {
        match self {
            Debug::Backtraces { gdb } => {
                let (read, write) = pipe()?;
                set_waiting(&read, false)?;
                let mut command = Command::new(gdb);
                let pid = pid.to_string();
                command.args(["-nx", "--batch"]).args(QUIET.iter().flat_map(|setting| ["-iex", setting]));
                command.args(["-p", &pid]);
                BACKTRACES.iter().for_each(|step| {
                    command.args(["-ex", &step.replace("PID", &pid)]);
                });
                command.stdin(Stdio::null()).stdout(write.try_clone()?).stderr(write).process_group(0);
                let tag = format!("[rank {rank}] ");
                Ok(Some((Gdb(command.spawn()?), Source::from_line(read, tag, is_worth_reading))))
            }
            Debug::Windows(windows) => windows.type_pid(place, pid).map(|()| None),
        }
    }

    /// All ranks have their gdb: the windows are their user's from now on, and stay when the job has ended.
    pub(super) fn hand_over(&mut self) {
        if let Debug::Windows(windows) = self {
            windows.kept = true;
        }
    }

    /// The ranks have been killed. Of one whose debugger waits for its user nobody else would learn that it has ended.
    pub(super) fn close(&mut self) {
        if let Debug::Windows(windows) = self {
            windows.close();
        }
    }
}

/// What would stand between and behind the stacks.
const QUIET: [&str; 3] = ["set confirm off", "set print thread-events off", "set print inferior-events off"];

/// What gdb does when it has attached. In a batch the steps behind an error are taken all the same: a rank that gdb cannot attach to
/// runs without it; and to one that has ended none of the last steps means anything.
const BACKTRACES: [&str; 8] = [
    "handle all nostop noprint pass",
    "handle SIGINT nostop noprint pass", // not among `all`; nor is SIGTRAP, at which gdb stops in any case
    "handle SIGSEGV SIGABRT SIGBUS SIGFPE SIGILL SIGSYS stop print pass",
    "shell kill -CONT PID", // what is let go is not to stop again
    "continue",
    "thread apply all backtrace",
    "handle SIGTRAP pass", // not before: gdb would hand on those of its own breakpoints
    "detach",
];

/// The first line that gdb's user is shown: a signal, or why gdb could not attach.
fn is_worth_reading(line: &[u8]) -> bool {
    let line = String::from_utf8_lossy(line);
    line.contains(" received signal ") || line.starts_with("ptrace: ")
}

fn tool(name: &str) -> Result<PathBuf, Refused> {
    exec::find(OsStr::new(name), std::env::var_os("PATH").as_deref()).map_err(|_| Refused {
        code: 127,
        text: format!("--debug needs {name}, which is not in PATH (Debian: apt install {name})"),
    })
}

/// A session of tmux with a window for each rank.
pub(super) struct Windows {
    tmux: PathBuf,
    session: String,
    panes: Vec<Pane>,
    /// They are not closed with this.
    kept: bool,
}

struct Pane {
    id: String,
    terminal: PathBuf,
}

/// What runs in a window. It waits for the rank's process, and then it is gdb. The commands come by a file (gdb takes no pipe), as which
/// they are taken without a word. gdb may fail an assertion when its window is closed while the rank runs, and is not to leave a core then.
/// `run` would start a process that is not of the job; to quit ends the rank, as with `gdb --args`.
const WINDOW: &str = r#"printf 'rank %s, process ' "$1"
read -r pid && file=$(mktemp) && cat >"$file" <<END && exec gdb -q -p "$pid" -x "$file"
shell rm "$file"
maint set internal-error corefile no
maint set internal-error quit yes
handle SIGCONT SIGUSR1 SIGUSR2 nostop noprint pass
shell kill -CONT $pid
set confirm off
define run
  continue
end
define start
  tbreak main
  continue
end
define hook-quit
  if \$_thread != 0
    kill
  end
end
set confirm on
echo Rank $1 is at its first instruction: set breakpoints, then 'run', or 'start' to stop in main.\n
END
"#;

impl Windows {
    fn open(tmux: PathBuf, session: &str, ranks: impl Iterator<Item = u32>) -> Result<Windows, Refused> {
        let mut windows = Windows { tmux, session: session.to_owned(), panes: Vec::new(), kept: false };
        for rank in ranks {
            let pane = windows.window(rank).map_err(|e| Refused { code: 1, text: format!("--debug: tmux: {e}") })?;
            windows.panes.push(pane);
        }
        Ok(windows)
    }

    fn window(&self, rank: u32) -> io::Result<Pane> {
        let (rank, name, target) = (rank.to_string(), format!("rank {rank}"), format!("={}:", self.session));
        let place: &[&str] = match self.panes.is_empty() {
            true => &["new-session", "-d", "-s", &self.session],
            false => &["new-window", "-d", "-t", &target],
        };
        let what = ["-n", &name, "-P", "-F", "#{pane_id} #{pane_tty}", "sh", "-c", WINDOW, "sh", &rank];
        let told = self.tell(&[place, &what].concat())?;
        let (id, terminal) = told.trim().split_once(' ').ok_or_else(|| io::Error::other("it names no terminal"))?;
        Ok(Pane { id: id.into(), terminal: terminal.into() })
    }

    fn type_pid(&self, place: usize, pid: i32) -> io::Result<()> {
        self.tell(&["send-keys", "-t", &self.panes[place].id, &pid.to_string(), "Enter"]).map(drop)
    }

    fn close(&mut self) {
        if !std::mem::take(&mut self.panes).is_empty() {
            // Its user may have closed it.
            let _ = self.tell(&["kill-session", "-t", &format!("={}", self.session)]);
        }
    }

    fn tell(&self, words: &[&str]) -> io::Result<String> {
        let done = Command::new(&self.tmux).args(words).stdin(Stdio::null()).output()?;
        if !done.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&done.stdout).into_owned())
    }
}

impl Drop for Windows {
    fn drop(&mut self) {
        if !self.kept {
            self.close();
        }
    }
}
