//! The spellings of `mpirun` and `mpiexec` for what `fmpl run` has too: long options with one dash, options with two values.
//!
//! They are translated before the command line is read, so that there is one list of options, and what cannot be translated is refused
//! by the same reader. The words of programs are left alone.

use std::ffi::{OsStr, OsString};

/// Other spellings of options that take a value, and ours.
const WITH_VALUE: &[(&str, &str)] = &[
    ("-np", "-n"),
    ("--np", "-n"),
    ("-N", "--ppn"),
    ("-ppn", "--ppn"),
    ("-perhost", "--ppn"),
    ("-npernode", "--ppn"),
    ("--npernode", "--ppn"),
    ("-host", "--host"),
    ("-hosts", "--host"),
    ("--hosts", "--host"),
    ("-hostfile", "--hostfile"),
    ("-machinefile", "--hostfile"),
    ("--machinefile", "--hostfile"),
    ("-f", "--hostfile"),
    ("-bind-to", "--bind-to"),
    ("-map-by", "--map-by"),
    ("-wdir", "--wdir"),
    ("-wd", "--wdir"),
    ("-prefix", "--prefix"),
    ("-timeout", "--timeout"),
    ("-launcher-exec", "--launch-agent"),
];

/// And of those that take none.
const WITHOUT: &[(&str, &str)] = &[
    ("-oversubscribe", "--oversubscribe"),
    ("-tag-output", "--tag-output"),
    ("-l", "--tag-output"),
    ("-prepend-rank", "--tag-output"),
    ("-verbose", "-v"),
    ("-help", "--help"),
];

/// Options of others that have a meaning here, but another form.
const ELSEWHERE: &[(&str, &str)] = &[
    ("-mca", "the settings of FMPL are variables: --env FMPL_…=…; `fmpl info` lists them"),
    ("--mca", "the settings of FMPL are variables: --env FMPL_…=…; `fmpl info` lists them"),
    ("-genvall", "name the variables that the ranks on other machines need: -x NAME"),
    ("--rankfile", "ranks are placed by --map-by, and bound by --bind-to"),
    ("-rf", "ranks are placed by --map-by, and bound by --bind-to"),
    ("--report-bindings", "-v says where each rank runs"),
];

/// The command line with our own spellings. `takes_value`: whether an option of ours is followed by its value.
pub fn translated(words: Vec<OsString>, takes_value: impl Fn(&str) -> bool) -> Result<Vec<OsString>, String> {
    let (mut out, mut words) = (Vec::new(), words.into_iter().peekable());
    let mut options = true;
    while let Some(word) = words.next() {
        let next = words.peek();
        if !options {
            // The next program's options begin behind a colon.
            options = word == ":" && next.is_some_and(|w| w.as_encoded_bytes().starts_with(b"-"));
            out.push(word);
            continue;
        }
        let Some(text) = word.to_str().filter(|w| w.starts_with('-') && *w != "--") else {
            options = false;
            out.push(word);
            continue;
        };
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        if let Some((_, advice)) = ELSEWHERE.iter().find(|(theirs, _)| *theirs == name) {
            return Err(format!("{name} is an option of other launchers: {advice}"));
        }
        let mut value_of = |what: &str| words.next().ok_or_else(|| format!("{name} needs {what}"));
        if let Some((_, ours)) = WITH_VALUE.iter().find(|(theirs, _)| *theirs == name) {
            let value = value.map_or_else(|| value_of("a value"), |v| Ok(v.into()))?;
            out.extend([OsString::from(*ours), value]);
        } else if let Some((_, ours)) = WITHOUT.iter().find(|(theirs, _)| *theirs == text) {
            out.push((*ours).into());
        } else if matches!(text, "-genv" | "-env") {
            let (variable, value) = (value_of("a name and a value")?, value_of("a name and a value")?);
            out.extend(["--env".into(), [variable.as_os_str(), &value].join(OsStr::new("="))]);
        } else if text == "-genvlist" || text == "-envlist" {
            let list = value_of("names of variables")?;
            for variable in list.to_string_lossy().split(',') {
                out.extend(["-x".into(), variable.into()]);
            }
        } else {
            let follows = value.is_none() && takes_value(text);
            out.push(word);
            out.extend(follows.then(|| words.next()).flatten());
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ours(line: &str) -> Result<String, String> {
        let takes_value = |o: &str| matches!(o, "-n" | "--env" | "--host" | "-H" | "--bind-to" | "-x");
        let words = translated(line.split_whitespace().map(OsString::from).collect(), takes_value)?;
        Ok(words.iter().map(|w| w.to_str().unwrap()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_people_type() {
        for (theirs, expected) in [
            ("-np 4 ./app -np 5", "-n 4 ./app -np 5"),
            ("--np 4 -host a,b ./app", "-n 4 --host a,b ./app"),
            ("-np=4 app", "-n 4 app"),
            ("-n 4 -genv A 1 -env B 2=3 app", "-n 4 --env A=1 --env B=2=3 app"),
            ("-x A -x B=c -bind-to core app", "-x A -x B=c --bind-to core app"),
            ("-genvlist A,B app", "-x A -x B app"),
            ("-l -n 2 -- app -l", "--tag-output -n 2 -- app -l"),
            ("-n 1 a -np : -np 2 b : -x", "-n 1 a -np : -n 2 b : -x"),
            ("-n 1 a : b -np 3", "-n 1 a : b -np 3"),
            ("-H -np app", "-H -np app"),
            ("-machinefile f -ppn 2 --oversubscribe app", "--hostfile f --ppn 2 --oversubscribe app"),
            ("--host=a:2 --bind-to core app", "--host=a:2 --bind-to core app"),
            ("", ""),
        ] {
            assert_eq!(ours(theirs).as_deref(), Ok(expected), "{theirs}");
        }
    }

    #[test]
    fn what_has_another_form_here_is_named() {
        for (theirs, says) in [
            ("--mca btl self app", "fmpl info"),
            ("-np", "-np needs a value"),
            ("-genv A", "a name and a value"),
            ("--report-bindings app", "-v says"),
        ] {
            let e = ours(theirs).unwrap_err();
            assert!(e.contains(says), "{theirs}: {e}");
        }
    }
}
