//! The `fmpl` command.

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use fmpl::base::config::meant;

mod bench;
mod doctor;
mod info;
mod install;
mod memory;
mod model;
mod run;
mod stats;
mod top;
mod trace;

#[derive(Parser)]
#[command(name = "fmpl", version, about = "Message passing by remote memory writes")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start a job of several processes on this machine
    Run(Box<run::Options>),
    /// The part of a job on another machine, which `fmpl run -H` starts there
    #[command(hide = true)]
    Daemon,
    /// What a message costs here, and beside the MPIs of this machine
    Bench(Box<bench::Options>),
    /// What this build and machine offer, and every setting
    Info {
        /// Only the settings with this in their names, such as FMPL_EAGER or spool
        #[arg(value_name = "SETTING")]
        settings: Vec<String>,
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
        /// Instead: what memory a rank takes that talks to three others, by component; of a job of so many ranks
        #[arg(long, value_name = "RANKS", num_args = 0..=1, default_missing_value = "4")]
        memory: Option<u32>,
        /// The same in a world of so many ranks, of which four are processes
        #[arg(long, value_name = "RANKS", requires = "memory")]
        world: Option<u32>,
        /// So many of the others send a message each, are answered, and go
        #[arg(long, value_name = "N", requires = "world")]
        ghosts: Option<u32>,
        /// The four have so many communicators of sets of the world without a pattern
        #[arg(long, value_name = "N", requires = "world")]
        communicators: Option<u32>,
        /// The four speak to these one after the other, and are answered; then to the first again
        #[arg(long, requires = "ghosts")]
        in_turn: bool,
        /// The four receive nothing before so many seconds are over or all have come, and are looked at then
        #[arg(long, value_name = "SECONDS", requires = "ghosts")]
        late: Option<u32>,
        /// All of these have to do with rank 0, and all at once; without --world the other ranks, which are processes then, each on a node
        #[arg(long, requires = "memory")]
        incast: bool,
    },
    /// What the ranks of a running job do: for whom they wait, messages and bytes a second, by way
    Top(top::Options),
    /// What memory of a node message passing takes in a job of a million nodes, by the formulas of a paper
    Model(model::Options),
    /// What is missing on this machine, and what that costs
    Doctor {
        /// As JSON, for programs
        #[arg(long)]
        json: bool,
    },
    /// Measure which way suits which message on this machine, for all programs that run here
    Tune(bench::tune::Terms),
    /// The events of all ranks (FMPL_TRACE) in one file, on one clock
    Trace(trace::Options),
    /// Put the command, the libraries and the headers under a prefix
    Install(install::Options),
}

/// Says what is wrong with the command line, and ends. A program in the place of a subcommand is told how it is started, and a word that is not
/// like enough for clap which subcommand was meant.
fn refuse(e: clap::Error) -> ! {
    use clap::error::{ContextKind, ContextValue};
    let _ = e.print();
    if let Some(ContextValue::String(word)) = e.get(ContextKind::InvalidSubcommand) {
        let command = Cli::command();
        let all = command.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name());
        match meant(word, all) {
            _ if word.contains('/') => eprintln!("\n  tip: a program is started by `fmpl run {word}`"),
            _ if e.get(ContextKind::SuggestedSubcommand).is_some() => {}
            Some(like) => eprintln!("\n  tip: did you mean `fmpl {like}`?"),
            None => eprintln!("\n  tip: a program is started by `fmpl run PROGRAM`"),
        }
    }
    std::process::exit(e.exit_code())
}

/// `println!` panics where nothing can be written, on a full disk perhaps: no defect of this command, and no matter for a backtrace.
fn name_lost_output() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| match info.payload().downcast_ref::<String>() {
        Some(text) if text.starts_with("failed printing to ") => {
            eprintln!("fmpl: {text}");
            std::process::exit(1);
        }
        _ => usual(info),
    }));
}

/// Bytes of stack that reading a command line, or describing it, takes at most: more than the first thread of a process may have (`ulimit -s`).
const STACK: usize = 1 << 20;

/// Does it with so much, where there can be a further thread.
fn with_room<T: Send>(work: impl Fn() -> T + Sync) -> T {
    std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, &work);
        worker.map_or_else(|_| work(), |worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

fn read() -> Result<Command, ExitCode> {
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|w| w == "run") {
        let ours = run::spelled(words.split_off(2)).map_err(|text| run::refused(2, &text))?;
        words.extend(ours);
    }
    Ok(Cli::try_parse_from(words).unwrap_or_else(|e| refuse(e)).command)
}

fn main() -> ExitCode {
    name_lost_output();
    let words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|w| w == bench::PART) {
        return bench::part(&words[2..]);
    }
    let command = match with_room(read) {
        Ok(command) => command,
        Err(code) => return code,
    };
    if matches!(command, Command::Info { memory: None, .. } | Command::Model(_) | Command::Doctor { .. }) {
        fmpl::base::system::end_with_reader();
    }
    match command {
        Command::Run(o) => run::main(*o),
        Command::Daemon => ExitCode::from(fmpl::launch::embedded::daemon() as u8),
        Command::Bench(o) => bench::main(&o),
        Command::Info {
            memory: Some(_),
            world: Some(world),
            ghosts,
            communicators,
            late,
            in_turn,
            incast,
            json,
            ..
        } => {
            let [ghosts, communicators, late] = [ghosts, communicators, late].map(Option::unwrap_or_default);
            let then = memory::ghosts::Then { communicators, late };
            memory::ghosts::main(world, ghosts, then, [in_turn, incast], json)
        }
        Command::Info { memory: Some(ranks), incast: true, .. } => memory::senders::main(ranks),
        Command::Info { memory: Some(ranks), .. } => memory::main(ranks),
        Command::Info { memory: None, settings, json, .. } => info::main(&settings, json),
        Command::Top(o) => top::top(&o),
        Command::Model(o) => model::main(&o),
        Command::Doctor { json } => doctor::main(json),
        Command::Tune(terms) => bench::tune::main(&terms),
        Command::Trace(o) => trace::main(&o),
        Command::Install(o) => with_room(|| install::main(&o)),
    }
}
