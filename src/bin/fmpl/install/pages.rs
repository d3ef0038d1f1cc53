//! Manual pages and shell completions, written from the command's options.

use std::fs;
use std::io;
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;

/// The page of the compilers, which are scripts.
const WRAPPERS: &str = include_str!("../../../packaging/fmplcc.1");

/// Writes them under `share`.
pub fn put(share: &Path) -> Result<(), String> {
    let written = |what: &str, result: io::Result<()>| {
        result.map_err(|error| format!("cannot write {what} under {}: {error}", share.display()))
    };
    let mut command = crate::Cli::command();
    written("manual pages", manual(&share.join("man/man1"), command.clone()))?;
    let places = [
        (Shell::Bash, "bash-completion/completions", "fmpl"),
        (Shell::Zsh, "zsh/site-functions", "_fmpl"),
        (Shell::Fish, "fish/vendor_completions.d", "fmpl.fish"),
    ];
    for (shell, place, name) in places {
        let directory = share.join(place);
        written("completions", fs::create_dir_all(&directory))?;
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "fmpl", &mut text);
        written("completions", fs::write(directory.join(name), text))?;
    }
    Ok(())
}

/// `fmpl.1`, and `fmpl-NAME.1` for each of its commands; one page for the compilers.
fn manual(directory: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)?;
    for name in ["fmplcc", "fmplc++", "fmplfort"] {
        fs::write(directory.join(format!("{name}.1")), WRAPPERS)?;
    }
    Ok(())
}
