//! Tuning files: which one holds, whom a damaged one is told, and what `fmpl tune` writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fmpl::base::processor::Processor;
use fmpl::base::tuning::{Rows, installed_place};

use crate::programs::{built_command, must, scratch};

const FOUR_CHUNKS: &str = "fmpl tuning 1\n[any]\nring_chunks = 4\n";
const SEVEN_CHUNKS: &str = "fmpl tuning 1\n[distance apart]\nring_chunks = 7\n";

/// A user's and a prefix's place for this processor's file, both empty.
struct Places {
    configs: PathBuf,
    user: PathBuf,
    prefix: PathBuf,
    installed: PathBuf,
}

impl Places {
    fn new(name: &str) -> Places {
        let place = scratch(name);
        let _ = fs::remove_dir_all(&place);
        let (configs, prefix) = (place.join("config"), place.join("prefix"));
        let here = Processor::here();
        let user = configs.join(format!("fmpl/{}.tuning", here.file_name()));
        let installed = installed_place(&prefix, &here);
        for file in [&user, &installed] {
            fs::create_dir_all(file.parent().expect("it is in a directory")).expect("a directory");
        }
        Places { configs, user, prefix, installed }
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("XDG_CONFIG_HOME", &self.configs).env_remove("FMPL_TUNING").env_remove("FMPL_DISTANCE");
        command
    }

    /// Two ranks that meet: what init has to say.
    fn meet(&self, settings: &[(&str, &str)]) -> Output {
        let me = built_command();
        let mut command = self.command(me);
        command
            .args(["run", "-n", "2", "--"])
            .arg(me)
            .args(["bench-part", "rank", "64"])
            .envs(settings.iter().copied());
        command.output().expect("it starts")
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout)
}

/// The line of a number in what `fmpl info` says.
fn number(info: &str, name: &str) -> Vec<String> {
    let line = info.lines().find(|l| l.split_whitespace().next() == Some(name)).unwrap_or_else(|| panic!("{info}"));
    line.split_whitespace().take(3).skip(1).map(str::to_owned).collect()
}

#[test]
fn the_users_file_comes_before_the_installed_one() {
    let places = Places::new("tuning");
    must(Command::new(built_command()).arg("install").arg("--prefix").arg(&places.prefix));
    let installed_command = places.prefix.join("bin/fmpl");
    let info = || said(&must(places.command(&installed_command).arg("info")));
    let text = info();
    assert!(text.contains("tuning               what is built in"), "{text}");
    assert_eq!(number(&text, "ring_chunks"), ["3", "3"]);

    fs::write(&places.installed, SEVEN_CHUNKS).expect("a file");
    let text = info();
    assert!(text.contains(&format!("tuning               {}", places.installed.display())), "{text}");
    assert_eq!(number(&text, "ring_chunks"), ["3", "7"]);

    fs::write(&places.user, FOUR_CHUNKS).expect("a file");
    let text = info();
    assert!(text.contains(&format!("tuning               {}", places.user.display())), "{text}");
    assert_eq!(number(&text, "ring_chunks"), ["4", "4"]);

    // A user's file that cannot be used does not keep the installed one away.
    fs::write(&places.user, "fmpl tuning 1\n[any]\nring_chunks = ").expect("a file");
    let text = info();
    assert_eq!(number(&text, "ring_chunks"), ["3", "7"]);
}

#[test]
fn files_that_cannot_be_used_are_told_and_passed_over() {
    let places = Places::new("damaged");
    let quiet = places.meet(&[]);
    assert!(quiet.status.success() && !said(&quiet).contains("tuning"), "{}", said(&quiet));
    let foreign = "fmpl tuning 1\n[vendor NoSuchMaker, family 1]\nring_chunks = 4\n";
    for (text, why) in [
        ("fmpl tuning 1\n[any]\nring_max = lots\n", "line 3: ring_max = lots: possible values"),
        ("fmpl tuning 7\n[any]\n", "line 1: the first line must be \"fmpl tuning 1\""),
        ("\u{0}\u{1}", "line 1"),
        (foreign, "has no section for this processor"),
    ] {
        fs::write(&places.user, text).expect("a file");
        let told = places.meet(&[]);
        let words = format!("tuning file passed over: {}: {why}", places.user.display());
        assert!(told.status.success(), "{}", said(&told));
        assert_eq!(said(&told).matches(&words).count(), 1, "once for all ranks of a node: {}", said(&told));
        let doctor = places.command(built_command()).arg("doctor").output().expect("it starts");
        assert!(!doctor.status.success() && said(&doctor).contains(why), "{}", said(&doctor));
        assert!(places.meet(&[("FMPL_TUNING", "built-in")]).stderr.is_empty());
    }
    // Not text, no file, no end.
    fs::write(&places.user, [0xff, 0xfe, 0x00]).expect("a file");
    assert!(said(&places.meet(&[])).contains("tuning file passed over"));
    fs::remove_file(&places.user).expect("it was there");
    fs::create_dir(&places.user).expect("a directory");
    assert!(said(&places.meet(&[])).contains("is no file"));
}

#[test]
fn a_file_that_a_setting_names_must_be_one() {
    let places = Places::new("named");
    let file = places.configs.join("mine.tuning");
    let at = file.to_str().expect("it is text");
    let error = places.meet(&[("FMPL_TUNING", at)]);
    assert!(!error.status.success() && said(&error).contains("no such file"), "{}", said(&error));
    fs::write(&file, "fmpl tuning 1\n[near]\n").expect("a file");
    let error = places.meet(&[("FMPL_TUNING", at)]);
    assert!(!error.status.success() && said(&error).contains("line 2: \"near\" is no condition"), "{}", said(&error));
    fs::write(&file, FOUR_CHUNKS).expect("a file");
    let well = places.meet(&[("FMPL_TUNING", at)]);
    assert!(well.status.success() && well.stderr.is_empty(), "{}", said(&well));
}

/// The command as a user would call it, on few and short messages. The numbers are worth nothing; the file is one, and holds.
#[test]
fn what_tune_writes_holds_from_then_on() {
    let places = Places::new("tuned");
    let few = ["tune", "--quiet", "--messages", "--rounds", "1", "--blocks", "3", "--iterations", "3", "--most", "64k"];
    let tuned = places.command(built_command()).args(few).output().expect("it starts");
    let text = said(&tuned);
    if !tuned.status.success() {
        // On one core, and where other programs take the cores from it again and again, there is nothing to measure.
        assert!(text.contains("no state of the machine lasted") || text.contains("one core may be used"), "{text}");
        assert!(!places.user.exists());
        return println!("not measured: {text}");
    }
    let file = fs::read_to_string(&places.user).expect("it is written");
    let rows = Rows::read(&file).unwrap_or_else(|why| panic!("{why}:\n{file}"));
    assert!(rows.knows(&Processor::here()), "{file}");
    assert!(text.contains("It holds from now on"), "{text}");
    let info = said(&must(places.command(built_command()).arg("info")));
    assert!(info.contains(&format!("tuning               {}", places.user.display())), "{info}");
    assert!(places.meet(&[]).stderr.is_empty());
}
