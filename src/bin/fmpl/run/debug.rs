//! `fmpl run --debug`: which of the two ways, and what of it the user's terminal shows.

use std::io::IsTerminal;
use std::process::{Child, Command, Stdio};

use clap::ValueEnum;
use fmpl::launch::embedded::{Debugger, Launcher, Outcome};

/// What the command line says.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum How {
    /// In a terminal with tmux: tmux; else: backtrace
    Auto,
    /// Each rank under its own gdb, in a window of a new tmux session
    Tmux,
    /// The stacks of all threads on standard error when a rank crashes
    Backtrace,
}

/// What the user will see.
pub enum View {
    Backtraces,
    Windows { session: String, terminal: Terminal },
}

/// What can be done with the terminal of the command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// It can show the session.
    Free,
    /// It is in tmux, which can switch to the session.
    InTmux,
    /// There is none.
    None,
}

impl View {
    pub fn of(how: How) -> View {
        let terminal = match (std::io::stdin().is_terminal() && std::io::stdout().is_terminal(), in_tmux()) {
            (false, _) => Terminal::None,
            (true, true) => Terminal::InTmux,
            (true, false) => Terminal::Free,
        };
        let windows = match how {
            How::Auto => terminal != Terminal::None && has_tmux(),
            How::Tmux => true,
            How::Backtrace => false,
        };
        match windows {
            true => View::Windows { session: format!("fmpl-{}", std::process::id()), terminal },
            false => View::Backtraces,
        }
    }

    pub fn set(&self, launcher: Launcher) -> Launcher {
        match self {
            View::Backtraces => launcher.debugger(Debugger::Backtraces),
            // Nobody is to lose a rank that they look at because another one has ended. And the terminal belongs to tmux as long as it
            // shows the session: nothing else is written there, or read.
            View::Windows { session, terminal } => launcher
                .debugger(Debugger::Windows { session: session.clone() })
                .keep_going(true)
                .stdin_to_rank_0(false)
                .quiet(*terminal == Terminal::Free),
        }
    }

    /// The ranks have started: shows their windows. Something is given where the terminal is tmux's from now on.
    pub fn show(&self) -> Option<Shown> {
        let View::Windows { session, terminal } = self else { return None };
        let tmux = |word| {
            let mut command = Command::new("tmux");
            command.args([word, "-t", session]);
            command
        };
        match terminal {
            Terminal::Free => {
                let client = tmux("attach-session").spawn();
                client.map_err(|e| eprintln!("fmpl run: tmux attach -t {session}: {e}")).ok().map(Shown)
            }
            Terminal::InTmux => {
                eprintln!("fmpl run: the ranks are in the tmux session {session}");
                // When its last window is closed tmux shows this one again, in place of ending.
                let _ = tmux("set-option").args(["detach-on-destroy", "off"]).stderr(Stdio::null()).status();
                let _ = tmux("switch-client").stderr(Stdio::null()).status();
                None
            }
            Terminal::None => {
                eprintln!("fmpl run: the ranks are in the tmux session {session}: tmux attach -t {session}");
                None
            }
        }
    }
}

/// A terminal that shows the session.
pub struct Shown(Child);

impl Shown {
    /// Waits until the user has quit or left it, and says what could not be said before.
    pub fn end(mut self, outcome: &Outcome) {
        let _ = self.0.wait();
        outcome.reports.iter().for_each(|text| eprintln!("fmpl run: {text}"));
    }
}

fn in_tmux() -> bool {
    std::env::var_os("TMUX").is_some_and(|v| !v.is_empty())
}

fn has_tmux() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join("tmux").is_file())
}
